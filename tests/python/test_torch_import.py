"""as_torch() and the runner: `import torch` means Flambeau."""
import subprocess
import sys

import pytest


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", "flambeau", *arguments], capture_output=True, text=True)
    return done.stdout.strip(), done.stderr, done.returncode


@pytest.mark.parametrize("program, printed", [
    ("import torch, flambeau; print(torch is flambeau)", "True"),
    ("import torch.autograd.functional as f, flambeau; print(f is flambeau.autograd.functional)", "True"),
    ("from torch.utils import data; import flambeau.utils.data; print(data is flambeau.utils.data)", "True"),
    ("import importlib.metadata as m, importlib.util as u; print(m.version('torch')[:2], u.find_spec('torch') is None)", "2. False"),
    ("import sys, torch; print(sys.argv)", "['-c', 'a', 'b']"),
    ("import torch; print(torch.float32, torch.version.hip, torch.xpu.is_available())",
     "torch.float32 None False"),
    ("import importlib.util as u; print(u.find_spec('torchaudio'))", "None"),
])
def test_programs(program, printed):
    out, errors, code = run("-c", program, "a", "b")
    assert (out, code) == (printed, 0), errors


def test_scripts(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, helper\nif __name__ == '__main__':\n    print(helper.value, sys.argv[1:])\n")
    assert run(str(script), "x")[0] == "2.0 ['x']"


@pytest.mark.parametrize("program, error", [
    ("import torch.optimm", "ModuleNotFoundError: Flambeau has no module 'torch.optimm'; there is 'optim'"),
    ("import torch; torch.reluu", "has no attribute 'reluu'; there is 'relu'"),
    ("import torch; torch.ops.load_library('extension.so')", "extension"),
])
def test_what_is_missing_is_named(program, error):
    _, errors, code = run("-c", program)
    assert code == 1 and error in errors


def test_as_torch_refuses_a_loaded_torch():
    program = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import flambeau; flambeau.as_torch()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "before PyTorch itself is imported" in done.stderr
