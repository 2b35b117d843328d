"""Memory over 10^6 calls of a compiled function and 10^4 captures: it must not grow.

    PYTHONPATH=build/python python benchmarks/capture_memory.py [calls] [captures]

Captures are of four kinds: a function compiled anew, a code object made anew, one function whose guards fail
each time, and reset() between two calls. After a tenth of each the memory is taken as what is used for good;
what is printed is the growth from there to the end, of the process and of what malloc has given out.
"""
import ctypes
import gc
import sys

import flambeau as torch


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def allocated():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


def growth(name, step, count):
    for k in range(count // 10):
        step(k)
    gc.collect()
    before = resident(), allocated(), len(gc.get_objects())
    for k in range(count // 10, count):
        step(k)
    gc.collect()
    after = resident(), allocated(), len(gc.get_objects())
    process, heap, objects = (b - a for a, b in zip(before, after))
    done = count - count // 10
    print(f"{name}: {done} times, process {process / 1024:+.0f} KiB, malloc {heap / 1024:+.0f} KiB "
          f"({heap / done:+.1f} bytes each), {objects:+d} objects", flush=True)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    captures = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    x = torch.ones(4)
    compiled = torch.compile(lambda x: x + 1)
    growth("calls", lambda k: compiled(x), calls)
    growth("functions compiled", lambda k: torch.compile(lambda x: x + 1)(x), captures)

    def made_anew(k):
        world = {}
        exec("def f(x): return x * 2 + 1", world)
        torch.compile(world["f"])(x)

    growth("code objects", made_anew, captures)
    by_text = torch.compile(lambda x, text: x + len(text))

    def guard_fails(k):
        if k % 8 == 0:
            by_text.reset()
        by_text(x, "a" * (k % 8) + str(k % 1000 + 1000))

    growth("guards that failed", guard_fails, captures)

    def reset_between(k):
        torch._dynamo.reset()
        compiled(x)

    growth("resets", reset_between, captures // 10)


if __name__ == "__main__":
    main()
