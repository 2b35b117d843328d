"""Versions that stand in several files are the same in all of them."""
import re
import tomllib
from pathlib import Path

import flambeau as fl

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_of_the_package():
    (built,) = re.findall(r"project\(flambeau VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert PACKAGE["project"]["version"] == built
    assert fl.__version__.endswith(f"+flambeau.{built}")


def test_of_what_a_wheel_is_built_with():
    """The same as what the tests ran with."""
    tested = set((ROOT / "tools/requirements.txt").read_text().splitlines())
    pinned = {r.partition(";")[0] for r in PACKAGE["build-system"]["requires"] if "==" in r}
    assert pinned and pinned <= tested


def test_dependencies_are_documented():
    document = (ROOT / "docs/dependencies.md").read_text()
    lists = [(ROOT / f"tools/{name}.txt").read_text() for name in ("requirements", "requirements-peer")]
    pins = [line.split("==") for line in "".join(lists).splitlines() if "==" in line]
    for name, version in pins:
        assert name in document.lower(), name
        assert re.search(rf"\b{re.escape(version)}\b", document), f"{name} {version}"
