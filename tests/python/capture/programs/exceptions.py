"""Raising, handling, cleaning up, and exceptions that come out of the function."""
import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


def with_n(*values):
    return [lambda n=n: (torch.tensor([1.0, 2.0]), n) for n in values]


class OwnError(Exception):
    pass


class CodedError(OwnError):
    def __init__(self, code, text="coded"):
        super().__init__(f"{text}: {code}")
        self.code = code


@program(*with_n(0, 1))
def raises(x, n):
    y = x * 2
    if n == 0:
        raise ValueError(f"expected n, got {n}")
    return y


@program(x2)
def raises_a_class(x):
    x + 1
    raise KeyError


@program(x2)
def raises_own(x):
    raise CodedError(x.shape[0] * 21, text="shape")


@program(*with_n(0, 1, 2, 3))
def handlers(x, n):
    try:
        if n == 0:
            raise ValueError("value")
        if n == 1:
            raise KeyError("key")
        if n == 2:
            raise CodedError(5)
    except ValueError:
        return x + 1
    except (KeyError, IndexError) as error:
        return x * 2, error.args
    except OwnError as error:
        return x - 1, str(error), error.code
    return x


@program(*with_n(0, 1))
def try_else_finally(x, n):
    log = []
    try:
        log.append("try")
        if n:
            raise RuntimeError("n")
    except RuntimeError:
        log.append("except")
        x = x * 2
    else:
        log.append("else")
        x = x + 1
    finally:
        log.append("finally")
    return x, log


@program(*with_n(0, 1), lambda: (torch.ones(2), []))
def finally_while_raising(x, n):
    try:
        y = x / (1 if n == [] else 10 // n)
    finally:
        print("cleanup")
    return y


@program(x2)
def finally_returns(x):
    try:
        raise ValueError("lost")
    finally:
        return x + 1  # noqa: B012


@program(x2)
def return_in_try(x):
    log = []

    def inner():
        try:
            return x * 2
        finally:
            log.append("left")

    return inner(), log


@program(x2)
def raise_from(x):
    try:
        [][1]
    except IndexError as error:
        raise OwnError("wrapped") from error


@program(x2)
def raise_from_none(x):
    try:
        {}["a"]
    except KeyError:
        raise OwnError("hidden") from None


@program(x2)
def raise_while_handling(x):
    try:
        raise ValueError("first")
    except ValueError:
        x = x + 1
        raise OwnError("second")


@program(x2)
def reraise(x):
    try:
        raise CodedError(3)
    except OwnError:
        print("seen")
        raise


@program(x2)
def reraise_by_name(x):
    try:
        int("x")
    except ValueError as error:
        error.note = "added"
        raise error


@program(*with_n(0, 1, 2))
def nested_handlers(x, n):
    try:
        try:
            if n == 0:
                raise KeyError("inner")
            if n == 1:
                raise OwnError("outer")
        except KeyError:
            x = x * 2
            raise OwnError("from the handler")
        finally:
            x = x + 10
    except OwnError as error:
        return x, str(error), type(error.__context__).__name__
    return x


@program(*with_n(3, 5))
def handler_in_a_loop(x, n):
    good = 0
    for i in range(n):
        try:
            if i % 2:
                raise ValueError(i)
            good += 1
        except ValueError as error:
            if error.args[0] == 3:
                break
            continue
        finally:
            x = x + i
    return x, good


def refuse(x, n):
    if n > 1:
        raise OwnError("too big", n)
    return x + n


@program(*with_n(1, 2))
def raised_in_a_callee(x, n):
    y = x * 2
    return refuse(y, n)


@program(*with_n(1, 2))
def caught_from_a_callee(x, n):
    try:
        return refuse(x, n)
    except OwnError as error:
        return error.args, x


@program(*with_n(1, 2))
def caught_two_calls_up(x, n):
    def middle(y):
        return refuse(y, n) * 2

    try:
        return middle(x)
    except Exception as error:
        return type(error).__name__, x


@program(*with_n(1, 0))
def asserts(x, n):
    assert x.dim() == 1
    assert n, f"n is {n}"
    return x * n


@program(x2)
def assert_without_message(x):
    y = x + 1
    assert y.shape[0] == 3
    return y


@program(x2)
def error_of_an_operation(x):
    y = x * 2
    return y @ torch.ones(3, 3)


@program(x2)
def handled_error_of_an_operation(x):
    try:
        return x @ torch.ones(3, 3)
    except RuntimeError:
        return x + 1


@program(x2)
def handled_index_error_of_a_tensor(x):
    try:
        return x[10]
    except IndexError:
        x = x + 5
    try:
        return x.sum(dim=4)
    except LookupError:
        return x * 2


@program(x2)
def error_after_side_effects(x):
    x.add_(1)
    items = [x]
    print("worked")
    return items[3]


@program(lambda: (torch.ones(2), [], {"a": 1}))
def error_after_changing_arguments(x, items, table):
    items.append(x)
    table["b"] = x * 2
    del table["a"]
    return table["a"]


@program(x2)
def attribute_error(x):
    return x.no_such_attribute


@program(x2)
def type_error(x):
    return len(5), x


@program(x2)
def error_of_none(x):
    table = {"w": None}
    return x + table["w"].weight


@program(x2)
def handled_attribute_error(x):
    try:
        x.nothing
    except AttributeError:
        return x + 1


@program(x2)
def handler_variable_is_gone(x):
    error = "before"
    try:
        raise ValueError
    except ValueError as error:  # noqa: F841
        pass
    return x, error  # noqa: F821


@program(*with_n(0, 1))
def handler_of_a_variable_kind(x, n):
    kinds = (KeyError, ValueError)[n]
    try:
        raise ValueError("v")
    except kinds:
        return x + 1


@program(x2)
def exception_object_is_returned(x):
    try:
        raise CodedError(9)
    except CodedError as error:
        return error


@program(x2)
def exceptions_as_values(x):
    made = [ValueError("a", 1), OwnError(x)]
    return made[0].args, made[1].args[0] * 2, isinstance(made[1], Exception), repr(made[0])


@program(x2)
def not_an_exception(x):
    y = x + 1
    raise y


@program(x2)
def stop_iteration(x):
    values = iter([1])
    next(values)
    try:
        next(values)
    except StopIteration:
        x = x * 3
    return x, next(values, None)


class Resource:
    def __init__(self):
        self.open = False

    def use(self, x, fail):
        self.open = True
        try:
            if fail:
                raise OwnError("failed inside")
            return x * 2
        finally:
            self.open = False


@program(lambda: (torch.ones(2), Resource(), False), lambda: (torch.ones(2), Resource(), True))
def attribute_reset_in_finally(x, resource, fail):
    return resource.use(x, fail)


@program(x2)
def loud_property(x):
    class Loud:
        @property
        def value(self):
            raise OwnError("from a property")

        def __getitem__(self, i):
            raise CodedError(i)

    try:
        Loud()[4]
    except CodedError as error:
        x = x + error.code
    return x, Loud().value


@program(x2)
def exception_with_notes(x):
    error = OwnError("noted")
    error.add_note("see here")
    raise error


@program(*with_n(2, 0))
def division_by_an_integer_argument(x, n):
    return x * (10 // n)


@program(x2)
def raised_through_finally(x):
    total = int(x.sum())
    try:
        raise ValueError(total)
    finally:
        x.zero_()


KEPT = ValueError("kept")


@program(x2)
def raises_an_exception_from_outside(x):
    y = x * 2
    try:
        raise KEPT
    finally:
        y.zero_()
