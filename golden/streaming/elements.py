"""Element formats: bits to and from an integer times a power of two.

Source: sections 3 and 5 of ``docs/wire_format.md``; IEEE 754 binary16, bfloat16, and OCP 8-bit
Floating Point Specification 1.0 for E4M3 and E5M2. An element is ``significand * 2**exponent``,
exactly.
"""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_integers, check_reals
from golden.streaming.layout import Format

__all__ = ["FloatFormat", "FLOATS", "BF16", "quantise_rows", "pack_nibbles", "unpack_nibbles"]


@dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """A binary floating-point format with subnormals.

    Parameters
    ----------
    exponent_bits, mantissa_bits : int
    has_infinity : bool
        Whether the largest exponent means infinity or NaN (IEEE). Otherwise only the code of all
        ones is NaN, and the largest exponent has numbers like any other (OCP E4M3).
    """

    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def dtype(self):
        """Of an array of codes."""
        return np.dtype(np.uint16 if self.bits == 16 else np.uint8).newbyteorder("<")

    @property
    def largest(self) -> int:
        """Code of the largest finite number."""
        codes = 1 << (self.bits - 1)
        return codes - 2 if not self.has_infinity else codes - (1 << self.mantissa_bits) - 1

    def is_finite(self, codes):
        """Which codes are numbers, neither NaN nor infinite."""
        magnitude = (1 << (self.bits - 1)) - 1
        return (np.asarray(codes) & magnitude) <= self.largest

    def unpack(self, codes):
        """Signed significands and exponents (int64 arrays) of codes; a NaN's mean nothing."""
        codes = check_integers("codes", codes, 0, (1 << self.bits) - 1)
        field = codes >> self.mantissa_bits & ((1 << self.exponent_bits) - 1)
        fraction = codes & ((1 << self.mantissa_bits) - 1)
        significand = fraction + (np.minimum(field, 1) << self.mantissa_bits)
        exponent = np.maximum(field, 1) - self.bias - self.mantissa_bits
        return np.where(codes >> (self.bits - 1), -significand, significand), exponent

    def pack(self, x):
        """Codes of finite reals: rounded half to even; beyond the largest number, the largest."""
        x = check_reals("x", x)
        smallest = 1 - self.bias  # exponent of the smallest normal number, and of all subnormals
        exponent = np.where(x == 0, smallest, np.maximum(np.frexp(x)[1] - 1, smallest))
        # From 2**mantissa_bits on the rounded significand carries into the exponent field by
        # itself: as the hidden bit of a normal number, or because it was rounded up an octave.
        significand = np.rint(np.ldexp(np.abs(x), self.mantissa_bits - exponent)).astype(np.int64)
        codes = ((exponent - smallest) << self.mantissa_bits) + significand
        sign = np.signbit(x).astype(np.int64) << (self.bits - 1)
        return (np.minimum(codes, self.largest) | sign).astype(self.dtype)


FLOATS = {
    Format.FP16: FloatFormat(exponent_bits=5, mantissa_bits=10, has_infinity=True),
    Format.BF16: FloatFormat(exponent_bits=8, mantissa_bits=7, has_infinity=True),
    Format.FP8_E4M3: FloatFormat(exponent_bits=4, mantissa_bits=3, has_infinity=False),
    Format.FP8_E5M2: FloatFormat(exponent_bits=5, mantissa_bits=2, has_infinity=True),
}

BF16 = FLOATS[Format.BF16]


def quantise_rows(x, bits):
    """Quantise rows uniformly and symmetrically to ``bits`` bits.

    scale = max|x| / (2**(bits - 1) - 1) rounded to bfloat16; q = x / scale rounded half to even and
    clipped to the symmetric range, 0 where the scale is 0.

    Parameters
    ----------
    x : real array [..., d]
    bits : int
        2..8.

    Returns
    -------
    scales : uint16 [...]
        Codes of bfloat16.
    q : int64 [..., d]
    """
    x = check_reals("x", x)
    limit = (1 << (bits - 1)) - 1
    scales = BF16.pack(np.abs(x).max(axis=-1) / limit)
    significand, exponent = (part[..., np.newaxis] for part in BF16.unpack(scales))
    ratio = np.ldexp(x, -exponent) / np.maximum(significand, 1)
    q = np.where(significand > 0, np.clip(np.rint(ratio), -limit, limit), 0)
    return scales, q.astype(np.int64)


def pack_nibbles(q):
    """Integers [..., d] in -8..7 as uint8 [..., d/2], the even elements in bits 3:0."""
    q = check_integers("q", q, -8, 7) & 15
    return (q[..., 0::2] | q[..., 1::2] << 4).astype(np.uint8)


def unpack_nibbles(packed):
    """Inverse of :func:`pack_nibbles`, as int64."""
    packed = check_integers("packed", packed, 0, 255)
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1)
    signed = (nibbles ^ 8) - 8
    return signed.reshape(*packed.shape[:-1], 2 * packed.shape[-1])
