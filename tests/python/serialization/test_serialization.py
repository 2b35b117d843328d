"""save() and load(). files/ has what PyTorch 2.15 wrote: zip.pt, legacy.pt (the format before 1.6),
module.pt.
"""
import collections
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import flambeau as fl
from flambeau import optim, serialization
from flambeau.serialization import load, save

FILES = Path(__file__).parent / "files"


def again(x, **options):
    file = io.BytesIO()
    save(x, file)
    file.seek(0)
    return load(file, **options)


def check_contents(got):
    assert list(got)[:3] == ["a", "view", "step"] and type(got) is collections.OrderedDict
    assert got["a"].tolist() == [[1.5, -2.0], [3.0, 4.0]] and got["a"].dtype is fl.float32
    assert got["view"].tolist() == [2, 3, 4] and got["step"].tolist() == [0, 2, 4, 6, 8]
    assert got["t"].tolist() == [[0, 3], [1, 4], [2, 5]] and got["t"].stride() == (1, 3)
    assert got["bf"].dtype is fl.bfloat16 and got["bf"].float().tolist() == [1, 0.5]
    assert got["scalar"].item() == 3.5 and got["scalar"].dtype is fl.float64 and got["empty"].shape == (0, 3)
    assert got["flag"].tolist() == [True, False] and got["c"].tolist() == [1 + 2j]
    assert got["grad"].requires_grad and not got["a"].requires_grad
    assert got["plain"] == [1, 2.5, "x", None, (True, b"ab"), {"k": 2**70}]
    assert got["size"] == (2, 3) and got["dtype"] is fl.float16 and got["device"] == fl.device("cpu")
    assert isinstance(got["param"], fl.nn.Parameter) and got["param"].tolist() == [1, 1]
    got["view"][0] = 100
    assert got["step"][1].item() == 100  # one memory


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_files_of_pytorch(name, weights_only):
    check_contents(load(FILES / name, weights_only=weights_only))


def test_what_is_saved_comes_back():
    check_contents(again(load(FILES / "zip.pt")))


def test_mapped_memory():
    check_contents(load(str(FILES / "zip.pt"), mmap=True))
    check_contents(load(FILES / "zip.pt"))  # the file is as it was
    with pytest.raises(ValueError, match="must be a path"):
        load(io.BytesIO(), mmap=True)


def test_layout_of_the_archive(tmp_path):
    path = tmp_path / "model.v1.pt"
    save({"x": fl.ones(3), "y": fl.zeros(100)}, path)
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        records = {i.filename: i for i in archive.infolist()}
        assert list(records) == [f"model.v1/{n}" for n in ("data.pkl", ".format_version",
                                                           ".storage_alignment", "byteorder", "data/0",
                                                           "data/1", "version", ".data/serialization_id")]
        assert archive.read("model.v1/byteorder") == b"little" and archive.read("model.v1/version") == b"3\n"
        text = archive.read("model.v1/data.pkl")
    for i in records.values():
        name, extra = struct.unpack("<HH", raw[i.header_offset + 26:i.header_offset + 30])
        assert (i.header_offset + 30 + name + extra) % 64 == 0 and i.compress_type == zipfile.ZIP_STORED
    assert (b"ctorch._utils\n_rebuild_tensor_v2\n" in text and b"ctorch\nFloatStorage\n" in text
            and b"flambeau" not in text)


def test_shared_memory_is_saved_once():
    base = fl.zeros(1000)
    file = io.BytesIO()
    save([base, base[1:], base.view(10, 100)], file)
    assert file.tell() < 3 * 4000
    a, b, c = again([base, base[1:], base.view(10, 100)])
    a[1] = 5
    assert b[0].item() == 5 and c[0, 1].item() == 5


def test_state_of_an_optimizer():
    p = fl.ones(2, requires_grad=True)
    p.grad = fl.ones(2)
    first = optim.Adam([p], lr=0.1)
    first.step()
    second = optim.Adam([p])
    second.load_state_dict(again(first.state_dict()))
    assert second.param_groups[0]["lr"] == 0.1 and second.state[p]["step"].item() == 1
    assert second.state[p]["exp_avg"].tolist() == first.state[p]["exp_avg"].tolist()


class Point:
    def __init__(self, x):
        self.x = x


def dangerous():
    raise AssertionError("this was run")


class Attack:
    def __reduce__(self):
        return dangerous, ()


def test_nothing_unknown_is_run():
    with pytest.raises(pickle.UnpicklingError, match="refused .*dangerous"):
        again(Attack())
    with pytest.raises(AssertionError, match="this was run"):
        again(Attack(), weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match="Point"):
        again(Point(1))
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        load(FILES / "module.pt")
    assert isinstance(load(FILES / "module.pt", weights_only=False), fl.nn.Linear)


@pytest.mark.parametrize("text", [
    b"cbuiltins\neval\n(V1\ntR.", b"cposix\nsystem\n(Vx\ntR.", b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.",
    b"(Vx\nios\nsystem\n.", b"\x80\x02ctorch\nload\n.",
    b"\x80\x02ccollections\nOrderedDict\n(tR}Vx\nK\x01sb0cbuiltins\ngetattr\n.",
    b"\x80\x02cflambeau.serialization\nload\n.",
])
def test_attacks_on_the_unpickler(text):
    with pytest.raises(pickle.UnpicklingError):
        serialization.safe_unpickler.load(io.BytesIO(text))


def test_safe_globals():
    with serialization.safe_globals([Point]):
        assert again(Point(3)).x == 3
    with pytest.raises(pickle.UnpicklingError):
        again(Point(3))
    serialization.add_safe_globals([Point])
    assert serialization.get_safe_globals() == [Point] and again([Point(3)])[0].x == 3
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    assert (serialization.get_unsafe_globals_in_checkpoint(FILES / "module.pt")
            == ["torch.nn.modules.linear.Linear"])


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_plain_values_of_every_protocol(protocol):
    value = {"a": [1, -5, 2**40, 2**2000, 1.5, True, None], "b": ("x" * 300, "ä", b"bytes", b"z" * 300),
             "s": {1, 2}, "f": frozenset([3]), "n": {"deep": [[[]]]}, "c": 1 + 2j, "y": bytearray(b"q"),
             "o": collections.OrderedDict(z=1)}
    value["same"] = value["a"]
    if protocol < 2:
        value.pop("s"), value.pop("f"), value.pop("o"), value.pop("y")
    got = None
    try:
        got = serialization.safe_unpickler.load(io.BytesIO(pickle.dumps(value, protocol)))
    except pickle.UnpicklingError as error:
        assert protocol < 2, error  # instructions of text that no file of tensors has
    assert got is None or got == value and got["same"] is got["a"]


def test_devices():
    x = fl.ones(2)
    assert again({"x": x}, map_location="meta")["x"].device.type == "meta"
    assert again(x, map_location=lambda storage, location: storage).tolist() == [1, 1]
    assert again(x, map_location={"cpu": "cpu"}).tolist() == [1, 1]
    assert again(x, map_location=fl.device("cpu")).tolist() == [1, 1]
    file = io.BytesIO()
    save(x, file)
    moved = io.BytesIO(file.getvalue().replace(b"cpu", b"cud"))
    with pytest.raises(RuntimeError):
        load(moved)
    with pytest.raises(RuntimeError, match="map_location=torch.device"):
        again(x, map_location="cuda")


def file_of(x):
    file = io.BytesIO()
    save(x, file)
    return bytearray(file.getvalue())


@pytest.mark.parametrize("content, error, message", [
    (b"", EOFError, "empty"), (b"hello world", pickle.UnpicklingError, "damaged"),
    (pickle.dumps({"a": 1}), pickle.UnpicklingError, "pickle.dump"),
    (b"PK\x03\x04 and no more", RuntimeError, "damaged"),
    (bytes(file_of([1, 2])[:-30]), RuntimeError, "damaged or not complete"),
    ((FILES / "legacy.pt").read_bytes()[:-20], RuntimeError, "not complete"),
    ((FILES / "legacy.pt").read_bytes()[:300], (EOFError, pickle.UnpicklingError), "damaged|early"),
], ids=["empty", "text", "pickle", "begin", "cut", "legacy storages", "legacy pickles"])
def test_damaged_files(content, error, message):
    with pytest.raises(error, match=message):
        load(io.BytesIO(content))


def test_a_changed_byte_is_noticed():
    raw = file_of(fl.tensor([12345.0]))
    raw[raw.index(struct.pack("<f", 12345.0))] ^= 1
    with pytest.raises(RuntimeError, match="record data/0.*damaged"):
        load(io.BytesIO(raw))


def test_archives_of_other_kinds():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/constants.pkl", b"")
    file.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        load(file)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/readme", b"")
    file.seek(0)
    with pytest.raises(RuntimeError, match="no record data.pkl"):
        load(file)


def test_refuses():
    with pytest.raises(AttributeError, match="write"):
        save(1, 5)
    with pytest.raises(AttributeError, match="seekable"):
        load(5)
    with pytest.raises(NotImplementedError, match="before PyTorch 1.6"):
        save(1, io.BytesIO(), _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="pickle_module"):
        load(io.BytesIO(file_of(1)), pickle_module=pickle, weights_only=True)


def test_files_go_on_after_an_object(tmp_path):
    with open(tmp_path / "two.pt", "wb") as file:
        save(1, file)
    with open(tmp_path / "two.pt", "rb") as file:
        assert load(file) == 1
