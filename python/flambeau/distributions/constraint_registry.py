"""From any real numbers to a set: biject_to(constraint) and transform_to(constraint) are Transforms."""
from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms by the class of a constraint; register(constraint) is a decorator of a function of one."""

    def __init__(self):
        self._makers = {}

    def register(self, constraint, factory=None):
        if factory is None:
            return lambda f: self.register(constraint, f)
        self._makers[constraint if isinstance(constraint, type) else _key(constraint)] = factory
        return factory

    def __call__(self, constraint):
        """The Transform onto a constraint."""
        for key in (_key(constraint), type(constraint)):
            if key in self._makers:
                return self._makers[key](constraint)
        raise NotImplementedError(f"Cannot transform {constraint!r} constraints: no transform is registered")


def _key(constraint):
    """Constraints without parameters are known by themselves, others by their class."""
    simple = isinstance(constraint, constraints._Simple)
    return constraint if simple else type(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(constraint):
    def register(factory):
        biject_to.register(constraint, factory)
        return transform_to.register(constraint, factory)

    return register


@_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_both(constraints.positive)
@_both(constraints.nonnegative)
def _greater(constraint):
    loc = constraint.lower_bound
    exp = transforms.ExpTransform()
    return exp if isinstance(loc, float) and loc == 0 else transforms.ComposeTransform(
        [exp, transforms.AffineTransform(loc, 1)])


@_both(constraints.less_than)
def _less(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval)
@_both(constraints.half_open_interval)
def _interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, float) and isinstance(high, float) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _independent(registry):
    def transform(constraint):
        return transforms.IndependentTransform(registry(constraint.base_constraint),
                                               constraint.reinterpreted_batch_ndims)

    return transform


for _registry in (biject_to, transform_to):
    _registry.register(constraints.independent, _independent(_registry))
    _registry.register(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
    _registry.register(constraints.cat, lambda c, to=_registry: transforms.CatTransform(
        [to(part) for part in c.cseq], c.dim, c.lengths))
    _registry.register(constraints.stack, lambda c, to=_registry: transforms.StackTransform(
        [to(part) for part in c.cseq], c.dim))

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: transforms.PositiveDefiniteTransform())
