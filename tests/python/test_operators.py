"""Every operator of the table against NumPy and SciPy, on its own samples, in every dtype that it takes."""
import warnings

import numpy as np
import pytest

import flambeau as fl
from conversion import array, for_reference
from flambeau import _C
import references_linalg  # adds to REFERENCES
from references import REFERENCES
import references_nn  # noqa: F401 (adds its own)
import references_recurrent  # noqa: F401 (adds its own)

SEED = 2026
DTYPES = [fl.bool, fl.uint8, fl.int8, fl.int16, fl.int32, fl.int64, fl.float16, fl.bfloat16, fl.float32,
          fl.float64, fl.complex64, fl.complex128]
OPERATORS = {o["full_name"]: o for o in _C._operators() if o["functional"] is None}
SAMPLED = [name for name, o in OPERATORS.items() if o["has_samples"]]

# Operators whose values NumPy and SciPy do not say, and why.
EXEMPT = {
    "_as_number": "a tensor that counts as a number in promotion, which NumPy has not",
    "empty.memory_format": "elements are not initialised",
    "empty_strided": "elements are not initialised",
    "empty_like": "elements are not initialised",
    "empty_permuted": "elements are not initialised",
    "new_empty_strided": "elements are not initialised",
    "as_strided_copy": "as_strided",
    "view_copy.dtype": "view.dtype",
    "new_empty": "elements are not initialised",
    "nextafter": "float64 has no neighbour of a float32: tested in its own dtype below",
    "view.dtype": "bits seen as another dtype: tested below",
    "as_strided": "elements of a storage and not of a tensor: tested below",
    "as_strided_scatter": "elements of a storage and not of a tensor",
    "_as_strided_add": "elements of a storage and not of a tensor",
    "_reflection_pad_add": "the gradient of _reflection_pad, tested as such in C++",
    "_replication_pad_add": "the gradient of _replication_pad, tested as such in C++",
    "unfold_backward": "the gradient of unfold, tested as such in C++",
    "_max_pool_backward": "the gradient of _max_pool, tested as such in C++",
    "_avg_pool_backward": "the gradient of _avg_pool, tested as such in C++",
    "_adaptive_avg_pool_backward": "the gradient of _adaptive_avg_pool, tested as such in C++",
    "_lstm_step_backward": "the gradient of _lstm_step, tested as such in C++",
    "_gru_step_backward": "the gradient of _gru_step, tested as such in C++",
    "col2im": "the gradient of im2col, tested as such in C++",
    "nan_to_num": "its numbers are limits of the dtype: tested below",
    "_index_put": "index_put without masks",
    "rms_norm": "its default eps is the dtype's: tested below",
    "_fused_rms_norm": "as rms_norm",
    "_unique2": "tested below",
    "_search": "searchsorted and bucketize",
    "_attention": "draws by a seed; compared with scaled_dot_product_attention in test_attention.py",
    "_attention_backward": "the gradient of _attention, tested as such in C++",
    "_convolution_input_grad": "the gradient of convolution, tested as such in C++",
    "_convolution_weight_grad": "the gradient of convolution, tested as such in C++",
    "_linalg_eigh": "vectors up to a sign: test_linalg.py",
    "linalg_eigh": "vectors up to a sign: test_linalg.py",
    "_linalg_eig": "vectors up to a factor, in no order: test_linalg.py",
    "linalg_eig": "vectors up to a factor, in no order: test_linalg.py",
    "linalg_eigvals": "in no order: test_linalg.py",
    "_linalg_svd": "vectors up to a sign: test_linalg.py",
    "linalg_svd": "vectors up to a sign: test_linalg.py",
    "svd": "vectors up to a sign: test_linalg.py",
    "linalg_ldl_factor_ex": "LAPACK's own form: test_linalg.py",
    "linalg_ldl_factor": "LAPACK's own form: test_linalg.py",
}

# Relative and absolute: rounding of the result, or of the intermediate steps that half types round too.
ROUNDING = {fl.float16: 4 * 2.0**-11, fl.bfloat16: 4 * 2.0**-8, fl.float64: 1e-9, fl.complex128: 1e-9}


# Operators whose decomposition rounds a number that stands for a tensor to float32.
ROUNDS_NUMBERS = {"logaddexp2"}


def is_random(operator):
    return operator["is_random"] or operator["name"].startswith("philox")


def tolerance_of(operator, arguments, result):
    """Of the least exact floating dtype that takes part."""
    least = ROUNDING.get(result.dtype, 0)
    if operator["name"] in ROUNDS_NUMBERS and not all(isinstance(a, fl.Tensor) for a in arguments):
        least = 1e-8
    for a in arguments:
        if isinstance(a, fl.Tensor) and a.dtype in (fl.float16, fl.bfloat16):
            least = max(least, ROUNDING[a.dtype])
        elif isinstance(a, fl.Tensor) and a.dtype in (fl.float32, fl.complex64):
            least = max(least, operator["tolerance"])
    return least if least else operator["tolerance"]


def compare(got, expected, tolerance, where):
    assert isinstance(got, fl.Tensor) == (not isinstance(expected, tuple)), where
    if isinstance(got, tuple):
        assert len(got) == len(expected), where
        return [compare(g, e, tolerance(g), where) for g, e in zip(got, expected)]
    expected, got = np.asarray(expected), array(got)
    assert got.shape == expected.shape, f"{where}: shape {got.shape}, expected {expected.shape}"
    if got.dtype.kind in "fc":
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            expected = expected.astype(got.dtype).astype(wide) if tolerance > 1e-4 else expected.astype(wide)
        np.testing.assert_allclose(got.astype(wide), expected, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        with np.errstate(all="ignore"):
            if expected.dtype.kind == "f" and got.dtype != bool:
                expected = expected.astype(np.int64)
            expected = expected.astype(got.dtype)
        np.testing.assert_array_equal(got, expected, err_msg=where)


def flat(results):
    """Results with the items of a list among them in its place."""
    for r in results:
        yield from r if isinstance(r, tuple) else (r,)


def samples(name):
    for dtype in DTYPES:
        for arguments, note, error in _C._samples(name, dtype, SEED):
            yield dtype, arguments, note, error


@pytest.mark.parametrize("name", [n for n in SAMPLED if n not in EXEMPT and not is_random(OPERATORS[n])])
def test_against_reference(name, record_property):
    operator, compared = OPERATORS[name], 0
    assert name in REFERENCES, f"{name}: write a reference in references.py or exempt it with a reason"
    for dtype, arguments, note, error in samples(name):
        if error:
            continue
        where = f"{operator['schema']} [{dtype}, {note}]"
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = REFERENCES[name](*map(for_reference, arguments))
        got = _C._call(name, *arguments)
        if isinstance(got, tuple):
            assert len(got) == len(expected), where
            for g, e in zip(flat(got), flat(expected), strict=True):
                compare(g, e, tolerance_of(operator, arguments, g), where)
        elif isinstance(got, fl.Tensor):
            compare(got, expected, tolerance_of(operator, arguments, got), where)
        else:
            assert got == expected, where
        compared += 1
    record_property("samples", compared)
    assert compared > 0, f"no sample of {name} gives values"


@pytest.mark.parametrize("name", SAMPLED)
def test_errors_are_python_exceptions(name):
    for dtype, arguments, note, error in samples(name):
        if not error:
            continue
        kind, _, part = error.partition(": ")
        with pytest.raises(Exception) as raised:
            _C._call(name, *arguments)
        kinds = [c.__name__ for c in type(raised.value).__mro__]  # some are known to Python alone: subclasses
        assert kind in kinds, f"{name} [{dtype}, {note}]: {raised.value!r}"
        assert part in str(raised.value), f"{name} [{dtype}, {note}]"


def public_call(operator, arguments):
    """As a user writes it: keywords after the star, the overload chosen by the types."""
    positional = [a for a, (_, _, keyword_only) in zip(arguments, operator["arguments"]) if not keyword_only]
    keywords = {n: a for a, (n, _, keyword_only) in zip(arguments, operator["arguments"]) if keyword_only}
    return getattr(_C, operator["name"])(*positional, **keywords)


def is_plain(operator, arguments):
    """No number stands for a tensor: max(x, 1) is max.dim and not max.other."""
    return not any(t == "Tensor" and not isinstance(a, fl.Tensor)
                   for a, (_, t, _) in zip(arguments, operator["arguments"]))


def bits(result):
    if isinstance(result, tuple):
        return [bits(r) for r in result]
    return result.dtype, result.shape, np.ascontiguousarray(array(result)).tobytes()


@pytest.mark.parametrize("name", [n for n in SAMPLED if not n.startswith(("empty", "new_empty"))
                                  and not is_random(OPERATORS[n])])
def test_public_function_is_the_operator(name):
    operator = OPERATORS[name]
    for dtype, arguments, note, error in samples(name):
        if error or not is_plain(operator, arguments):
            continue
        exact, public = _C._call(name, *arguments), public_call(operator, arguments)
        if isinstance(exact, (fl.Tensor, tuple)):
            assert bits(exact) == bits(public), f"{name} [{dtype}, {note}]"
        else:
            assert exact == public


def test_every_operator_has_samples():
    without = [n for n, o in OPERATORS.items() if not o["has_samples"] and not o["schema"].endswith("-> ()")]
    assert not without


def test_exemptions_are_needed():
    assert not [n for n in EXEMPT if n not in OPERATORS or n in REFERENCES]


def test_references_name_operators():
    assert not [n for n in REFERENCES if n not in OPERATORS]


@pytest.mark.parametrize("name", [n for n in SAMPLED if is_random(OPERATORS[n])])
def test_random_operators_repeat_with_their_seed(name):
    for dtype, arguments, note, error in samples(name):
        if error:
            continue
        results = []
        for _ in range(2):
            fl.manual_seed(5)
            results.append(bits(_C._call(name, *arguments)))
        assert results[0] == results[1], f"{name} [{dtype}, {note}]"


def test_numbers_in_the_place_of_nan():
    a = np.array([np.nan, np.inf, -np.inf, 1.5], np.float32)
    np.testing.assert_array_equal(fl.from_numpy(a).nan_to_num().numpy(), np.nan_to_num(a))
    assert fl.from_numpy(a).nan_to_num(1.0, 2.0, 3.0).tolist() == [1, 2, 3, 1.5]


def test_rms_norm():
    a = np.random.default_rng(0).normal(size=(4, 6))
    expected = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(fl.rms_norm(fl.from_numpy(a), (6,), None, 1e-3).numpy(), expected)


def test_masked_select():
    a = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(fl.masked_select(fl.from_numpy(a), fl.from_numpy(a > 5)).numpy(), a[a > 5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter(dtype):
    a = np.array([0, 1, -1, np.inf, 1e-45, 3], dtype)
    b = np.array([1, 0, -1, 0, 0, np.nan], dtype)
    got = fl.nextafter(fl.from_numpy(a), fl.from_numpy(b))
    np.testing.assert_array_equal(got.numpy(), np.nextafter(a, b))


def test_view_of_another_dtype():
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(fl.from_numpy(a).view(fl.int32).numpy(), a.view(np.int32))
    np.testing.assert_array_equal(fl.from_numpy(a).view(fl.uint8).numpy(), a.view(np.uint8))


def test_as_strided():
    a = np.arange(12, dtype=np.float64)
    got = fl.from_numpy(a).as_strided((3, 2), (2, 1), 1).numpy()
    np.testing.assert_array_equal(got, np.lib.stride_tricks.as_strided(a[1:], (3, 2), (16, 8)))


@pytest.mark.parametrize("values", [[3, 1, 2, 1, 3, 3], [7], []])
def test_unique2(values):
    x = np.array(values, dtype=np.int64)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    got = _C._call("_unique2", fl.from_numpy(x), True, True, True)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_array_equal(g.numpy(), e)
