"""Stored rows (OCP MXINT8 in two nibble planes) and quantised queries: numerics sections 1 and 2.

Source: OCP Microscaling Formats (MX) Specification v1.0, MXINT8 and E8M0. A row keeps signed 8-bit
mantissas m and one exponent E per block: value = m * 2**-6 * 2**(E - 127).
"""

import numpy as np

from golden.checks import check_exponents, check_int, check_integers, check_reals
from hw.config import ELEMENT_FRACTION_BITS, EXPONENT_BIAS, PLANE_BITS

__all__ = [
    "canonical",
    "coarse",
    "dequantise",
    "dequantise_query",
    "pack_row",
    "quantise",
    "quantise_query",
    "unpack_row",
]

EXPONENT_MAX = 254  # 255 is NaN
ELEMENT_MAX = 127   # OCP lets -128 go unused, so that the range is symmetric


def _blocked(array, block):
    return array.reshape(*array.shape[:-1], array.shape[-1] // block, block)


def _block_size(name, array, blocks):
    dim = array.shape[-1] if array.ndim else 0
    if not dim or blocks < 1 or dim % blocks:
        raise ValueError(
            f"{name} must have a last dimension that is a positive multiple of the blocks "
            f"({blocks}), not shape {array.shape}"
        )
    return dim // blocks


def _scale(blocks, fraction_bits, limit):
    """Quantise the last axis of ``blocks`` with one exponent: mantissas and exponents, as int64."""
    largest = np.abs(blocks).max(axis=-1)
    # frexp gives largest = f * 2**e with f in [0.5, 1), so floor(log2(largest)) = e - 1, exactly.
    exponents = np.clip(np.frexp(largest)[1] - 1 + EXPONENT_BIAS, 0, EXPONENT_MAX)
    exponents = np.where(largest == 0, 0, exponents).astype(np.int64)
    scaled = np.ldexp(blocks, (EXPONENT_BIAS + fraction_bits - exponents)[..., np.newaxis])
    mantissas = np.clip(np.rint(scaled), -limit, limit).astype(np.int64)
    return mantissas, exponents


def quantise(x, block):
    """Real rows to MXINT8, as the host does before an append.

    E = floor(log2(max |x|)) + 127 clipped to 0..254 (0 for an all-zero block); mantissas are
    rounded half to even and clipped to -127..127.

    Parameters
    ----------
    x : real array [..., d]
        Finite; float64 is used inside, so that float32, bfloat16 and float16 inputs are exact.
    block : int
        Elements that share an exponent; divides d.

    Returns
    -------
    mantissas : int8 [..., d]
    exponents : uint8 [..., d // block]

    Raises
    ------
    TypeError, ValueError
        ``x`` is not real or not finite; ``block`` does not divide d.
    """
    x = check_reals("x", x)
    dim = x.shape[-1]
    block = check_int("block", block, 1, max(dim, 1))
    if dim == 0 or dim % block:
        raise ValueError(f"block must divide the last dimension ({dim}), not {block!r}")
    mantissas, exponents = _scale(_blocked(x, block), ELEMENT_FRACTION_BITS, ELEMENT_MAX)
    return mantissas.reshape(x.shape).astype(np.int8), exponents.astype(np.uint8)


def dequantise(mantissas, exponents):
    """MXINT8 rows to float64, exactly.

    Parameters
    ----------
    mantissas : integer array [..., d], -128..127
    exponents : integer array [..., blocks], 0..254

    Returns
    -------
    float64 [..., d]
    """
    mantissas = check_integers("mantissas", mantissas, -128, 127)
    exponents = check_exponents("exponents", exponents)
    block = _block_size("mantissas", mantissas, exponents.shape[-1] if exponents.ndim else 0)
    shift = np.repeat(exponents - EXPONENT_BIAS - ELEMENT_FRACTION_BITS, block, axis=-1)
    return np.ldexp(mantissas.astype(np.float64), shift)


def quantise_query(x, query_bits):
    """Real query heads to ``query_bits``-bit mantissas with one exponent each (numerics section 2).

    Parameters
    ----------
    x : real array [..., d]
        Queries with log2(e) / sqrt(d) already folded in.
    query_bits : int
        8 or 16.

    Returns
    -------
    mantissas : int8 or int16 [..., d]
        Rounded half to even, clipped to the symmetric range.
    exponents : uint8 [...]
    """
    x = check_reals("x", x)
    if check_int("query_bits", query_bits, 8, 16) not in (8, 16):
        raise ValueError(f"query_bits must be 8 or 16, not {query_bits!r}")
    if x.shape[-1] == 0:
        raise ValueError("x must have elements, not an empty last dimension")
    mantissas, exponents = _scale(x, query_bits - 2, (1 << (query_bits - 1)) - 1)
    return mantissas.astype(np.int8 if query_bits == 8 else np.int16), exponents.astype(np.uint8)


def dequantise_query(mantissas, exponents, query_bits):
    """Quantised queries [..., d] with exponents [...] to float64, exactly."""
    limit = 1 << (check_int("query_bits", query_bits, 8, 16) - 1)
    mantissas = check_integers("mantissas", mantissas, -limit, limit - 1)
    exponents = check_exponents("exponents", exponents, mantissas.shape[:-1])
    shift = exponents[..., np.newaxis] - EXPONENT_BIAS - (query_bits - 2)
    return np.ldexp(mantissas.astype(np.float64), shift)


def canonical(mantissas, exponents):
    """Exponents uint8 [..., blocks] with 0 for each block whose mantissas are all zero.

    An append does this, so that a zero block never sets a scale.
    """
    mantissas = check_integers("mantissas", mantissas, -128, 127)
    exponents = check_exponents("exponents", exponents)
    block = _block_size("mantissas", mantissas, exponents.shape[-1] if exponents.ndim else 0)
    used = _blocked(mantissas, block).any(axis=-1)
    return np.where(used, exponents, 0).astype(np.uint8)


def coarse(mantissas):
    """Mantissas as a coarse read decodes them: int8, 16 u + 8 with u the upper nibble."""
    mantissas = check_integers("mantissas", mantissas, -128, 127)
    upper = mantissas >> PLANE_BITS
    return ((upper << PLANE_BITS) + (1 << (PLANE_BITS - 1))).astype(np.int8)


def pack_row(mantissas):
    """Rows as stored: the upper nibble plane (d/2 bytes), then the lower.

    In a plane, byte i holds element 2i in bits 3:0 and element 2i+1 in bits 7:4.

    Parameters
    ----------
    mantissas : integer array [..., d], -128..127, d even

    Returns
    -------
    uint8 [..., d]
    """
    mantissas = check_integers("mantissas", mantissas, -128, 127)
    if not mantissas.ndim or not mantissas.shape[-1] or mantissas.shape[-1] % 2:
        raise ValueError(
            f"mantissas must have an even last dimension, not shape {mantissas.shape}"
        )
    planes = [(mantissas >> PLANE_BITS) & 15, mantissas & 15]
    packed = [plane[..., 0::2] | plane[..., 1::2] << PLANE_BITS for plane in planes]
    return np.concatenate(packed, axis=-1).astype(np.uint8)


def unpack_row(stored):
    """Inverse of :func:`pack_row`: uint8 [..., d] to int8 [..., d]."""
    stored = check_integers("stored", stored, 0, 255)
    if not stored.ndim or not stored.shape[-1] or stored.shape[-1] % 2:
        raise ValueError(f"stored must have an even last dimension, not shape {stored.shape}")
    nibbles = np.stack([stored & 15, stored >> PLANE_BITS], axis=-1)
    flat = nibbles.reshape(*stored.shape[:-1], 2 * stored.shape[-1])
    upper, lower = np.split(flat, 2, axis=-1)
    return (upper << PLANE_BITS | lower).astype(np.uint8).view(np.int8)
