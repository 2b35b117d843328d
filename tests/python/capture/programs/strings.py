"""Strings, formatting, printing, logging and warnings."""
import logging
import warnings

import flambeau as torch
from program import program

logger = logging.getLogger("programs")


def x2():
    return (torch.tensor([1.0, 2.0]),)


def x_and_word():
    return torch.tensor([1.0, 2.0]), "layer"


def x_and_number():
    return torch.tensor([1.0, 2.0]), 3


@program(x_and_number, lambda: (torch.ones(2), 12), lambda: (torch.ones(2), 2.5))
def f_strings(x, n):
    return (
        x * n,
        f"n={n}",
        f"{n:>6}|{n:06.2f}",
        f"{n!r}{n + 1}",
        f"{n=}",
        f"{'quoted' + str(n)!s:>10}",
        f"{{}}",
    )


@program(lambda: (torch.ones(2, 3), "w"))
def f_strings_of_facts(x, name):
    return f"{name}: {x.shape[0]}x{x.shape[1]} {x.dtype} {tuple(x.shape)} {x.dim():02d} {x.requires_grad}"


@program(lambda: (torch.tensor([1.5, 2.5]), torch.tensor(3.25)))
def f_strings_of_tensors(x, s):
    return f"{x.tolist()} {s.item():.1f} {s:.2f}", str(x), repr(s)


@program(x_and_word)
def nested_f_strings(x, word):
    width = 8
    return f"{word:>{width}}|{word:*^{width + 2}}|{f'<{word}>':<10}", x * width


@program(x_and_word)
def format_methods(x, word):
    return (
        "{} {1}".replace("1", "").format(word, 5),
        "{0}-{name:>5}".format(word, name="n"),
        "%s %d %.2f %%" % (word, 3, 1.5),
        format(7, "x"),
    )


@program(x_and_word, lambda: (torch.ones(2), "Block.0"))
def string_methods(x, word):
    return (
        word.upper(),
        word.startswith("lay"),
        word.split("."),
        word.replace("l", "L"),
        word.find("y"),
        word.strip("l"),
        word * 2,
        word[::-1],
        word.isalpha(),
        "".join(sorted(word)),
        word.partition("."),
        word.encode(),
        len(word),
        word.title(),
        word.zfill(8),
        x * len(word),
    )


@program(x_and_word)
def string_operators(x, word):
    return (
        word + "!",
        "a" in word,
        word < "m",
        word == "layer",
        word[0],
        word[-2:],
        x if word else -x,
        [*word],
        hash(word) == hash("layer"),
    )


@program(
    lambda: (torch.ones(2), "relu"), lambda: (torch.ones(2), "sigmoid"), lambda: (torch.ones(2), "no_such")
)
def function_by_name(x, name):
    return getattr(torch, name)(x)


@program(lambda: (torch.ones(2), "a.b.c"))
def builds_a_key(x, path):
    table = {}
    for i, part in enumerate(path.split(".")):
        table[f"{part}_{i}"] = x * i
    return table


@program(x2)
def prints(x):
    print("shape", tuple(x.shape), sep=": ", end="!\n")
    y = x * 2
    print(f"sum {y.sum().item():.1f}")
    print(y)
    print()
    return y


@program(x2)
def prints_in_order_with_work(x):
    for i in range(3):
        print("step", i)
        x = x + i
        print(x.tolist())
    return x


def log_and_double(x):
    print("double")
    return x * 2


@program(x2)
def prints_in_a_callee(x):
    print("before")
    y = log_and_double(log_and_double(x))
    print("after")
    return y


@program(x_and_number, lambda: (torch.ones(2), 10))
def prints_on_a_branch(x, n):
    if n > 5:
        print("big")
    else:
        print("small")
    return x + n


@program(x2)
def logs(x):
    logger.warning("shape is %s", tuple(x.shape))
    y = x + 1
    logger.error("sum %d of %s", 3, "layer")
    logger.debug("never seen")
    return y


@program(x2)
def warns(x):
    y = x * 2
    warnings.warn("this is old", DeprecationWarning)
    warnings.warn(f"rank {x.dim()}")
    return y + 1


@program(x2)
def catches_warnings(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("inside")
    return x * len(caught), str(caught[0].message)


@program(x2)
def warning_as_error(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("not this", UserWarning)
    return x


@program(x_and_word)
def bytes_and_characters(x, word):
    data = word.encode() + b"\x00\xff"
    return (
        data,
        data[0],
        bytearray(data)[-1],
        ord("a"),
        chr(98),
        x * len(data),
        b"lay" in data,
        data.hex(),
        int.from_bytes(data[:2], "big"),
    )


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"str of {self.name}"

    def __repr__(self):
        return f"Named({self.name!r})"

    def __format__(self, spec):
        return f"[{self.name}:{spec}]"


@program(lambda: (torch.ones(2), Named("n")))
def own_formatting(x, named):
    return (
        f"{named} {named!s} {named!r} {named:spec} {[named]}",
        "%s %r" % (named, named),
        str(named),
        x + len(repr(named)),
    )


@program(lambda: (torch.ones(2), ["b", "a"]))
def joins_and_sorts(x, words):
    words.sort()
    return "/".join(words), "/".join(reversed(words)), x * len("".join(words)), ",".join(map(str, x.shape))


@program(x2)
def type_names(x):
    return (
        type(x).__name__,
        x.__class__.__name__,
        [type(v).__name__ for v in (1, 1.0, "a", None, [], (), {}, x.shape, x.dtype)],
    )


@program(x_and_word)
def string_concatenation_in_a_loop(x, word):
    text = ""
    for letter in word:
        text += letter.upper() if letter in "aeiou" else letter
    return text, x + len(text)
