"""Whether this library computes."""
enabled = False


def is_available():
    return False
