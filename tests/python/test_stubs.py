"""The type stubs that the build writes: they parse, name every operator, and type checkers know them."""
import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import flambeau as fl

PACKAGE = pathlib.Path(fl.__file__).parent


def stub(name):
    path = PACKAGE / name
    if not path.exists():
        pytest.skip(f"{name} is not built: ninja stubs")
    return ast.parse(path.read_text())


def functions(nodes):
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef)}


def test_every_operator_is_a_function():
    names = functions(stub("_C.pyi").body)
    missing = {o["name"] for o in fl._C._operators() if hasattr(fl._C, o["name"])} - names
    assert not missing


def test_every_method_is_declared():
    (tensor,) = (n for n in stub("_C.pyi").body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    fields = {n.target.id for n in tensor.body if isinstance(n, ast.AnnAssign)}
    missing = {n for n in dir(fl.Tensor) if not n.startswith("_")} - functions(tensor.body) - fields
    assert not missing


def test_the_package_declares_its_names():
    body = stub("__init__.pyi").body
    declared = functions(body)
    for node in body:
        if isinstance(node, ast.ImportFrom):
            declared |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.AnnAssign):
            declared.add(node.target.id)
    assert {"Tensor", "add", "tensor", "zeros", "float32", "nn", "no_grad", "compile", "save"} <= declared


GOOD = """
import flambeau as torch

x = torch.zeros(2, 3, dtype=torch.float32, requires_grad=True)
y: torch.Tensor = (x @ x.t() + 1).sum(0, keepdim=True).view(-1)
values, indices = torch.max(x, 1)
z: torch.Tensor = torch.max(x, dim=0).values
torch.add(x, 2, alpha=3, out=y)
parts: tuple[torch.Tensor, ...] = x.chunk(2)
w: torch.Tensor = torch.rand(2, 3) + torch.tensor([1.0, 2.0, 3.0])
for row in w:
    row.add_(1)
with torch.no_grad():
    n: int = x.dim()
"""
WRONG = """
import flambeau as torch

x = torch.zeros(2)
n: int = x.relu()
torch.softmax(x, dim="first")
torch.ad(x, 1)
x.add(x, beta=2)
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_what_a_type_checker_says(tmp_path):
    stub("__init__.pyi")

    def check(text):
        program = tmp_path / "program.py"
        program.write_text(text)
        command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", tmp_path, program]
        return subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})

    good, wrong = check(GOOD), check(WRONG)
    assert good.returncode == 0, good.stdout
    for line in (5, 6, 7, 8):
        assert f"program.py:{line}: error" in wrong.stdout, wrong.stdout
