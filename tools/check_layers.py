"""Checks that each folder of flambeau/ includes only what its layer may use.

The layers and their dependencies are those that CMakeLists.txt declares with fl_layer(): a folder may include
the layers it depends on, directly or not. LLVM's headers belong to layers declared with LLVM, oneDNN's and
pocketfft's likewise, and Python's to none.

Usage: check_layers.py [ROOT]    prints one line for each violation; exit status 1 if there are any
"""
import pathlib
import re
import sys

from source_files import ROOT, source_files

LAYER = re.compile(r"^\s*fl_layer\(\s*(\w+)([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# First part of an included path -> the flag of fl_layer() that allows it; None: allowed nowhere.
FOREIGN = {"llvm": "LLVM", "llvm-c": "LLVM", "dnnl.h": "ONEDNN", "dnnl.hpp": "ONEDNN", "oneapi": "ONEDNN",
           "pocketfft.hpp": "POCKETFFT", "cuda.h": "CUDA", "cublasLt.h": "CUDA", "cudnn_graph.h": "CUDA",
           "nccl.h": "CUDA",
           "Python.h": None, "nanobind": None, "pybind11": None}


def declared_layers(cmake_text):
    """{layer: (set of layers that it may include, set of its flags)} of the text of CMakeLists.txt."""
    layers = {}
    for name, arguments in LAYER.findall(cmake_text):
        words = arguments.split()
        allowed = {name}
        for word in words:
            if word.startswith("fl_"):
                dependency = word[len("fl_"):]
                if dependency not in layers:
                    raise SystemExit(f"CMakeLists.txt: layer {name} depends on {dependency}, which is not "
                                     "declared before it")
                allowed |= layers[dependency][0]
        layers[name] = (allowed, set(words) & set(FOREIGN.values()))
    if not layers:
        raise SystemExit("CMakeLists.txt: expected fl_layer() declarations, found none")
    return layers


def violations(root):
    """(file, line number, message) of every include that the layering forbids."""
    layers = declared_layers((root / "CMakeLists.txt").read_text())
    for path in source_files(root, ["flambeau"]):
        where = path.relative_to(root)
        if where.parts[1] not in layers:
            yield where, 1, f"the folder flambeau/{where.parts[1]} is not declared in CMakeLists.txt with fl_layer()"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            found = INCLUDE.match(line)
            message = found and forbidden(root, path, found[1], found[2], where.parts[1], layers)
            if message:
                yield where, number, message


def forbidden(root, path, quote, included, layer, layers):
    """Why `layer` may not include the file, or None."""
    allowed, flags = layers[layer]
    beside = (path.parent / included).resolve()
    if quote == '"' and beside.is_file() and beside.is_relative_to(root / "flambeau"):
        included = str(beside.relative_to(root))
    parts = pathlib.PurePosixPath(included).parts
    if parts[0] == "flambeau" and len(parts) > 2 and parts[1] not in allowed:
        return f"layer {layer} may not include {included}: it uses {', '.join(sorted(allowed - {layer})) or 'no other layer'}"
    if parts[0] in FOREIGN and FOREIGN[parts[0]] not in flags:
        flag = FOREIGN[parts[0]]
        holders = sorted(name for name, (_, has) in layers.items() if flag in has)
        return f"layer {layer} may not include {included}: it belongs to {', '.join(holders) if holders else 'no layer'}"
    return None


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else ROOT
    found = list(violations(root))
    for where, number, message in found:
        print(f"{where}:{number}: {message}")
    print(f"check_layers: {len(source_files(root, ['flambeau']))} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
