"""Orders of contractions in einsum, which goes from left to right: nothing reads the switches kept here."""
enabled, strategy = True, "auto"


def is_available():
    try:
        import opt_einsum  # noqa: F401
    except ImportError:
        return False
    return True


def get_opt_einsum():
    if not is_available():
        return None
    import opt_einsum

    return opt_einsum
