"""Whether this library computes."""


def is_available():
    return False
