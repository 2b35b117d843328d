"""replace_pattern(): parts of a graph that look like a pattern become something else."""
from typing import NamedTuple

from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Tracer


class Match(NamedTuple):
    """One place where the pattern was found: its output there, and what the pattern's nodes are there."""

    anchor: Node
    nodes_map: dict


def replace_pattern(gm, pattern, replacement):
    """Replaces every part of the module's graph that does what `pattern` does by `replacement`: functions (or
    modules) of the same arguments. Gives the matches. A part is not taken where a value inside it is read
    from outside.
    """
    pattern_graph, replacement_graph = _graph_of(pattern), _graph_of(replacement)
    result = pattern_graph.output_node().args[0]
    if not isinstance(result, Node):
        raise NotImplementedError("replace_pattern(): a pattern that returns something else than one value "
                                  "is not supported")
    found, taken = [], set()
    for node in reversed(gm.graph.nodes):
        match = {}
        if not _fits(result, node, match):
            continue
        inner = {n for p, n in match.items() if p.op != "placeholder"}
        if inner & taken or any(u not in inner for n in inner if n is not node for u in n.users):
            continue
        taken |= inner
        found.append((node, match))
    for node, match in reversed(found):
        _replace(gm.graph, pattern_graph, replacement_graph, node, match)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return [Match(node, match) for node, match in reversed(found)]


def _graph_of(program):
    return program.graph if isinstance(program, GraphModule) else Tracer().trace(program)


def _fits(p, n, match):
    """Whether a node of the pattern stands for one of the graph, given the others that do."""
    if not isinstance(p, Node) or not isinstance(n, Node):
        return not isinstance(p, Node) and not isinstance(n, Node) and type(p) is type(n) and p == n
    if p in match:
        return match[p] is n
    if p.op == "placeholder":
        match[p] = n
        return True
    if (p.op, p.target, len(p.args), p.kwargs.keys()) != (n.op, n.target, len(n.args), n.kwargs.keys()):
        return False
    match[p] = n
    return (all(_fit_together(a, b, match) for a, b in zip(p.args, n.args))
            and all(_fit_together(p.kwargs[k], n.kwargs[k], match) for k in p.kwargs))


def _fit_together(a, b, match):
    if isinstance(a, (list, tuple)):
        same_length = isinstance(b, (list, tuple)) and len(a) == len(b)
        return same_length and all(_fit_together(x, y, match) for x, y in zip(a, b))
    return _fits(a, b, match)


def _replace(graph, pattern, replacement, node, match):
    values = {}
    for mine, theirs in zip(replacement.find_nodes(op="placeholder"), pattern.find_nodes(op="placeholder")):
        values[mine] = match[theirs]
    with graph.inserting_before(node):
        result = graph.graph_copy(replacement, values)
    node.replace_all_uses_with(map_arg(result, lambda n: n))
    for old in sorted((n for p, n in match.items() if p.op != "placeholder"), reverse=True):
        if not old.users:
            graph.erase_node(old)
