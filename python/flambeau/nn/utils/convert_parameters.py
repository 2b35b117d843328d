"""Parameters as one vector, and back."""
import flambeau as fl

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters):
    """All parameters, flattened, one after the other."""
    return fl.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """The parameters become pieces of the vector."""
    if not isinstance(vec, fl.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at:at + count].view_as(parameter).data
        at += count
