"""What one flit is made of: header, slots, control flits. ``docs/memory_link.md`` section 3.

Source: CXL 2.0 and later, 68-byte flit mode, CXL.cachemem link layer. Layout and encodings are the
standard's; of its slot formats only those that carry CXL.mem appear, with the CXL.cache part of a
shared format empty. The two protocol-id bytes that make 68 of 66 belong to the physical layer.
"""

from dataclasses import dataclass
from enum import IntEnum

from golden.checks import check_int
from golden.memory.crc import BODY_BYTES
from golden.memory.messages import Drs, Ndr, Req, Rwd

__all__ = [
    "SLOT_BYTES", "SLOTS", "DATA_SLOT", "Direction", "Header", "Control", "Format", "formats",
    "credit_code", "credits_of", "control_flit", "control_of", "join", "split",
]

SLOT_BYTES = 16
SLOTS = 4
DATA_SLOT = 0  # format G0: one chunk of 16 bytes, or the byte enables after the last


class Direction(IntEnum):
    """M2S: from the host to the device."""

    M2S = 0
    S2M = 1


_FIELDS = (("control", 1), (None, 1), ("ak", 1), ("be", 1), ("sz", 1), ("slot0", 3), ("slot1", 3),
           ("slot2", 3), ("slot3", 3), (None, 3), ("rsp_crd", 4), ("req_crd", 4), ("data_crd", 4))


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first 32 bits of a flit that is not all data.

    Parameters
    ----------
    control : int
        1: a control flit; ``be``, ``sz`` and the slots are then 0.
    ak : int
        1: eight flits of the other direction have arrived intact.
    be : int
        1: byte enables follow the data that begins in this flit.
    sz : int
        1: the data that begins in this flit is a whole line (always, here).
    slot0, slot1, slot2, slot3 : int
        Format of each slot, 0..7.
    rsp_crd, req_crd, data_crd : int
        Credits given back: :func:`credit_code`.

    Raises
    ------
    TypeError, ValueError
        If a field does not fit.
    """

    control: int = 0
    ak: int = 0
    be: int = 0
    sz: int = 0
    slot0: int = 0
    slot1: int = 0
    slot2: int = 0
    slot3: int = 0
    rsp_crd: int = 0
    req_crd: int = 0
    data_crd: int = 0

    def __post_init__(self):
        for name, bits in _FIELDS:
            if name:
                check_int(name, getattr(self, name), 0, (1 << bits) - 1)

    @property
    def slots(self):
        return self.slot0, self.slot1, self.slot2, self.slot3

    def pack(self):
        """The header as an int of 32 bits; reserved bits are zero."""
        word, low = 0, 0
        for name, bits in _FIELDS:
            word |= (getattr(self, name) if name else 0) << low
            low += bits
        return word

    @classmethod
    def unpack(cls, word):
        """The header of 32 bits; reserved bits are ignored."""
        values, low = {}, 0
        for name, bits in _FIELDS:
            if name:
                values[name] = word >> low & (1 << bits) - 1
            low += bits
        return cls(**values)


def join(header, *slots):
    """The 64 bytes of a flit from a header and four slots (ints of 96, 128, 128 and 128 bits)."""
    first = slots[0] << 32 | header.pack()
    return b"".join(word.to_bytes(SLOT_BYTES, "little") for word in (first, *slots[1:]))


def split(body):
    """(header, four slots) of the 64 bytes of a flit that is not all data."""
    words = [int.from_bytes(body[low:low + SLOT_BYTES], "little")
             for low in range(0, BODY_BYTES, SLOT_BYTES)]
    return Header.unpack(words[0] & 0xFFFFFFFF), (words[0] >> 32, *words[1:])


# Slot formats.

_NDR_LOW = Ndr.BITS - 2  # of two NDRs, the first one's DevLoad comes after the second


@dataclass(frozen=True)
class Format:
    """A slot format: which messages it has room for, in order.

    Parameters
    ----------
    code : int
        As in the header, 0..7.
    kinds : tuple of message classes
        Data headers, then completions.
    """

    code: int
    kinds: tuple

    def pack(self, messages):
        """The slot as an int.

        Parameters
        ----------
        messages : list
            For each of ``kinds`` in order a message or ``None``.
        """
        split_ndr = self.kinds.count(Ndr) == 2
        word = low = late = 0
        for index, (kind, message) in enumerate(zip(self.kinds, messages, strict=True)):
            header = message.pack() if message is not None else 0
            bits = kind.BITS
            if split_ndr and index == len(self.kinds) - 2:
                late, header, bits = header >> _NDR_LOW, header & (1 << _NDR_LOW) - 1, _NDR_LOW
            word |= header << low
            low += bits
        return word | late << low

    def unpack(self, word):
        """Header words (ints) for each of ``kinds``."""
        split_ndr = self.kinds.count(Ndr) == 2
        headers, low = [], 0
        for index, kind in enumerate(self.kinds):
            bits = _NDR_LOW if split_ndr and index == len(self.kinds) - 2 else kind.BITS
            headers.append(word >> low & (1 << bits) - 1)
            low += bits
        if split_ndr:
            headers[-2] |= (word >> low & 3) << _NDR_LOW
        return headers


_FORMATS = {
    (Direction.M2S, True): (Format(4, (Rwd,)), Format(5, (Req,))),
    (Direction.M2S, False): (Format(4, (Req,)), Format(5, (Rwd,))),
    (Direction.S2M, True): (Format(3, (Drs, Ndr)), Format(4, (Ndr, Ndr)), Format(5, (Drs, Drs))),
    (Direction.S2M, False): (
        Format(4, (Drs, Ndr, Ndr)), Format(5, (Ndr, Ndr)), Format(6, (Drs, Drs, Drs))),
}


def formats(direction, first):
    """The message formats of a direction, by code.

    Parameters
    ----------
    direction : Direction
    first : bool
        Of slot 0 (formats H3..H5) or of the others (G4..G6).

    Returns
    -------
    dict of int to Format
    """
    return {entry.code: entry for entry in _FORMATS[direction, first]}


# Credits.

def credit_code(count):
    """The largest credit return of at most ``count``: bit 3 says CXL.mem, 2:0 code 1, 2, .. 64."""
    return 8 | min(count.bit_length(), 7) if count else 0


def credits_of(code):
    """How many credits for CXL.mem a code of 4 bits returns; those for CXL.cache are dropped."""
    return 1 << (code & 7) - 1 if code & 8 and code & 7 else 0


# Control flits.

class Control(IntEnum):
    """(type, subtype) of a control flit, as type + 16 subtype: its byte 4."""

    LLCRD = 0x10
    RETRY_IDLE = 0x01
    RETRY_REQ = 0x11
    RETRY_ACK = 0x21
    RETRY_FRAME = 0x31
    INIT_PARAM = 0x8C


def control_flit(control, payload=0, **fields):
    """The 64 bytes of a control flit.

    Parameters
    ----------
    control : Control
    payload : int
        64 bits.
    fields
        ``ak`` and credits of the header; of LLCRD only.
    """
    slot = payload << 32 | control
    return join(Header(control=1, **fields), slot, 0, 0, 0)


def control_of(body):
    """(control, payload) if the 64 bytes are a control flit with every fixed bit right, or None.

    Fixed are all bits but ``ak``, the credits, type, subtype and payload.
    """
    header, (first, *rest) = split(body)
    kind = first & 0xFF
    if not header.control or kind not in tuple(Control):
        return None
    fixed = Header(control=1, ak=header.ak, rsp_crd=header.rsp_crd, req_crd=header.req_crd,
                   data_crd=header.data_crd)
    if kind != Control.LLCRD:
        fixed = Header(control=1)
    clean = first >> 8 & 0xFFFFFF == 0 and not any(rest)
    if not clean or fixed.pack() != int.from_bytes(body[:4], "little"):
        return None
    return Control(kind), first >> 32
