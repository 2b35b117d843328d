"""Several processes: not available in this build. Queries say so; the rest raises an error."""

__all__ = ["get_backend", "get_rank", "get_world_size", "init_process_group", "is_available",
           "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
           "is_torchelastic_launched"]


def is_available():
    return False


def is_initialized():
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_available
is_torchelastic_launched = is_available


class ProcessGroup:
    """No object is one."""


class ReduceOp:
    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"


class GroupMember:
    WORLD, NON_GROUP_MEMBER = None, object()


group = GroupMember


def _refuse(*args, **kwargs):
    raise RuntimeError("torch.distributed is not available in this build of Flambeau: one process trains on "
                       "one machine")


init_process_group = destroy_process_group = get_rank = get_world_size = get_backend = new_group = _refuse
all_reduce = all_gather = all_gather_object = all_gather_into_tensor = reduce = barrier = _refuse
reduce_scatter = reduce_scatter_tensor = all_to_all = all_to_all_single = gather = gather_object = _refuse
broadcast = broadcast_object_list = scatter = scatter_object_list = send = recv = isend = irecv = _refuse
get_process_group_ranks = get_global_rank = _refuse
