"""Parametrizations that are often used."""
import flambeau as fl
from flambeau.nn import functional as F
from flambeau.nn.modules.conv import _ConvTransposeNd
from flambeau.nn.modules.module import Module
from flambeau.nn.utils import parametrize
from flambeau.nn.utils.weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _Orthogonal(Module):
    """A matrix (..., n, k) with orthonormal columns (rows if k > n) from any matrix.

    orthogonal_map: "matrix_exp" and "cayley" of the antisymmetric part, or "householder", a product of
    reflections. use_trivialization: the result is multiplied by the matrix that was there at first.
    """

    def __init__(self, weight, orthogonal_map, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal(): orthogonal_map='householder' takes real tensors only")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.register_buffer("base", None)
        self._with_base = use_trivialization

    def forward(self, X):
        rows, columns = X.size(-2), X.size(-1)
        wide = rows < columns
        if wide:
            X, rows, columns = X.mT, columns, rows
        if self.orthogonal_map == "householder":
            q = _householder_product(X)
        else:
            X = X.tril()
            if rows != columns:
                X = fl.cat([X, X.new_zeros(*X.shape[:-1], rows - columns)], dim=-1)
            A = X - X.mH if X.is_complex() else X - X.mT
            if self.orthogonal_map == "matrix_exp":
                q = fl.matrix_exp(A)
            else:
                identity = fl.eye(rows, dtype=A.dtype, device=A.device)
                q = fl.linalg.solve(identity + A * 0.5, identity - A * 0.5)
            if rows != columns:
                q = q[..., :columns]
        if self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(f"orthogonal: the value must be of shape {self.shape}, got {Q.shape}.")
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if self.orthogonal_map == "householder":
            reflectors, _ = fl.geqrf(tall)
            # The diagonal above 0 is R's, whose signs the reflections' product has to be multiplied by.
            reflectors.diagonal(dim1=-2, dim2=-1).sign_()
            return reflectors.mT if wide else reflectors
        if not self._with_base:
            raise NotImplementedError("orthogonal: to assign a value with the map 'matrix_exp' or 'cayley', "
                                      "parametrize with use_trivialization=True.")
        if tall.size(-2) == tall.size(-1):
            basis = tall.clone()
        else:
            shape = (*tall.shape[:-1], tall.size(-2) - tall.size(-1))
            rest = fl.randn(shape, dtype=tall.dtype, device=tall.device)
            basis, r = fl.linalg.qr(fl.cat([tall, rest], dim=-1))
            signs = r.diagonal(dim1=-2, dim2=-1).sign()
            basis = basis * signs.unsqueeze(-2)
        self.base = basis
        return fl.zeros_like(Q)


def _householder_product(X):
    """The product of the reflections by the columns below the diagonal, times the diagonal's signs."""
    below = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
    q = fl.linalg.householder_product(below, tau)
    return q * X.diagonal(dim1=-2, dim2=-1).to(fl.int32).unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps a matrix orthogonal (its rows or columns orthonormal)."""
    weight = getattr(module, name, None)
    if not isinstance(weight, fl.Tensor):
        raise ValueError(f"orthogonal(): no tensor '{name}' in module '{module}'")
    if weight.ndim < 2:
        raise ValueError(f"orthogonal(): '{name}' must have at least 2 dimensions, it has {weight.ndim}.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError("orthogonal(): 'orthogonal_map' must be 'matrix_exp', 'cayley' or 'householder', "
                         f"got {orthogonal_map!r}")
    orth = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, orth, unsafe=True)
    return module


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight):
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Divides a weight into length (original0) and direction (original1)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_hook_form(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for k, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{k}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_hook_form)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, by power iteration in training."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(f"spectral_norm(): 'dim' must lie in [{-weight.ndim}, {weight.ndim - 1}], "
                             f"got {dim}")
        if n_power_iterations <= 0:
            raise ValueError("spectral_norm(): 'n_power_iterations' must be positive, "
                             f"got {n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            u, v = matrix.new_empty((rows,)).normal_(0, 1), matrix.new_empty((columns,)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim((self.dim,), (0,)).flatten(1) if weight.ndim > 1 else weight

    def _power_method(self, matrix, iterations):
        with fl.no_grad():
            for _ in range(iterations):
                self._u.copy_(F.normalize(fl.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(fl.mv(matrix.mT, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / fl.dot(u, fl.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, fl.Tensor):
        raise ValueError(f"spectral_norm(): no tensor '{name}' in module '{module}'")
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
