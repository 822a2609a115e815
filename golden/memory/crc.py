"""CRC-16 of a flit, and the sequence number it may carry.

Source: CXL 2.0 and later, 68-byte flit mode: polynomial 0x1F053 over the 512 bits of a flit, given
there as sixteen 512-bit masks; those are this remainder exactly. It detects any three flipped bits.
The sequence number in the CRC is ours (``docs/memory_link.md`` section 4).
"""

__all__ = ["BODY_BYTES", "FLIT_BYTES", "crc16", "fits", "gray", "seal", "ungray"]

POLYNOMIAL = 0x1F053
BODY_BYTES = 64
FLIT_BYTES = 66
SEQUENCED = 1 << 8  # above every sequence number, so that such a flit never equals a plain one


def _step(register):
    """The register after eight zero bits."""
    for _ in range(8):
        register = register << 1 ^ (POLYNOMIAL if register & 0x8000 else 0)
    return register & 0xFFFF


_TABLE = [_step(byte << 8) for byte in range(256)]


def gray(number):
    """Gray code of an int: neighbours differ in one bit."""
    return number ^ number >> 1


def ungray(code):
    """The number of 8 bits whose Gray code this is."""
    for shift in (4, 2, 1):
        code ^= code >> shift
    return code


def crc16(body, sequence=None):
    """CRC-16 of a flit's 64 bytes.

    The flit is the polynomial whose coefficient of x^j is bit j (bit 0 of byte 0 is j = 0), times
    x^16; the CRC is its remainder, register 0 at the start, nothing inverted.

    Parameters
    ----------
    body : bytes of 64
    sequence : int or None
        0..255: the flit is extended by bits 512..520, the Gray code of ``sequence`` and a one above
        it. ``None``: the standard's CRC.

    Returns
    -------
    int
        0..65535.

    Raises
    ------
    ValueError
        If ``body`` is not 64 bytes.
    """
    if len(body) != BODY_BYTES:
        raise ValueError(f"body must be {BODY_BYTES} bytes, not {len(body)}")
    register = 0
    if sequence is not None:
        prefix = SEQUENCED | gray(sequence)
        for byte in prefix.to_bytes(2, "big"):
            register = register << 8 & 0xFFFF ^ _TABLE[register >> 8 ^ byte]
    for byte in reversed(body):
        register = register << 8 & 0xFFFF ^ _TABLE[register >> 8 ^ byte]
    return register


def seal(body, sequence=None):
    """The flit of 66 bytes: ``body``, then its CRC with the low byte first."""
    return bytes(body) + crc16(body, sequence).to_bytes(2, "little")


def fits(flit, sequence=None):
    """Whether the CRC of a flit of 66 bytes fits its body and this sequence number."""
    body, crc = flit[:BODY_BYTES], int.from_bytes(flit[BODY_BYTES:], "little")
    return crc == crc16(body, sequence)
