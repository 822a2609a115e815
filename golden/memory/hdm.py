"""HDM decoders: host physical addresses to devices and back. ``docs/memory_link.md`` section 5.

Source: CXL 2.0 and later, HDM decoder capability: encodings, alignment, device decode logic and the
sum of the DPA bases; XOR maps as in the CXL fixed memory window structures. Bit-exact with what
Linux computes. All addresses are bytes, in int64 arrays of any shape; functions are vectorised.
"""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_int, check_integers

__all__ = ["QUANTUM", "WAYS", "GRANULARITIES", "NOWHERE", "Decoder", "HdmMap"]

QUANTUM = 1 << 28
"""Windows begin and end at multiples of 256 MiB."""

WAYS = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 3: 8, 6: 9, 12: 10}
"""Ways to their encoding."""

GRANULARITIES = {256 << code: code for code in range(7)}
"""Bytes to their encoding."""

NOWHERE = -1
ADDRESS_LIMIT = 1 << 52


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """One window of host addresses, spread over one or several targets.

    Parameters
    ----------
    base, size : int
        Window in bytes: multiples of 256 MiB, ``size`` of 256 MiB times ``ways``; it ends at 2^52
        or below.
    ways : int
        1, 2, 3, 4, 6, 8, 12 or 16 targets.
    granularity : int
        Bytes in a row to the same target: 256, 512, .. 16384.
    targets : tuple of ints
        Which target each position is; 0..ways - 1 if not given.
    xor_maps : tuple of ints
        None: modulo arithmetic. Else, for bit i of the position, the address bits whose XOR it is:
        the lowest is bit log2(granularity) + i, and no map has another's lowest bit. At most
        log2(ways), without its factor 3, of them; further bits of the position stay as they are.
    skip : int
        Device bytes left unused before this window.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of this form.
    """

    base: int
    size: int
    ways: int = 1
    granularity: int = 256
    targets: tuple[int, ...] = ()
    xor_maps: tuple[int, ...] = ()
    skip: int = 0

    def __post_init__(self):
        for name, known in (("ways", WAYS), ("granularity", GRANULARITIES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {sorted(known)}, "
                                 f"not {getattr(self, name)!r}")
        for name, step in (("base", QUANTUM), ("size", QUANTUM * self.ways), ("skip", QUANTUM)):
            value = check_int(name, getattr(self, name), 0, ADDRESS_LIMIT)
            if value % step:
                raise ValueError(f"{name} must be a multiple of {step:#x}, not {value:#x}")
        if not 0 < self.size <= ADDRESS_LIMIT - self.base:
            raise ValueError(f"size must be in 1..{ADDRESS_LIMIT - self.base:#x}, "
                             f"not {self.size:#x}")
        if not self.targets:
            object.__setattr__(self, "targets", tuple(range(self.ways)))
        if len(set(self.targets)) != self.ways or len(self.targets) != self.ways:
            raise ValueError(f"targets must be {self.ways} different ones, not {self.targets!r}")
        self._check_maps()

    def _check_maps(self):
        if len(self.xor_maps) > self.binary_ways.bit_length() - 1:
            raise ValueError(f"xor_maps must be at most {self.binary_ways.bit_length() - 1} "
                             f"for {self.ways} ways, not {len(self.xor_maps)}")
        lowest = [self.granularity << index for index in range(len(self.xor_maps))]
        for own, bits in zip(lowest, self.xor_maps, strict=True):
            check_int("xor_maps", bits, 1, ADDRESS_LIMIT - 1)
            if bits & -bits != own or any(bits & other for other in lowest if other != own):
                raise ValueError(f"xor_maps must have {own:#x} as lowest bit and none of the "
                                 f"others', not {bits:#x}")

    @property
    def binary_ways(self):
        """``ways`` without its factor 3."""
        return self.ways // 3 if self.ways % 3 == 0 else self.ways

    @property
    def encoded_ways(self):
        """Interleave ways as the register holds them."""
        return WAYS[self.ways]

    @property
    def encoded_granularity(self):
        """Interleave granularity as the register holds it."""
        return GRANULARITIES[self.granularity]

    @property
    def device_bytes(self):
        """Bytes that the window takes of each target."""
        return self.size // self.ways

    def covers(self, hpa):
        """Which host addresses lie in the window; a boolean array."""
        hpa = check_integers("hpa", hpa, 0, ADDRESS_LIMIT - 1)
        return (hpa >= self.base) & (hpa < self.base + self.size)

    def decode(self, hpa):
        """Position and offset in the device of host addresses.

        Parameters
        ----------
        hpa : integer array
            Each in the window.

        Returns
        -------
        (int64 array, int64 array)
            Position, 0..ways - 1; bytes from the window's first byte in the device.

        Raises
        ------
        TypeError, ValueError
            If an address is no integer, or not in the window.
        """
        hpa = check_integers("hpa", hpa, self.base, self.base + self.size - 1)
        chunk, within = np.divmod(self._fold(hpa) - self.base, self.granularity)
        row, position = np.divmod(chunk, self.ways)
        return position, row * self.granularity + within

    def encode(self, position, offset):
        """Host addresses of positions and offsets: the reverse of :meth:`decode`.

        Parameters
        ----------
        position : integer array
            0..ways - 1.
        offset : integer array
            0..device_bytes - 1; broadcasts with ``position``.

        Returns
        -------
        int64 array

        Raises
        ------
        TypeError, ValueError
            If one is no integer, or out of its range.
        """
        position = check_integers("position", position, 0, self.ways - 1)
        offset = check_integers("offset", offset, 0, self.device_bytes - 1)
        row, within = np.divmod(offset, self.granularity)
        return self._fold(self.base + (row * self.ways + position) * self.granularity + within)

    def _fold(self, address):
        """Each map's lowest bit becomes the XOR of its bits. Doing it twice undoes it."""
        for bits in self.xor_maps:
            parity = np.bitwise_count(address & bits).astype(np.int64) & 1
            lowest = bits & -bits
            address = address & ~lowest | parity * lowest
        return address


class HdmMap:
    """The decoders of a host bridge or device, in order of address.

    Parameters
    ----------
    decoders : sequence of Decoder
        Rising and disjoint windows.

    Members
    -------
    bases : tuple of ints
        Device address of each window's first byte: that of the one before, plus what that takes of
        each target, plus the window's ``skip``. (All targets count the same; a device that is in
        fewer windows programs ``skip`` accordingly.)

    Raises
    ------
    TypeError, ValueError
        If ``decoders`` is no such sequence.
    """

    def __init__(self, decoders):
        self.decoders = tuple(decoders)
        bases, base, end = [], 0, 0
        for decoder in self.decoders:
            if not isinstance(decoder, Decoder):
                raise TypeError(f"decoders must be Decoders, not {decoder!r}")
            if decoder.base < end:
                raise ValueError(f"decoders must be disjoint and rising, not {decoder!r} "
                                 f"after {end:#x}")
            end = decoder.base + decoder.size
            bases.append(base + decoder.skip)
            base = bases[-1] + decoder.device_bytes
        self.bases = tuple(bases)

    def decode(self, hpa):
        """Target and device address of host addresses.

        Parameters
        ----------
        hpa : integer array
            0..2^52 - 1.

        Returns
        -------
        (int64 array, int64 array)
            Target and device address, both ``NOWHERE`` outside every window.

        Raises
        ------
        TypeError, ValueError
            If an address is no integer, or not in 0..2^52 - 1.
        """
        hpa = check_integers("hpa", hpa, 0, ADDRESS_LIMIT - 1)
        target = np.full(hpa.shape, NOWHERE, np.int64)
        dpa = np.full(hpa.shape, NOWHERE, np.int64)
        for decoder, base in zip(self.decoders, self.bases, strict=True):
            inside = decoder.covers(hpa)
            position, offset = decoder.decode(hpa[inside])
            target[inside] = np.array(decoder.targets, np.int64)[position]
            dpa[inside] = base + offset
        return target, dpa

    def encode(self, target, dpa):
        """Host addresses of device addresses: the reverse of :meth:`decode`.

        Parameters
        ----------
        target, dpa : integer arrays of one shape

        Returns
        -------
        int64 array
            ``NOWHERE`` where no window leads to that byte of that target.

        Raises
        ------
        TypeError, ValueError
            If one is no integer array, out of range, or of another shape than the other.
        """
        target = check_integers("target", target, 0, ADDRESS_LIMIT - 1)
        dpa = check_integers("dpa", dpa, 0, ADDRESS_LIMIT - 1, target.shape)
        hpa = np.full(target.shape, NOWHERE, np.int64)
        for decoder, base in zip(self.decoders, self.bases, strict=True):
            for position, wanted in enumerate(decoder.targets):
                inside = (target == wanted) & (dpa >= base) & (dpa < base + decoder.device_bytes)
                hpa[inside] = decoder.encode(position, dpa[inside] - base)
        return hpa
