"""Sets of values, as check(): which elements (or vectors, matrices) of a tensor are in the set."""
import flambeau

__all__ = ["Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
           "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
           "is_dependent",
           "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
           "nonnegative_integer",
           "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real",
           "real_vector",
           "simplex", "square", "stack", "symmetric", "unit_interval"]


class Constraint:
    """is_discrete: integers only. event_dim: how many dimensions at the end form one value."""
    is_discrete, event_dim = False, 0

    def check(self, value):
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__.lstrip("_") + "()"


class _Simple(Constraint):
    def __init__(self, name, test, event_dim=0, is_discrete=False):
        self._name, self._test, self.event_dim, self.is_discrete = name, test, event_dim, is_discrete

    def check(self, value):
        return self._test(value)

    def __repr__(self):
        return self._name


class _Dependent(Constraint):
    """A set that depends on other parameters."""

    def __init__(self, *, is_discrete=False, event_dim=0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")

    def __call__(self, *, is_discrete=False, event_dim=0):
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)


def is_dependent(constraint):
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a set; the class says what is known without an object."""

    def __init__(self, fn=None, *, is_discrete=False, event_dim=0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _IndependentConstraint(Constraint):
    """Another set whose last dimensions must be in it together."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        for _ in range(self.reinterpreted_batch_ndims):
            result = result.all(-1)
        return result


class _Interval(Constraint):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)

    def __repr__(self):
        name = type(self).__name__.lstrip("_")
        return f"{name}(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _HalfOpenInterval(_Interval):
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & super().check(value)


class _GreaterThan(Constraint):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return self.lower_bound < value

    def __repr__(self):
        return f"{type(self).__name__.lstrip('_')}(lower_bound={self.lower_bound})"


class _GreaterThanEq(_GreaterThan):
    def check(self, value):
        return self.lower_bound <= value


class _IntegerGreaterThan(_GreaterThan):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(Constraint):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Parts(Constraint):
    """Sets for parts of a tensor along a dimension."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim, self.lengths = list(cseq), dim, lengths or [1] * len(cseq)

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        return flambeau.cat([c.check(p) for c, p in zip(self.cseq, parts)], self.dim)


class _Stack(_Parts):
    def check(self, value):
        return flambeau.stack([c.check(p) for c, p in zip(self.cseq, value.unbind(self.dim))], self.dim)


def _is_symmetric(x):
    return (x.shape[-1] == x.shape[-2]) & flambeau.isclose(x, x.mT, atol=1e-6).all(-2).all(-1)


def _is_positive_definite(x):
    return _is_symmetric(x) & (flambeau.linalg_cholesky_ex(x)[1] == 0)


def _is_lower(x):
    return (x.tril() == x).reshape(*x.shape[:-2], -1).all(-1)


dependent, dependent_property, independent = _Dependent(), _DependentProperty, _IndependentConstraint
boolean = _Simple("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
one_hot = _Simple("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
real = _Simple("Real()", lambda x: x == x)
real_vector = independent(real, 1)
simplex = _Simple("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
square = _Simple("Square()",
                 lambda x: x.new_full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=flambeau.bool), 2)
symmetric = _Simple("Symmetric()", _is_symmetric, 2)
positive_semidefinite = _Simple("PositiveSemidefinite()",
                                lambda x: _is_symmetric(x) & (flambeau.linalg_eigvalsh(x) >= 0).all(-1), 2)
positive_definite = _Simple("PositiveDefinite()", _is_positive_definite, 2)
lower_triangular = _Simple("LowerTriangular()", _is_lower, 2)
lower_cholesky = _Simple("LowerCholesky()",
                         lambda x: _is_lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1), 2)
corr_cholesky = _Simple("CorrCholesky()", lambda x: lower_cholesky.check(x) & (
    (x.square().sum(-1) - 1).abs() < flambeau.finfo(x.dtype).eps * x.shape[-1] * 10).all(-1), 2)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
multinomial, cat, stack = _Multinomial, _Parts, _Stack
