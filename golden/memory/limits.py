"""What a DRAM part can do at best: latencies and bandwidths that no scheduler passes.

All from the rules' numbers alone; ``docs/memory_dram.md`` section 4 derives each. Bandwidths are
shares of the peak, 0 to 1, unless said otherwise.
"""

from dataclasses import dataclass

from golden.checks import check_int
from hw.memory.timings import RULES

__all__ = [
    "Latency", "activation_bound", "group_bound", "ideal_latency", "mixed_bound",
    "peak_bytes_per_second", "refresh_limited", "sustained_bound",
]


@dataclass(frozen=True)
class Latency:
    """Unloaded read latency in nCK, from the first command to the first data.

    ``hit``: the row is open; ``closed``: no row is open; ``conflict``: another one is.
    """

    hit: int
    closed: int
    conflict: int

    def ns(self, part):
        """The three in ns, as a tuple."""
        return tuple(cycles * part.tck_ps / 1000 for cycles in
                     (self.hit, self.closed, self.conflict))


def ideal_latency(part):
    """Data-sheet sums of a read: CL, RCD + CL, RP + RCD + CL, as a :class:`Latency`."""
    return Latency(part.cl, part.rcd + part.cl, part.rp + part.rcd + part.cl)


def _distance(part, name):
    return next(rule for rule in RULES if rule.name == name).cycles(part)


def peak_bytes_per_second(part):
    """Bytes per second of a data bus that is never idle."""
    return part.organisation.burst_bytes / (part.burst * part.tck_ps * 1e-12)


def refresh_limited(part):
    """The share left by refresh alone: 1 - tRFC / tREFI."""
    return 1 - part.rfc / part.refi


def sustained_bound(part, writes=False, refreshes=1):
    """The share of an endless stream of row hits, what leads to and from a refresh included.

    Before ``refreshes`` refreshes in a row the last burst's bank must close (tRTP or the write
    recovery, then tRP), after them a row must open (tRCD). ``refreshes`` lies in
    1..``part.postpone`` + 1; more in a row spread the loss.
    """
    refreshes = check_int("refreshes", refreshes, 1, part.postpone + 1)
    close = _distance(part, "tWR_all" if writes else "tRTP_all")
    gap = close + part.rp_all + refreshes * part.rfc + part.rcd - part.burst
    return 1 - gap / (refreshes * part.refi)


def mixed_bound(part, batch, refresh=True):
    """The share of half reads, half writes, in turns of ``batch`` each, all of them row hits.

    A turn lasts ``batch`` bursts less one; then tRTW, and back tWTR_S: the first reads go to a
    bank group that was not just written. ``refresh``: times :func:`refresh_limited`.
    """
    batch = check_int("batch", batch, 1, 1 << 20)
    reads = (batch - 1) * max(part.ccd_s, part.burst)
    writes = (batch - 1) * max(part.ccd_s_wr, part.burst)
    period = reads + _distance(part, "tRTW") + writes + _distance(part, "tWTR_S")
    share = 2 * batch * part.burst / period
    return share * refresh_limited(part) if refresh else share


def activation_bound(part):
    """The share if every burst opens a row of its own.

    The least of what tRRD_S and tFAW, the row cycle of all banks, and the command bus (an ACT and a
    column command that closes the row) allow.
    """
    organisation = part.organisation
    per_burst = max(
        part.rrd_s, part.faw / 4, part.rc / organisation.bank_count,
        part.slots[0] + part.slots[3],
    )
    return min(1.0, part.burst / per_burst)


def group_bound(part, groups, writes=False):
    """The share of row hits that go round ``groups`` bank groups."""
    groups = check_int("groups", groups, 1, part.organisation.bank_groups)
    same, other = (part.ccd_l_wr, part.ccd_s_wr) if writes else (part.ccd_l, part.ccd_s)
    return min(1.0, part.burst / (max(same / groups, other) if groups > 1 else same))
