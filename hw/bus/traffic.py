"""Watches an AXI4 bus for the cycle counters."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Traffic", "watch"]

OUTSTANDING_BITS = 12


class Traffic(wiring.Component):
    """Tells what the bus did in this cycle, and whether its master is kept waiting.

    **Latency**: 0 cycles, combinational from the handshakes of the cycle.

    **Throughput**: a transfer of every channel in every cycle.

    **Numerics**: none.

    **Errors**: none; up to 4,095 bursts may be outstanding.

    Members
    -------
    ar_asked, aw_asked : ``In(1)``
        ``valid`` of a request channel.
    ar_moved, r_moved, r_last, aw_moved, w_moved, b_moved : ``In(1)``
        Transfer on a channel; ``r_last`` with it.
    beat_read, beat_written : ``Out(1)``
        A data beat moved.
    held : ``Out(1)``
        Something was asked of the memory, and no channel moved.
    """

    ar_asked: In(1)
    ar_moved: In(1)
    r_moved: In(1)
    r_last: In(1)
    aw_asked: In(1)
    aw_moved: In(1)
    w_moved: In(1)
    b_moved: In(1)
    beat_read: Out(1)
    beat_written: Out(1)
    held: Out(1)

    def elaborate(self, platform):
        m = Module()
        reads = Signal(OUTSTANDING_BITS)
        writes = Signal(OUTSTANDING_BITS)
        m.d.sync += [
            reads.eq(reads + self.ar_moved - (self.r_moved & self.r_last)),
            writes.eq(writes + self.aw_moved - self.b_moved),
        ]
        asked = reads.any() | writes.any() | self.ar_asked | self.aw_asked
        moved = self.ar_moved | self.r_moved | self.aw_moved | self.w_moved | self.b_moved
        m.d.comb += [
            self.beat_read.eq(self.r_moved),
            self.beat_written.eq(self.w_moved),
            self.held.eq(asked & ~moved),
        ]
        return m


def watch(m, traffic, axi):
    """Connect a `Traffic` to the AXI4 bus that it watches."""
    for name in ("ar", "r", "aw", "w", "b"):
        channel = getattr(axi, name)
        m.d.comb += getattr(traffic, f"{name}_moved").eq(channel.valid & channel.ready)
    m.d.comb += [
        traffic.ar_asked.eq(axi.ar.valid),
        traffic.aw_asked.eq(axi.aw.valid),
        traffic.r_last.eq(axi.r.payload.last),
    ]
