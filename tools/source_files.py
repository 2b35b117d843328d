"""The C++ files of the project, found without git: what the checks look at; and where the project is."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("flambeau", "tests", "examples", "benchmarks", "python")
SUFFIXES = (".h", ".cpp", ".inc", ".def")


def source_files(root=ROOT, folders=FOLDERS):
    """Sorted paths of all C++ files in these folders of the tree at root."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*")
                  if path.suffix in SUFFIXES)
