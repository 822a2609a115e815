"""Messages of CXL.mem, as 68-byte flits carry them: ``docs/memory_link.md`` sections 1 and 2.

Fields, widths, order and encodings are the standard's (CXL 2.0 and later, 68-byte flit mode; as
public flit headers and kernel counters show them): bit 0 is ``valid``, the rest follows in the
order of ``FIELDS``, least significant bit first. Three opcodes are younger than 68-byte flits
(MemClnEvct, BIConflict, MemData-NXM); they keep their numbers. The device is host-coherent memory
(HDM-H, type 3). What the standard leaves to the device is listed there and is ours.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from golden.checks import check_int
from golden.memory.image import ALL_BYTES, LINE_BYTES

__all__ = [
    "ReqOp", "RwdOp", "NdrOp", "DrsOp", "MetaField", "MetaValue", "SnpType", "DevLoad",
    "Req", "Rwd", "Ndr", "Drs",
]


class ReqOp(IntEnum):
    """Opcodes of M2S Req."""

    MEM_INV = 0
    MEM_RD = 1
    MEM_RD_DATA = 2
    MEM_RD_FWD = 3
    MEM_WR_FWD = 4
    MEM_SPEC_RD = 8
    MEM_INV_NT = 9
    MEM_CLN_EVCT = 10


class RwdOp(IntEnum):
    """Opcodes of M2S RwD."""

    MEM_WR = 1
    MEM_WR_PTL = 2
    BI_CONFLICT = 4


class NdrOp(IntEnum):
    """Opcodes of S2M NDR."""

    CMP = 0
    CMP_S = 1
    CMP_E = 2
    CMP_M = 3


class DrsOp(IntEnum):
    """Opcodes of S2M DRS."""

    MEM_DATA = 0
    MEM_DATA_NXM = 1


class MetaField(IntEnum):
    """Which meta data a message is about. 1 (extended) needs 256-byte flits; 2 is reserved."""

    META0_STATE = 0
    NO_OP = 3


class MetaValue(IntEnum):
    """Meaning the standard gives the two stored bits; a host may give them any other."""

    INVALID = 0
    ANY = 2
    SHARED = 3


class SnpType(IntEnum):
    """Snoop asked for; 4..7 are reserved. Nothing is cached here, so none has an effect."""

    NO_OP = 0
    SNP_DATA = 1
    SNP_CUR = 2
    SNP_INV = 3


class DevLoad(IntEnum):
    """How busy the device is."""

    LIGHT = 0
    OPTIMAL = 1
    MODERATE = 2
    SEVERE = 3


class _Message:
    """Packs the dataclass's fields by ``FIELDS``: (name, bits, shift of the value)."""

    FIELDS: ClassVar[tuple[tuple[str, int, int], ...]]
    OPCODES: ClassVar[type[IntEnum]]
    BITS: ClassVar[int]

    def __post_init__(self):
        for name, bits, shift in self.FIELDS:
            value = check_int(name, getattr(self, name), 0, (1 << bits + shift) - 1)
            if value & (1 << shift) - 1:
                raise ValueError(f"{name} must be a multiple of {1 << shift}, not {value}")
            object.__setattr__(self, name, value)

    @property
    def known(self):
        """Whether the opcode is one of ``OPCODES``."""
        return self.opcode in tuple(self.OPCODES)

    def pack(self):
        """The header as an int of ``BITS`` bits; ``valid`` is set, reserved bits are zero."""
        word, low = 1, 1
        for name, bits, shift in self.FIELDS:
            word |= getattr(self, name) >> shift << low
            low += bits
        return word

    @classmethod
    def unpack(cls, word, **payload):
        """The message of a header; ``None`` unless it is valid. Reserved bits are ignored.

        Parameters
        ----------
        word : int
            0..2**BITS - 1.
        payload
            What does not travel in the header: ``data`` and ``byte_enables``.

        Raises
        ------
        TypeError, ValueError
            If ``word`` is no such int.
        """
        word = check_int("word", word, 0, (1 << cls.BITS) - 1)
        if not word & 1:
            return None
        values, low = {}, 1
        for name, bits, shift in cls.FIELDS:
            values[name] = (word >> low & (1 << bits) - 1) << shift
            low += bits
        return cls(**values, **payload)


_REQUEST = (("opcode", 4, 0), ("snp_type", 3, 0), ("meta_field", 2, 0), ("meta_value", 2, 0),
            ("tag", 16, 0))
_QUALITY = (("tc", 2, 0), ("ld_id", 4, 0))
_RESPONSE = (("opcode", 3, 0), ("meta_field", 2, 0), ("meta_value", 2, 0), ("tag", 16, 0))


def _check_data(data):
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"data must be bytes, not {data!r}")
    if len(data) != LINE_BYTES:
        raise ValueError(f"data must be {LINE_BYTES} bytes, not {len(data)}")
    return bytes(data)


@dataclass(frozen=True, kw_only=True)
class Req(_Message):
    """M2S Req: a request without data, 87 bits of which the top 6 are reserved.

    Parameters
    ----------
    opcode : int
        0..15; see :class:`ReqOp`. An unknown one can be sent, and is answered by section 2.
    address : int
        Host physical address, a multiple of 32 (bit 5 is a hint and picks no other line).
    tag : int
        0..65535; comes back in the response.
    snp_type : int
        0..7.
    meta_field, meta_value : int
        0..3.
    tc, ld_id : int
        Traffic class 0..3 and logical device 0..15; carried, without effect.

    Raises
    ------
    TypeError, ValueError
        If a field does not fit.
    """

    FIELDS = (*_REQUEST, ("address", 47, 5), *_QUALITY)
    OPCODES = ReqOp
    BITS = 87

    opcode: int
    address: int
    tag: int
    snp_type: int = SnpType.NO_OP
    meta_field: int = MetaField.NO_OP
    meta_value: int = 0
    tc: int = 0
    ld_id: int = 0


@dataclass(frozen=True, kw_only=True)
class Rwd(_Message):
    """M2S RwD: a request with one line of data, 87 bits of header.

    Parameters
    ----------
    opcode : int
        0..15; see :class:`RwdOp`.
    address : int
        Host physical address, a multiple of 64.
    tag, snp_type, meta_field, meta_value, tc, ld_id : int
        As in :class:`Req`.
    poison : int
        1: the data is known to be wrong.
    data : bytes of 64
    byte_enables : int
        Bit i: byte i is written. All ones for any opcode but MEM_WR_PTL.

    Raises
    ------
    TypeError, ValueError
        If a field does not fit, or a write that is not partial leaves bytes out.
    """

    FIELDS = (*_REQUEST, ("address", 46, 6), ("poison", 1, 0), *_QUALITY)
    OPCODES = RwdOp
    BITS = 87

    opcode: int
    address: int
    tag: int
    data: bytes = field(repr=False)
    byte_enables: int = ALL_BYTES
    poison: int = 0
    snp_type: int = SnpType.NO_OP
    meta_field: int = MetaField.NO_OP
    meta_value: int = 0
    tc: int = 0
    ld_id: int = 0

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "data", _check_data(self.data))
        enables = check_int("byte_enables", self.byte_enables, 0, ALL_BYTES)
        object.__setattr__(self, "byte_enables", enables)
        if enables != ALL_BYTES and self.opcode != RwdOp.MEM_WR_PTL:
            raise ValueError(f"byte_enables must be all ones for opcode {self.opcode}, "
                             f"not {enables:#x}")


@dataclass(frozen=True, kw_only=True)
class Ndr(_Message):
    """S2M NDR: a completion without data, 30 bits.

    Parameters
    ----------
    opcode : int
        0..7; see :class:`NdrOp`.
    tag, meta_field, meta_value, ld_id : int
        As in :class:`Req`.
    dev_load : int
        0..3; see :class:`DevLoad`.

    Raises
    ------
    TypeError, ValueError
        If a field does not fit.
    """

    FIELDS = (*_RESPONSE, ("ld_id", 4, 0), ("dev_load", 2, 0))
    OPCODES = NdrOp
    BITS = 30

    opcode: int
    tag: int
    meta_field: int = MetaField.NO_OP
    meta_value: int = 0
    ld_id: int = 0
    dev_load: int = DevLoad.LIGHT


@dataclass(frozen=True, kw_only=True)
class Drs(_Message):
    """S2M DRS: one line of data, 40 bits of header of which the top 9 are reserved.

    Parameters
    ----------
    opcode : int
        0..7; see :class:`DrsOp`.
    tag, meta_field, meta_value, ld_id, dev_load : int
        As in :class:`Ndr`.
    poison : int
        1: the data is known to be wrong.
    data : bytes of 64

    Raises
    ------
    TypeError, ValueError
        If a field does not fit.
    """

    FIELDS = (*_RESPONSE, ("poison", 1, 0), ("ld_id", 4, 0), ("dev_load", 2, 0))
    OPCODES = DrsOp
    BITS = 40

    opcode: int
    tag: int
    data: bytes = field(repr=False)
    poison: int = 0
    meta_field: int = MetaField.NO_OP
    meta_value: int = 0
    ld_id: int = 0
    dev_load: int = DevLoad.LIGHT

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "data", _check_data(self.data))
