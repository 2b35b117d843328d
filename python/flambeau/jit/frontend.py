"""Errors of TorchScript's parser; nothing raises them here."""


class NotSupportedError(RuntimeError):
    pass


class UnsupportedNodeError(NotSupportedError):
    pass
