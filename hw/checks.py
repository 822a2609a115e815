"""Argument checks shared by the constructors of the units."""


def check_int(name, value, *, minimum=None, maximum=None):
    """Return ``value`` if it is an integer in the range asked for, otherwise raise.

    Raises
    ------
    TypeError
        ``value`` is not an integer (a ``bool`` is not one either).
    ValueError
        ``value`` is below ``minimum`` or above ``maximum``.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value!r}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{name} must be at most {maximum}, not {value!r}")
    return value


def check_config(owner, config, kind):
    """Return ``config`` if it is a ``kind``, otherwise raise TypeError that names ``owner``."""
    if not isinstance(config, kind):
        raise TypeError(f"{owner} config must be a {kind.__name__}, not {config!r}")
    return config
