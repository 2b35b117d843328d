"""Exceptions that travel between processes and threads."""
import sys
import traceback

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


class KeyErrorMessage(str):
    """KeyError shows the repr of its argument; this one's repr is the text, with its lines."""

    def __repr__(self):
        return self


class ExceptionWrapper:
    """The exception that is being handled, as text: it can be pickled. reraise() raises one of its type
    again.
    """

    def __init__(self, exc_info=None, where="in background"):
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_name = kind.__name__
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))

    def reraise(self):
        message = f"Caught {self.exc_name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            error = self.exc_type(message)
        except Exception:  # its constructor wants something else
            error = RuntimeError(message)
        raise error
