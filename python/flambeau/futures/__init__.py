"""Results that come later, from other threads."""
import threading
from concurrent import futures as _futures

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """set_result() or set_exception() once; wait() for it."""

    def __init__(self, *, devices=None):
        self._inner = _futures.Future()

    def done(self):
        return self._inner.done()

    def wait(self):
        return self._inner.result()

    value = wait

    def set_result(self, result):
        self._inner.set_result(result)

    def set_exception(self, result):
        self._inner.set_exception(result)

    def add_done_callback(self, callback):
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback):
        """A future of callback(self)."""
        after = Future()

        def run(_):
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(error)

        self._inner.add_done_callback(run)
        return after


def wait_all(futures):
    """The results of all."""
    return [f.wait() for f in futures]


def collect_all(futures):
    """A future of the list of futures, which is there once all of them are done."""
    futures, result, lock = list(futures), Future(), threading.Lock()
    left = [len(futures)]

    def one_is_done(_):
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one_is_done)
    if not futures:
        result.set_result(futures)
    return result
