"""Every Python block of the documents runs, the blocks of one document one after the other."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DOCUMENTS = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
             if BLOCK.search(p.read_text())]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_blocks_run(document):
    program = "\n".join(BLOCK.findall(document.read_text()))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_documents_have_blocks():
    assert {"python.md", "coming-from-pytorch.md"} <= {p.name for p in DOCUMENTS}
