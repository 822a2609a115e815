"""How the device answers a message: ``docs/memory_link.md`` section 2.

Reads and writes of existing and of non-existent memory are answered as the standard says for
host-coherent memory (CXL 3.x, 3.3.5 to 3.3.11). It defines no answer to a reserved encoding, only
that the error is logged (``Rsvd_Encoding_Violation``); so there is none.
"""

from dataclasses import dataclass
from enum import IntEnum

from golden.checks import check_int
from golden.memory.image import LINE_BYTES
from golden.memory.messages import (
    DevLoad,
    Drs,
    DrsOp,
    MetaField,
    MetaValue,
    Ndr,
    NdrOp,
    Req,
    ReqOp,
    Rwd,
    RwdOp,
)

__all__ = ["Answer", "Load", "answer_of", "meta_after", "respond"]


class Answer(IntEnum):
    """What comes back for a message, and what is done."""

    SILENT = 0     # a hint or a forward: accepted, no response
    COMPLETE = 1   # Cmp; memory may be written
    DATA = 2       # MemData; memory is read
    NXM = 3        # MemData-NXM: a read of memory that does not exist
    DROPPED = 4    # Cmp, nothing written: any other request to memory that does not exist
    VIOLATION = 5  # reserved encoding: no response, counted, the first one logged


_READS = (ReqOp.MEM_RD, ReqOp.MEM_RD_DATA)
_HINTS = (ReqOp.MEM_SPEC_RD, ReqOp.MEM_RD_FWD, ReqOp.MEM_WR_FWD)


def answer_of(message, exists=True):
    """The answer to a request.

    Parameters
    ----------
    message : Req or Rwd
    exists : bool
        Whether a decoder and the context's window accept the address.

    Returns
    -------
    Answer

    Raises
    ------
    TypeError
        If ``message`` is no request.
    """
    if not isinstance(message, (Req, Rwd)):
        raise TypeError(f"message must be a Req or an Rwd, not {message!r}")
    read = isinstance(message, Req)
    if not message.known or (not read and message.opcode == RwdOp.BI_CONFLICT):
        return Answer.VIOLATION
    if read and message.opcode in _HINTS:
        return Answer.SILENT
    if message.snp_type > 3 or message.meta_field not in (MetaField.META0_STATE, MetaField.NO_OP):
        return Answer.VIOLATION
    if read and message.opcode in _READS:
        return Answer.DATA if exists else Answer.NXM
    return Answer.COMPLETE if exists else Answer.DROPPED


def meta_after(message, stored):
    """The two meta bits of the line after a request that is answered COMPLETE or DATA.

    MemRdData turns "invalid" into "any"; any other request stores its ``meta_value`` if its
    ``meta_field`` is META0_STATE.

    Parameters
    ----------
    message : Req or Rwd
    stored : int
        The bits before, 0..3.

    Returns
    -------
    int
        0..3.
    """
    stored = check_int("stored", stored, 0, 3)
    if isinstance(message, Req) and message.opcode == ReqOp.MEM_RD_DATA:
        return int(MetaValue.ANY) if stored == MetaValue.INVALID else stored
    return message.meta_value if message.meta_field == MetaField.META0_STATE else stored


def respond(message, answer, *, dev_load=DevLoad.LIGHT, data=None, poison=False, stored=0,
            poison_nxm=True):
    """The response message; ``None`` if there is none.

    Parameters
    ----------
    message : Req or Rwd
    answer : Answer
    dev_load : int
        0..3.
    data : bytes of 64
        What memory holds; for DATA.
    poison : bool
        Whether that is known to be wrong.
    stored : int
        The line's meta bits *before* the request, returned with data and with the completion of
        MemInv and MemInvNT (as read from memory).
    poison_nxm : bool
        "Poison on decode error": whether the all-ones line of NXM is also poisoned.

    Returns
    -------
    Ndr, Drs or None
    """
    common = {"tag": message.tag, "ld_id": message.ld_id, "dev_load": dev_load}
    meta = {"meta_field": MetaField.META0_STATE, "meta_value": stored}
    if answer == Answer.DATA:
        return Drs(opcode=DrsOp.MEM_DATA, data=data, poison=int(poison), **meta,
                   **common)
    if answer == Answer.NXM:
        return Drs(opcode=DrsOp.MEM_DATA_NXM, data=b"\xff" * LINE_BYTES, poison=int(poison_nxm),
                   **common)
    if answer in (Answer.COMPLETE, Answer.DROPPED):
        invalidates = isinstance(message, Req) and message.opcode != ReqOp.MEM_CLN_EVCT
        if answer == Answer.DROPPED or not invalidates:
            meta = {}
        return Ndr(opcode=NdrOp.CMP, **meta, **common)
    return None


@dataclass(kw_only=True)
class Load:
    """DevLoad from the number of requests that wait, with hysteresis. The thresholds are ours.

    Parameters
    ----------
    rises : (int, int, int)
        A level above LIGHT, OPTIMAL, MODERATE is entered when this many or more wait.
    falls : (int, int, int)
        It is left when fewer than this many wait; each below its ``rises``.

    Members
    -------
    level : DevLoad
    """

    rises: tuple[int, int, int]
    falls: tuple[int, int, int]
    level: DevLoad = DevLoad.LIGHT

    def __post_init__(self):
        for name in ("rises", "falls"):
            levels = getattr(self, name)
            if len(levels) != 3 or list(levels) != sorted(set(levels)) or levels[0] < 1:
                raise ValueError(f"{name} must be 3 increasing counts from 1, not {levels!r}")
        if not all(fall < rise for fall, rise in zip(self.falls, self.rises, strict=True)):
            raise ValueError(f"falls must be below rises {self.rises!r}, not {self.falls!r}")

    def update(self, waiting):
        """The level once ``waiting`` requests wait; as many steps up or down as it takes."""
        while self.level < DevLoad.SEVERE and waiting >= self.rises[self.level]:
            self.level = DevLoad(self.level + 1)
        while self.level > DevLoad.LIGHT and waiting < self.falls[self.level - 1]:
            self.level = DevLoad(self.level - 1)
        return self.level
