"""Tensors without elements, and tensors with elements made like them."""
import pytest

import flambeau as fl


def test_like_a_tensor_without_elements():
    meta = fl.empty(2, 3, device="meta")
    assert fl.zeros_like(meta, device="cpu").tolist() == [[0] * 3] * 2
    assert fl.full_like(meta, 2.5, device="cpu").tolist() == [[2.5] * 3] * 2
    assert fl.ones_like(meta, device="cpu", dtype=fl.int64).tolist() == [[1] * 3] * 2
    assert fl.empty_like(meta, device="cpu").fill_(3).tolist() == [[3] * 3] * 2
    assert fl.zeros_like(meta).device.type == "meta" and fl.zeros_like(fl.ones(2),
                                                                       device="meta").device.type == "meta"
    with pytest.raises(RuntimeError):
        fl.zeros_like(meta).tolist()


def test_a_device_is_no_none():
    assert fl.device("cpu") != None and not fl.device("cpu") == None  # noqa: E711
