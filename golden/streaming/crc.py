"""CRC-32 of frames: the one of Ethernet and zip files."""

import numpy as np

__all__ = ["crc32"]

POLYNOMIAL = 0xEDB88320  # 0x04C11DB7 with its bits reversed: the least significant bit goes first
INVERSION = 0xFFFFFFFF


def _advance(register, steps):
    """The register after ``steps`` zero bits, for an array of registers."""
    for _ in range(steps):
        register = register >> np.uint32(1) ^ np.where(
            register & np.uint32(1), np.uint32(POLYNOMIAL), np.uint32(0)
        )
    return register


_TABLE = _advance(np.arange(256, dtype=np.uint32), 8).tolist()


def crc32(data, value=0):
    """CRC-32 of ``data``, or of what ``value`` is the CRC-32 of followed by ``data``.

    Parameters
    ----------
    data : bytes-like, or uint8 array
    value : int
        CRC-32 of the bytes before; 0 of none.

    Returns
    -------
    int
        0..2**32 - 1.
    """
    register = value ^ INVERSION
    for byte in bytes(data):
        register = register >> 8 ^ _TABLE[(register ^ byte) & 255]
    return register ^ INVERSION
