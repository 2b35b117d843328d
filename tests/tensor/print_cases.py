"""Writes print_cases.json: tensors and the text that PyTorch prints for them. Run with PyTorch's environment."""

import json
import pathlib

import torch

torch.manual_seed(0)
cases = []


def number(v):
    if isinstance(v, complex):
        return [number(v.real), number(v.imag)]
    if isinstance(v, float) and (v != v or v in (float("inf"), -float("inf"))):
        return str(v)
    return v


def add(t, step=None):
    case = {"dtype": str(t.dtype)[6:], "sizes": list(t.shape), "device": t.device.type, "text": str(t)}
    if t.device.type == "cpu":
        if step is not None:
            case["step"] = step
        else:
            case["values"] = [number(v) for v in t.reshape(-1).tolist()]
    cases.append(case)


inf, nan = float("inf"), float("nan")
floats = [
    [], [0.0], [1.0], [-1.0, 2.0], [0.1, 100.0], [0.1, 1000.0], [1e-5], [1e9, 1.0], [1e8], [1.5e8], [nan],
    [inf, -inf, nan], [1.0, nan, inf], [1.5, nan, -inf], [1e-5, nan], [1e10, inf], [0.0, -0.0], [-0.0, 1.5],
    [1000.0, 1.0], [1001.0, 1.0], [0.99995], [9.99995e-5], [123456.789], [-0.00012345, 0.05], [3.0, 1e5],
    [2.5, 3.5, 0.5], [1e-38, 1e38], [16777216.0], [99999999.0, 100000000.0],
]
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    for values in floats:
        add(torch.tensor(values, dtype=dtype))
add(torch.tensor(1e-300, dtype=torch.float64))
add(torch.tensor([1e300, 1e-300, nan], dtype=torch.float64))
for values in (1.0, 2.5, nan, -inf, 1e-7, 3e12):
    add(torch.tensor(values))
for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    add(torch.tensor(7, dtype=dtype))
    add(torch.tensor([1, 20, 100], dtype=dtype))
    if dtype != torch.uint8:
        add(torch.tensor([[-1, 20], [100, 3]], dtype=dtype))
add(torch.tensor([-(2**63), 2**63 - 1]))
add(torch.tensor(True))
add(torch.tensor([[True, False], [False, False]]))
add(torch.tensor([True, True]))
for dtype in (torch.complex64, torch.complex128):
    add(torch.tensor(1 + 2j, dtype=dtype))
    add(torch.tensor([1 + 2j, 3 - 4j], dtype=dtype))
    add(torch.tensor([1.5 + 2j, 300 - 4.25j, 0j], dtype=dtype))
    add(torch.tensor([complex(nan, 1), complex(1, -inf), complex(-0.0, -0.0)], dtype=dtype))
    add(torch.tensor([1e-6 + 1e9j, -1j], dtype=dtype))
    add(torch.randn(3, 7, dtype=dtype))
    add(torch.zeros(0, 2, dtype=dtype))
for dtype in (torch.float32, torch.int64, torch.bool, torch.float64):
    for shape in ((0,), (0, 3), (2, 0, 4), (1, 0)):
        add(torch.zeros(shape, dtype=dtype))
for shape in ((7,), (30,), (1, 1), (3, 4), (2, 3, 4), (2, 1, 2, 3), (1, 1, 1, 1, 2), (10, 30), (5, 100), (2, 499)):
    add(torch.randn(shape))
    add(torch.randint(-1000, 100000, shape))
    add(torch.randn(shape, dtype=torch.float64) * 1e5)
add(torch.randint(0, 2, (6, 40)).bool())
add(torch.randn(20).half())
add(torch.randn(17, dtype=torch.float64))
for shape in ((1001,), (1000,), (2000,), (7, 1000), (6, 500), (1000, 7), (3, 400), (40, 5, 8), (7, 7, 7, 7), (1001, 1),
              (1, 1001), (2, 2, 2, 400), (50, 30)):
    n = 1
    for size in shape:
        n *= size
    for dtype, step in ((torch.int64, 3), (torch.float32, 1.0), (torch.float32, 0.125), (torch.float64, 0.5)):
        add((torch.arange(n, dtype=torch.float64) * step).to(dtype).reshape(shape), step)
for shape in ((), (3,), (2, 3)):
    for dtype in (torch.float32, torch.float64, torch.int64):
        add(torch.empty(shape, dtype=dtype, device="meta"))

path = pathlib.Path(__file__).with_name("print_cases.json")
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases")
