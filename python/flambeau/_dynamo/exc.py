"""Exceptions that programs catch."""


class TorchDynamoException(RuntimeError):
    pass


class Unsupported(TorchDynamoException):
    pass


class BackendCompilerFailed(TorchDynamoException):
    pass


class InvalidBackend(TorchDynamoException):
    pass


class RecompileLimitExceeded(Unsupported):
    pass


class InternalTorchDynamoError(TorchDynamoException):
    pass


class UserError(Unsupported):
    pass


class FailOnRecompileLimitHit(Exception):
    pass
