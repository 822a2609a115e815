"""A queue that cannot refuse loses nothing if its owner asks for no more than it has room for."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib import wiring

from hw.bus.beat_queue import BeatQueue
from tests.formal.inside import Inside
from tests.formal.prover import prove, refute
from tests.formal.streams import Follower, holds, stall, wrapped

pytestmark = pytest.mark.regress

BITS = 4


class BeatContract(wiring.Component):
    """An owner that reserves room as it asks, and has it back as a beat is taken.

    Beats come at any time after they were asked for.

    Parameters
    ----------
    depth : int
        Of the queue.
    is_careful : bool
        Whether the owner minds the room that is left.
    """

    def __init__(self, *, depth, is_careful=True):
        self.depth = depth
        self.is_careful = is_careful
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        unit = BeatQueue(BITS, depth=self.depth)
        # The read register, which no owner counts on, holds one more.
        limit = self.depth if self.is_careful else self.depth + 2
        inside = Inside(unit)
        m.submodules.follower = follower = Follower(BITS, capacity=limit)
        asks = Signal()
        reserved, expected = Signal(range(limit + 1)), Signal(range(limit + 1))
        stall(m, unit.o)
        m.d.comb += [
            asks.eq(AnySeq(1) & (reserved < limit)),
            unit.i.valid.eq(AnySeq(1)),
            unit.i.payload.eq(AnySeq(BITS)),
            Assume(~unit.i.valid | (expected != 0)),
            follower.goes_in.eq(unit.i.valid),
            follower.entering.eq(unit.i.payload),
            follower.comes_out.eq(unit.o.valid & unit.o.ready),
            follower.leaving.eq(unit.o.payload),
        ]
        m.d.sync += [
            reserved.eq(reserved + asks - follower.comes_out),
            expected.eq(expected + asks - unit.i.valid),
        ]
        m.d.comb += [
            Assert(unit.i.ready),
            Assert(holds(m, unit.o)),
            Assert(reserved <= limit),
            Assert(reserved == expected + follower.level),
            Cover(follower.is_inside & (follower.level == limit)),
            Cover(follower.is_inside & (follower.ahead == 0) & follower.comes_out),
        ]
        if self.is_careful:
            self._tie(m, unit, inside, follower)
        m.submodules.unit = inside.fragment
        return m

    def _tie(self, m, unit, inside, follower):
        first, free = inside.register("read_address"), inside.register("write_address")
        stored, place = inside.register("stored"), Signal.like(first)
        is_first = unit.o.valid & (follower.ahead == 0)
        m.d.comb += [
            place.eq(wrapped(first + follower.ahead - unit.o.valid, self.depth)),
            Assert(stored + unit.o.valid == follower.level),
            Assert(first < self.depth),
            Assert(free == wrapped(first + stored, self.depth)),
            Assert(~(follower.is_inside & is_first) | (unit.o.payload == follower.item)),
            Assert(~follower.is_inside | is_first
                   | (inside.row(place, "sram", "memory") == follower.item)),
        ]


@pytest.mark.parametrize("depth", [2, 5])
def test_beat_queue(depth):
    prove(BeatContract(depth=depth), name=f"beat_queue_{depth}", cycles=14)


def test_asking_for_too_much_loses_beats():
    contract = BeatContract(depth=2, is_careful=False)
    assert "Assert failed in contract" in refute(contract, name="beat_queue_overflow")
