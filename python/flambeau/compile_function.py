"""compile(): a function of tensors, captured at its first call and run as machine code."""
from ._C import _compile


def compile(function=None, **options):
    """Returns the compiled form of a function of tensors. Without a function: a decorator.

    Options: backend ("native", "interpreter", "aot_eager", "eager"), dynamic (True, False or None), fullgraph, mode,
    recompile_limit. The result has explain().
    """
    if function is None:
        return lambda f: compile(f, **options)
    options.setdefault("name", getattr(function, "__name__", "function"))
    compiled = _compile(function, **options)
    compiled.__name__ = options["name"]
    compiled.__doc__ = getattr(function, "__doc__", None)
    return compiled
