"""The methods of Tensor that are written in Python, over those that the table of operators gives."""
import importlib
from collections import OrderedDict

from . import _C, _printing, overrides
from ._C import Size, Tensor

# Names of dtypes in types such as torch.FloatTensor.
TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte",
    "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}
DTYPE_OF_TYPE = {f"torch.{v}Tensor": getattr(_C, k) for k, v in TYPE_NAMES.items()}


_ARRAY_TYPES = {_C.complex64: "<c8", _C.complex128: "<c16", _C.bfloat16: "<V2", _C.float16: "<f2",
                _C.float32: "<f4", _C.float64: "<f8", _C.uint8: "|u1", _C.int8: "|i1", _C.int16: "<i2", _C.int32: "<i4",
                _C.int64: "<i8", _C.bool: "|b1"}


def _construct(cls, *args, **kwargs):
    """Tensor(2, 3), Tensor([1, 2]), Tensor(other): for Tensor, and classes without a constructor."""
    dtype = kwargs.pop("_dtype", None) or _C.get_default_dtype()
    device = kwargs.pop("device", None)
    if "data" in kwargs:
        args = (kwargs.pop("data"),)
    if kwargs:
        raise TypeError(f"{cls.__name__}(): unexpected keyword argument '{next(iter(kwargs))}'")
    data = args[0] if len(args) == 1 else args
    if isinstance(data, Tensor):
        made = data.detach() if cls is Tensor else data
    elif isinstance(data, Size) or (isinstance(data, int) and not isinstance(data, bool)):
        made = _C.empty(data if isinstance(data, Size) else (data,), dtype=dtype, device=device)
    elif len(args) != 1 and all(isinstance(n, int) for n in args):
        made = _C.empty(args if args else (0,), dtype=dtype, device=device)
    elif isinstance(data, _storage_types()):
        made = _C._tensor_on_storage(data.untyped() if hasattr(data, "untyped") else data, dtype, 0,
                                     (data.nbytes() // dtype.itemsize,))
    else:
        made = _C.tensor(data, dtype=dtype, device=device)
    if made.dtype is not dtype and not isinstance(data, Tensor):
        made = made.to(dtype)
    return made if cls is Tensor else _C._make_subclass(cls, made)


def _storage_types():
    from .storage import TypedStorage, UntypedStorage

    return (UntypedStorage, TypedStorage)


class TensorMethods:
    """Copied into Tensor below."""

    def __repr__(self, *, tensor_contents=None):
        return _printing.tensor_text(self)

    def __format__(self, spec):
        if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __deepcopy__(self, memo):
        from copy import deepcopy

        from . import storage as _  # storages know how they are copied

        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy works for graph leaves only, and this tensor is the result of an operator: use "
                "detach(), or clone() to stay in the graph. In a module this can come from "
                "torch.nn.utils.weight_norm")
        storage = deepcopy(self.untyped_storage(), memo)
        data = _C._tensor_on_storage(storage, self.dtype, self.storage_offset(), self.size(), self.stride())
        result = data if type(self) is Tensor else _C._make_subclass(type(self), data)
        result.requires_grad_(self.requires_grad)
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = deepcopy(self.grad, memo)
        result.__dict__.update(deepcopy(self.__dict__, memo))
        return result

    def __reduce_ex__(self, protocol):
        from . import _utils
        from .storage import TypedStorage

        storage = TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)
        state = (storage, self.storage_offset(), tuple(self.size()), self.stride(), self.requires_grad,
                 OrderedDict())
        if type(self) is Tensor and not self.__dict__:
            return _utils._rebuild_tensor_v2, state
        return _utils._rebuild_from_type, (type(self), state, self.__dict__)

    def __contains__(self, element):
        if not isinstance(element, (Tensor, int, float, complex)):
            raise RuntimeError("`x in tensor` is defined for a number or a Tensor x, not for "
                               f"{type(element)}")
        return bool((self == element).any())

    def __reversed__(self):
        return self.flip(0) if self.dim() else self

    def __dir__(self):
        return sorted(set(dir(type(self))) | set(self.__dict__))

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return _C.from_numpy(array)

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None,
                   pin_memory=False):
        """A tensor of data with this one's dtype and device, unless others are given."""
        return _C.tensor(data, dtype=dtype or self.dtype, device=self.device if device is None else device,
                         requires_grad=requires_grad, pin_memory=pin_memory)

    def new(self, *args, device=None):
        """An uninitialised tensor of given sizes, or one of given data, with this one's dtype and device."""
        return _construct(Tensor, *args, device=self.device if device is None else device, _dtype=self.dtype)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        """The name of the tensor's type, or the tensor as another type."""
        if dtype is None:
            return _type_name(self)
        on_cuda = getattr(dtype, "is_cuda", None)
        if isinstance(dtype, str):
            name, on_cuda = dtype.replace("torch.cuda.", "torch."), dtype.startswith("torch.cuda.")
            if name not in DTYPE_OF_TYPE:
                raise ValueError(f"invalid type: '{dtype}'")
            dtype = DTYPE_OF_TYPE[name]
        dtype = getattr(dtype, "dtype", dtype)
        if on_cuda is None or on_cuda == self.is_cuda:
            return self.to(dtype, non_blocking=non_blocking)
        return self.to("cuda" if on_cuda else "cpu", dtype, non_blocking=non_blocking)

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        """A copy on a CUDA device, the current one unless given; the tensor itself where it is there."""
        from .cuda._devices import index_of

        options = {} if memory_format is None else {"memory_format": memory_format}
        return self.to(_C.device("cuda", index_of(device)), non_blocking=non_blocking, **options)

    @property
    def __cuda_array_interface__(self):
        """How other libraries for CUDA reach the elements (version 2 of the interface)."""
        if not self.is_cuda:
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type: "
                                 f"{self.type()} If CUDA data is required use tensor.cuda() to copy tensor to device memory.")
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. "
                               "If gradients aren't required, use var.detach() to get Variable that doesn't "
                               "require grad.")
        if self.dtype not in _ARRAY_TYPES:
            raise TypeError(f"__cuda_array_interface__ has no type for {self.dtype}")
        strides = None if self.is_contiguous() else tuple(s * self.itemsize for s in self.stride())
        data = (self.data_ptr() if self.numel() else 0, False)
        return {"typestr": _ARRAY_TYPES[self.dtype], "shape": tuple(self.shape), "strides": strides,
                "data": data, "version": 2}

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def record_stream(self, stream):
        """Its memory is given out again only after what the stream has now. No effect on the CPU."""
        if self.is_cuda:
            _C._cuda.record_stream(self, *stream._where)

    def is_shared(self):
        return self.untyped_storage().is_shared()

    def share_memory_(self):
        """Moves the elements into memory that other processes can map."""
        from .storage import share

        return share(self)

    def storage(self):
        from .storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    def storage_type(self):
        from . import storage

        return getattr(storage, f"{TYPE_NAMES[str(self.dtype)[6:]]}Storage")

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        """Makes this tensor one on another's storage."""
        if source is None:
            source = _C.empty((0,), dtype=self.dtype, device=self.device)
        if isinstance(source, Tensor):
            if size is None:
                self._set_storage(source, source.storage_offset(), source.size(), source.stride())
                return self
        else:
            untyped = getattr(source, "_untyped_storage", source)
            count = untyped.nbytes() // self.itemsize
            source = _C._tensor_on_storage(untyped, self.dtype, 0, (count,))
            size = (count - storage_offset,) if size is None else size
        stride = _C.empty(size, device="meta").stride() if stride is None else stride
        self._set_storage(source, storage_offset, size, stride)
        return self

    def resize_(self, *size, memory_format=None):
        """New sizes in place; elements that are added are not initialised."""
        self._resize(size[0] if len(size) == 1 and not isinstance(size[0], int) else size, memory_format)
        return self

    def resize_as_(self, other, *, memory_format=None):
        self._resize(other.size(), memory_format)
        return self

    def detach_(self):
        """Makes this tensor a leaf, in place."""
        self._detach_in_place()
        return self

    def lu(self, pivot=True, get_infos=False):
        """torch.lu()."""
        from ._functional_forms import lu

        return lu(self, pivot, get_infos)

    def is_same_size(self, other):
        return self.size() == other.size()

    def apply_(self, function):
        """Replaces every element by function(element); on the CPU only, and slow."""
        if self.device.type != "cpu":
            raise TypeError("apply_ is only implemented on CPU tensors")
        flat = [function(v) for v in self.reshape(-1).tolist()]
        return self.copy_(_C.tensor(flat, dtype=self.dtype).view(self.shape))

    def map_(self, other, function):
        if self.device.type != "cpu" or other.device.type != "cpu":
            raise TypeError("map_ is only implemented on CPU tensors")
        flat = [function(a, b) for a, b in zip(self.reshape(-1).tolist(),
                                               other.expand_as(self).reshape(-1).tolist())]
        return self.copy_(_C.tensor(flat, dtype=self.dtype).view(self.shape))

    def dim_order(self):
        """Dimensions from the outermost in memory to the innermost."""
        return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    def __rdiv__(self, other):
        return self.reciprocal() * other

    def __div__(self, other):
        return self / other

    def __idiv__(self, other):
        self /= other
        return self

    def __long__(self):
        return int(self)

    def __nonzero__(self):
        return bool(self)

    def is_nonzero(self):
        """Whether the only element is not 0."""
        return bool(self)

    def is_distributed(self):
        return False

    def resize(self, *size):
        return self.reshape(*size)

    def resize_as(self, other):
        return self.reshape(other.shape)

    def module_load(self, other, assign=False):
        """What takes this tensor's place where a Module loads `other`."""
        return other if assign else self.copy_(other)

    def const_data_ptr(self):
        return self.data_ptr()

    def chalf(self, memory_format=None):
        return self.to(_C.complex32)

    def is_neg(self):
        return False

    def is_conj(self):
        return False

    def resolve_neg(self):
        return self

    def resolve_conj(self):
        return self

    def is_coalesced(self):
        raise RuntimeError("is_coalesced() is for sparse tensors; this one is dense")

    def to_dense(self, dtype=None, *, masked_grad=None):
        return self if dtype is None else self.to(dtype)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The elements that aren't 0: in coordinate form, or by compressed rows or columns (layout)."""
        coordinates = _sparse_rules().from_dense(self, sparse_dim)
        return coordinates if layout is None else coordinates.to_sparse(layout=layout)

    def to_sparse_coo(self):
        """The elements that aren't 0, in coordinate form."""
        return _sparse_rules().from_dense(self)

    def to_sparse_csr(self, dense_dim=None):
        """The elements of a matrix that aren't 0, row by row."""
        return self.to_sparse(layout=_C.sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        """The elements of a matrix that aren't 0, column by column."""
        return self.to_sparse(layout=_C.sparse_csc)

    def crow_indices(self):
        raise RuntimeError("crow_indices expected sparse row compressed tensor layout but got Strided")

    def col_indices(self):
        raise RuntimeError("col_indices expected sparse row compressed tensor layout but got Strided")

    def ccol_indices(self):
        raise RuntimeError("ccol_indices expected sparse column compressed tensor layout but got Strided")

    def row_indices(self):
        raise RuntimeError("row_indices expected sparse column compressed tensor layout but got Strided")

    def sparse_mask(self, mask):
        """The elements at the places of a sparse tensor."""
        return _sparse_rules().mask(self, mask)

    def refine_names(self, *names):
        raise NotImplementedError("named tensors are not supported")


def _sparse_rules():
    return importlib.import_module("._sparse_rules", __package__)


def _type_name(tensor):
    where = "cuda." if tensor.is_cuda else ""
    return f"torch.{where}{TYPE_NAMES[str(tensor.dtype)[6:]]}Tensor"


def _constant(value):
    return property(lambda self: value)


def _install():
    """Puts the methods above into Tensor, and lets those from C++ ask __torch_function__ too."""
    own = {n: f for n, f in vars(TensorMethods).items() if callable(f)
           and n not in ("__weakref__", "__dict__")}
    native = {n: f for n, f in vars(Tensor).items() if type(f).__name__ == "nb_method" and n != "as_subclass"}
    for name, function in {**native, **own}.items():
        if name not in ("__dir__", "__setstate__", "__class__"):
            function = overrides.dispatched(function, name, method=True)
        setattr(Tensor, name, function)
    Tensor.__cuda_array_interface__ = TensorMethods.__cuda_array_interface__
    Tensor.__torch_function__ = classmethod(overrides.default_torch_function)
    Tensor._make_subclass = staticmethod(_C._make_subclass)
    Tensor._make_wrapper_subclass = staticmethod(_C._make_wrapper_subclass)
    Tensor.__array_priority__ = 1000  # NumPy leaves array + tensor to the tensor
    Tensor.grad_fn = property(Tensor._grad_fn)
    Tensor.names = property(lambda self: (None,) * self.dim())
    Tensor.layout = _constant(_C.strided)
    for name in ("sparse", "sparse_csr", "quantized", "mkldnn", "nested",
                 "xpu", "mps", "xla", "vulkan", "ipu", "hpu"):
        setattr(Tensor, f"is_{name}", _constant(False))
    Tensor.is_mtia = Tensor.is_maia = _constant(False)
    Tensor.__module__ = "flambeau"


class layout:
    """How a tensor lies in memory."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        from .serialization import _get_layout
        return _get_layout, (repr(self),)


_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc",
            "jagged", "_mkldnn")
for _name in _LAYOUTS:
    setattr(_C, _name, layout(_name))
_C.layout = layout
_install()
