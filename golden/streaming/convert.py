"""Elements to stored MXINT8 rows, in the hardware's integer steps.

Source: section 5 of ``docs/wire_format.md``. The result is that of :func:`golden.mxint.quantise` on
the exact values, which a test holds it to; here each step is one that hardware takes.
"""

import numpy as np

from golden.checks import check_int, check_integers
from golden.fixed import bit_length, rnd_even
from golden.mxint import ELEMENT_MAX, EXPONENT_MAX, canonical
from golden.streaming.layout import Format
from hw.config import ELEMENT_FRACTION_BITS, EXPONENT_BIAS

__all__ = ["quantise_elements", "stored_rows"]

SIGNIFICAND_MAX = (1 << 15) - 1  # of a product of -128 and a bfloat16's 8 bits
_SCALE_BIAS = EXPONENT_BIAS + ELEMENT_FRACTION_BITS
_BELOW_ALL = -(1 << 20)  # exponent of zero


def quantise_elements(significands, exponents, block):
    """MXINT8 of elements ``significand * 2**exponent``.

    Parameters
    ----------
    significands : integer array [..., d], -32767..32767
    exponents : integer array [..., d], -133..127
    block : int
        Elements that share an exponent; divides d.

    Returns
    -------
    mantissas : int8 [..., d]
        Rounded half to even, clipped to -127..127.
    exponents : uint8 [..., d // block]
    """
    significands = check_integers("significands", significands, -SIGNIFICAND_MAX, SIGNIFICAND_MAX)
    exponents = check_integers("exponents", exponents, -133, 127, significands.shape)
    dim = significands.shape[-1]
    if dim % check_int("block", block, 1, dim):
        raise ValueError(f"block must divide the last dimension ({dim}), not {block!r}")
    shape = (*significands.shape[:-1], dim // block, block)
    magnitude, exponents = np.abs(significands).reshape(shape), exponents.reshape(shape)
    octave = np.where(magnitude > 0, bit_length(magnitude) - 1 + exponents, _BELOW_ALL)
    top = octave.max(axis=-1, keepdims=True)
    shared = np.clip(top + EXPONENT_BIAS, 0, EXPONENT_MAX)
    shift = shared - _SCALE_BIAS - exponents
    # Only zeros would be shifted further to the left than their block's largest element.
    left = np.clip(-shift, 0, ELEMENT_FRACTION_BITS)
    rounded = rnd_even(magnitude << left, np.maximum(shift, 0))
    mantissas = np.minimum(rounded, ELEMENT_MAX).reshape(significands.shape)
    return (np.sign(significands) * mantissas).astype(np.int8), shared[..., 0].astype(np.uint8)


def stored_rows(fmt, significands, exponents, block):
    """Stored rows of a chunk's elements.

    Parameters
    ----------
    fmt : Format
    significands, exponents : int64 [tokens, 2, d]
        As of :func:`golden.streaming.payload.decode_payload`.
    block : int
        Elements that share an exponent.

    Returns
    -------
    mantissas : int8 [tokens, 2, d]
    exponents : uint8 [tokens, 2, d // block]
        0 for a block of zeros.
    """
    if fmt == Format.MXINT8:
        shared = exponents[..., ::block] + _SCALE_BIAS
        return significands.astype(np.int8), canonical(significands, shared)
    return quantise_elements(significands, exponents, block)
