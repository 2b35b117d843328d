"""Files from the network, and where they are kept."""
import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.request
import zipfile
from urllib.parse import urlparse

from . import serialization

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_folder = None


def _get_torch_home():
    """$TORCH_HOME, or torch/ in the cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """The folder that files are kept in."""
    return _folder or os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Writes what a URL gives to a file. hash_prefix: what its SHA-256 must begin with."""
    dst = os.path.expanduser(dst)
    request = urllib.request.Request(url, headers={"User-Agent": "flambeau.hub"})
    with urllib.request.urlopen(request) as source, tempfile.NamedTemporaryFile(
            delete=False, dir=os.path.dirname(dst) or ".") as file:
        try:
            digest = hashlib.sha256()
            while chunk := source.read(1 << 17):
                file.write(chunk)
                digest.update(chunk)
            file.close()
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got '
                                   f'"{digest.hexdigest()}")')
            shutil.move(file.name, dst)
        finally:
            if os.path.exists(file.name):
                os.remove(file.name)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False,
                             file_name=None,
                             weights_only=False):
    """load() of a URL's file, which is kept."""
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(os.path.basename(path)) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) == 1:  # PyTorch packed some files once more
                path = archive.extract(names[0], folder)
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


def _refuse(*args, **kwargs):
    raise NotImplementedError("torch.hub does not run programs from the network here: install the model's "
                              "package")


load = list = help = _refuse
