"""as_torch(): under it `import torch` gives Flambeau."""
import importlib
import importlib.machinery
import importlib.util
import sys

_PACKAGE = __name__.rpartition(".")[0]
# Packages that are nothing without their library for PyTorch: to programs that ask they are not installed.
_COMPILED = ("torchaudio",)


def nearest(name, names):
    """"; did you mean 'x' or 'y'?" for a name that is missing, or nothing."""
    import difflib

    found = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 3)
    return f"; there is {', '.join(repr(n) for n in found)}" if found else ""


def _own_name(name):
    return _PACKAGE + name[len("torch"):]


class _Loader:
    """Gives the module of Flambeau itself, so that both names mean one object."""

    def create_module(self, spec):
        module = importlib.import_module(_own_name(spec.name))
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self._spec

    def is_package(self, name):
        return hasattr(sys.modules[_own_name(name)], "__path__")

    def get_code(self, name):
        return importlib.util.find_spec(_own_name(name)).loader.get_code(_own_name(name))


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        own = _own_name(name)
        spec = importlib.util.find_spec(own)
        if spec is None:
            parent, _, last = name.rpartition(".")
            self._refuse(name, parent, last)
        found = importlib.machinery.ModuleSpec(name, _Loader(), origin=spec.origin,
                                               is_package=spec.submodule_search_locations is not None)
        if found.submodule_search_locations is not None:
            found.submodule_search_locations.extend(spec.submodule_search_locations)
        return found

    @staticmethod
    def _refuse(name, parent, last):
        if last.startswith("_C") and parent == "torch":
            raise ModuleNotFoundError(
                "torch._C is PyTorch's own compiled module; Flambeau has none of its names, and extensions "
                "that were compiled for PyTorch do not run on it", name=name)
        package = importlib.import_module(_own_name(parent))
        known = {n for n, v in vars(package).items() if type(v) is type(sys)}
        known |= set(getattr(package, "_MODULES", ()))
        raise ModuleNotFoundError(f"Flambeau has no module '{name}'{nearest(last, known)}", name=name)

    @staticmethod
    def find_distributions(context=None):
        """What importlib.metadata asks for: is "torch" installed, and which version?"""
        from ._distribution import torch_distribution

        return [torch_distribution()] if context is not None and context.name == "torch" else []


_finder = _Finder()


def as_torch():
    """From now on `import torch` and `import torch.x` give Flambeau's modules, the same objects.

    Raises RuntimeError if PyTorch itself has been imported already.
    """
    package = sys.modules[_PACKAGE]
    loaded = sys.modules.get("torch")
    if loaded is package:
        return package
    if loaded is not None:
        raise RuntimeError("flambeau.as_torch() must be called before PyTorch itself is imported")
    sys.meta_path.insert(0, _finder)
    sys.modules["torch"] = package
    for name in _COMPILED:
        sys.modules.setdefault(name, None)
    return package
