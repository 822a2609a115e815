"""DRAM parts as data: organisation, timing parameters and the rules between commands.

Hardware builds its timing gates from :data:`RULES`, the golden checker finds the pairs that break
them, ``docs/memory_dram.md`` prints them. All times are in nCK, cycles of the command clock. No
Amaranth import here.

Sources of the numbers: JESD79-5 (DDR5) and JESD209-5 (LPDDR5) as published in the presets of
Ramulator 2.1 (DDR5_4800AN, LPDDR5_6400) and gem5; which is which stands in the documentation.
"""

from dataclasses import dataclass
from enum import IntEnum

from hw.checks import check_int

__all__ = [
    "DDR5_4800", "DDR5_RFC_NS", "LPDDR5_6400", "LPDDR5_RFC_NS", "PARTS", "RULES", "Command",
    "Organisation", "Part", "Rule", "Scope", "cycles_at_least",
]


class Command(IntEnum):
    """What the scheduler may send. A bank is closed by PRE, PREA, RDA and WRA."""

    ACT = 0  # open a row
    RD = 1
    WR = 2
    RDA = 3  # read, then precharge
    WRA = 4  # write, then precharge
    PRE = 5  # close one bank
    PREA = 6  # close all banks
    REFAB = 7  # refresh all banks; all must be closed


class Scope(IntEnum):
    """Between which banks a rule holds. Rules that involve PREA or REFAB have scope RANK."""

    BANK = 0  # the same bank
    GROUP = 1  # the same bank group, the same bank included
    OTHER_GROUP = 2  # different bank groups
    RANK = 3  # any two banks


@dataclass(frozen=True)
class Rule:
    """A minimum distance from one command to a later one.

    Parameters
    ----------
    name : str
        As in the standard; a suffix says which case.
    before, after : tuple of Command
        The rule holds from each command of ``before`` to each of ``after``.
    scope : Scope
    terms : tuple of str
        The distance as a sum of fields of a :class:`Part`; a leading minus subtracts.
    window : int
        The distance counts from the ``window``-th last command of ``before``: 4 for tFAW, else 1.
    """

    name: str
    before: tuple
    after: tuple
    scope: Scope
    terms: tuple
    window: int = 1

    def cycles(self, part):
        """The distance in nCK; a command of ``after`` is refused one cycle earlier."""
        return sum(
            -getattr(part, term[1:]) if term.startswith("-") else getattr(part, term)
            for term in self.terms
        )


_ACT, _PRE, _PREA, _REF = (Command.ACT,), (Command.PRE,), (Command.PREA,), (Command.REFAB,)
_RDA, _WRA = (Command.RDA,), (Command.WRA,)
_READS, _WRITES = (Command.RD, Command.RDA), (Command.WR, Command.WRA)
_RECOVERY = ("cwl", "burst", "wr")  # from a write command until its row may close

#: The rules of both standards, which differ in numbers only.
RULES = (
    # Rows.
    Rule("tRC", _ACT, _ACT, Scope.BANK, ("rc",)),
    Rule("tRRD_L", _ACT, _ACT, Scope.GROUP, ("rrd_l",)),
    Rule("tRRD_S", _ACT, _ACT, Scope.OTHER_GROUP, ("rrd_s",)),
    Rule("tFAW", _ACT, _ACT, Scope.RANK, ("faw",), window=4),
    Rule("tRCD", _ACT, _READS + _WRITES, Scope.BANK, ("rcd",)),
    Rule("tRAS", _ACT, _PRE, Scope.BANK, ("ras",)),
    Rule("tRAS_all", _ACT, _PREA, Scope.RANK, ("ras",)),
    Rule("tRP", _PRE, _ACT, Scope.BANK, ("rp",)),
    Rule("tRP_all", _PREA, _ACT, Scope.RANK, ("rp_all",)),
    Rule("tPPD", _PRE + _PREA, _PRE + _PREA, Scope.RANK, ("ppd",)),
    # From a column command until its row may close, and, closed by itself, open again.
    Rule("tRTP", _READS, _PRE, Scope.BANK, ("rtp",)),
    Rule("tRTP_all", _READS, _PREA, Scope.RANK, ("rtp",)),
    Rule("tWR", _WRITES, _PRE, Scope.BANK, _RECOVERY),
    Rule("tWR_all", _WRITES, _PREA, Scope.RANK, _RECOVERY),
    Rule("tRTP_auto", _RDA, _ACT, Scope.BANK, ("rtp", "rp")),
    Rule("tWR_auto", _WRA, _ACT, Scope.BANK, (*_RECOVERY, "rp")),
    # Columns and the data bus.
    Rule("tCCD_L", _READS, _READS, Scope.GROUP, ("ccd_l",)),
    Rule("tCCD_S", _READS, _READS, Scope.OTHER_GROUP, ("ccd_s",)),
    Rule("tCCD_L_WR", _WRITES, _WRITES, Scope.GROUP, ("ccd_l_wr",)),
    Rule("tCCD_S_WR", _WRITES, _WRITES, Scope.OTHER_GROUP, ("ccd_s_wr",)),
    Rule("tWTR_L", _WRITES, _READS, Scope.GROUP, ("cwl", "burst", "wtr_l")),
    Rule("tWTR_S", _WRITES, _READS, Scope.OTHER_GROUP, ("cwl", "burst", "wtr_s")),
    Rule("tRTW", _READS, _WRITES, Scope.RANK, ("cl", "-cwl", "burst", "rtw_gap")),
    # Refresh.
    Rule("tRC_ref", _ACT, _REF, Scope.RANK, ("rc",)),
    Rule("tRP_ref", _PRE, _REF, Scope.RANK, ("rp",)),
    Rule("tRP_all_ref", _PREA, _REF, Scope.RANK, ("rp_all",)),
    Rule("tRTP_ref", _RDA, _REF, Scope.RANK, ("rtp", "rp")),
    Rule("tWR_ref", _WRA, _REF, Scope.RANK, (*_RECOVERY, "rp")),
    Rule("tRFC", _REF, _ACT + _PRE + _PREA + _REF, Scope.RANK, ("rfc",)),
)


@dataclass(frozen=True)
class Organisation:
    """How one rank of a channel is cut into banks.

    Parameters
    ----------
    bank_groups, banks : int
        Groups of the rank, banks of each group; powers of two.
    rows, columns : int
        Rows of each bank, columns of each row; powers of two.
    burst_length : int
        Columns that one command transfers.
    data_bits : int
        Width of the channel without its check bits.
    """

    bank_groups: int
    banks: int
    rows: int
    columns: int
    burst_length: int
    data_bits: int

    def __post_init__(self):
        for name, value in vars(self).items():
            check_int(name, value, minimum=1)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        if self.columns % self.burst_length:
            raise ValueError(
                f"columns must be a multiple of burst_length {self.burst_length}, "
                f"not {self.columns!r}"
            )

    @property
    def bank_count(self):
        """Banks of the rank."""
        return self.bank_groups * self.banks

    @property
    def bursts(self):
        """Bursts of a row: the number of column addresses used here."""
        return self.columns // self.burst_length

    @property
    def burst_bytes(self):
        """Bytes that one command transfers."""
        return self.burst_length * self.data_bits // 8

    @property
    def capacity_bytes(self):
        """Bytes of the rank."""
        return self.bank_count * self.rows * self.bursts * self.burst_bytes


@dataclass(frozen=True)
class Part:
    """A DRAM part: all in nCK but ``tck_ps``, ``postpone`` and ``organisation``.

    Parameters
    ----------
    name : str
    organisation : Organisation
    tck_ps : int
        Command clock period in ps.
    burst : int
        How long a burst holds the data bus.
    cl, cwl : int
        Read and write command to first data.
    rcd, ras, rc, rp, rp_all, ppd, rrd_s, rrd_l, faw : int
        Rows: open to column, to close, to open again; close to open (one bank, all banks); between
        closes; between opens (other, same group); any five opens.
    rtp, wr : int
        Read command, and end of write data, to close.
    ccd_s, ccd_l, ccd_s_wr, ccd_l_wr, wtr_s, wtr_l, rtw_gap : int
        Columns: other and same bank group; ``wtr`` counts from the end of the write data;
        ``rtw_gap`` is what the bus needs between read data and write data.
    rfc, refi : int
        A refresh; the mean distance of refreshes.
    postpone : int
        Refreshes that may be owed at any time, and that may be sent ahead.
    slots : tuple of int
        Cycles of the command bus by command. The last one is the command's time.
    """

    name: str
    organisation: Organisation
    tck_ps: int
    burst: int
    cl: int
    cwl: int
    rcd: int
    ras: int
    rc: int
    rp: int
    rp_all: int
    ppd: int
    rrd_s: int
    rrd_l: int
    faw: int
    rtp: int
    wr: int
    ccd_s: int
    ccd_l: int
    ccd_s_wr: int
    ccd_l_wr: int
    wtr_s: int
    wtr_l: int
    rtw_gap: int
    rfc: int
    refi: int
    postpone: int
    slots: tuple

    def __post_init__(self):
        if not isinstance(self.organisation, Organisation):
            raise TypeError(f"organisation must be an Organisation, not {self.organisation!r}")
        for name, value in vars(self).items():
            if name not in ("name", "organisation", "slots"):
                check_int(name, value, minimum=1)
        if len(self.slots) != len(Command):
            raise ValueError(
                f"slots must have {len(Command)} entries, one per command, not {self.slots!r}"
            )
        for slots in self.slots:
            check_int("each entry of slots", slots, minimum=1)
        if self.rfc >= self.refi:
            raise ValueError(f"rfc must be below refi {self.refi}, not {self.rfc!r}")


def cycles_at_least(ps, tck_ps):
    """nCK of a minimum time in ps: rounded up after the 0.3 % that JESD79-5 section 13.2 allows."""
    return (ps * 997 // tck_ps + 1000) // 1000


#: tRFC in ns by density in Gbit: REFab of DDR5 in normal mode, REFab of LPDDR5.
DDR5_RFC_NS = {8: 195, 16: 295, 32: 410}
LPDDR5_RFC_NS = {4: 130, 8: 210, 16: 280, 32: 380}

#: DDR5-4800AN, 16 Gbit x4 parts on a 32-bit sub-channel: 64 bytes per burst.
DDR5_4800 = Part(
    name="DDR5-4800AN",
    organisation=Organisation(
        bank_groups=8, banks=4, rows=1 << 16, columns=1 << 11, burst_length=16, data_bits=32
    ),
    tck_ps=416, burst=8, cl=34, cwl=32,
    rcd=34, ras=77, rc=111, rp=34, rp_all=34, ppd=2, rrd_s=8, rrd_l=12, faw=32,
    rtp=18, wr=72,
    ccd_s=8, ccd_l=12, ccd_s_wr=8, ccd_l_wr=48, wtr_s=6, wtr_l=24,
    rtw_gap=4,  # 2 and the write preamble of 2
    rfc=cycles_at_least(DDR5_RFC_NS[16] * 1000, 416), refi=3_900_000 // 416, postpone=4,
    slots=(2, 2, 2, 2, 2, 1, 1, 1),
)

#: LPDDR5-6400 in bank-group mode, WCK:CK of 4:1, two 16 Gbit x16 parts: 64 bytes per burst.
LPDDR5_6400 = Part(
    name="LPDDR5-6400",
    organisation=Organisation(
        bank_groups=4, banks=4, rows=1 << 16, columns=1 << 10, burst_length=16, data_bits=32
    ),
    tck_ps=1250, burst=2, cl=17, cwl=9,
    rcd=15, ras=34, rc=49, rp=15, rp_all=17, ppd=2, rrd_s=4, rrd_l=4, faw=16,
    rtp=8, wr=28,
    ccd_s=2, ccd_l=4, ccd_s_wr=2, ccd_l_wr=4, wtr_s=5, wtr_l=10,
    rtw_gap=2,
    rfc=LPDDR5_RFC_NS[16] * 1000 // 1250, refi=3_906_000 // 1250, postpone=8,
    slots=(2, 1, 1, 1, 1, 1, 1, 1),  # ACT is ACT-1 and ACT-2
)

#: Parts by the name that the command line and the documentation use.
PARTS = {"ddr5-4800": DDR5_4800, "lpddr5-6400": LPDDR5_6400}
