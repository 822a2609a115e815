"""Argument checks shared by the golden models: one wording, one place."""

from operator import index

import numpy as np

__all__ = ["check_exponents", "check_int", "check_integers", "check_reals", "check_shape"]


def check_int(name, value, low, high):
    """Return ``value`` as an ``int``; TypeError or ValueError unless it lies in ``low..high``."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not low <= number <= high:
        raise ValueError(f"{name} must be in {low}..{high}, not {value!r}")
    return number


def check_shape(name, array, shape):
    """ValueError unless ``array`` has this ``shape``; ``None`` there stands for any size."""
    fits = array.ndim == len(shape) and all(
        want is None or want == size for want, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({wanted}), not {array.shape}")


def check_integers(name, array, low, high, shape=None):
    """Return ``array`` as int64 after checking dtype, range and (if given) shape."""
    array = np.asarray(array)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer array, not of dtype {array.dtype}")
    if shape is not None:
        check_shape(name, array, shape)
    if array.size and (array.min() < low or array.max() > high):
        raise ValueError(
            f"{name} must be in {low}..{high}, not {array.min()}..{array.max()}"
        )
    return array.astype(np.int64)


def check_exponents(name, array, shape=None):
    """Return E8M0 exponents as int64 after checking them: 0..254 (255 is NaN)."""
    return check_integers(name, array, 0, 254, shape)


def check_reals(name, array):
    """Return ``array`` as float64 (at least one dimension); it must hold finite real numbers."""
    array = np.asarray(array)
    if array.dtype.kind not in "fiu" and not np.can_cast(array.dtype, np.float32):
        raise TypeError(f"{name} must be a real array, not of dtype {array.dtype}")
    if array.ndim == 0:
        raise ValueError(f"{name} must have at least one dimension, not a single {array!r}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, not NaN or infinite")
    return array
