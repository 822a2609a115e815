"""The arbiter grants one input at a time, for as long as it takes, and forgets none."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from hw.stream import Arbiter
from tests.formal.inside import Inside
from tests.formal.prover import prove
from tests.formal.streams import drive, holds, stall

pytestmark = pytest.mark.regress

BITS = 2


class ArbiterContract(wiring.Component):
    """Looks at one input, whichever the solver picks, and how long it waits.

    Parameters
    ----------
    count : int
        Inputs of the arbiter.
    """

    def __init__(self, *, count):
        self.count = count
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        count, unit = self.count, Arbiter(BITS, count=self.count)
        inside = Inside(unit)
        for port in unit.i:
            drive(m, port)
        stall(m, unit.o)

        mine = Signal(range(count))
        valid, ready = (Cat(getattr(port, name) for port in unit.i) for name in ("valid", "ready"))
        moves = Signal(count)
        is_asking, is_served, moved = Signal(), Signal(), Signal()
        m.d.comb += [
            mine.eq(AnyConst(len(mine))),
            Assume(mine < count),
            moves.eq(valid & ready),
            is_asking.eq(valid.bit_select(mine, 1)),
            is_served.eq(moves.bit_select(mine, 1)),
            moved.eq(unit.o.valid & unit.o.ready),
        ]
        m.d.comb += [
            Assert(holds(m, unit.o)),
            Assert(unit.o.valid == valid.any()),
            # One is granted when an item moves, and none otherwise.
            Assert((moves & (moves - 1)[:count]) == 0),
            Assert(moves.any() == moved),
            Assert(~is_served | (unit.grant == mine)),
            Assert(~is_served | (unit.o.payload == Cat(port.payload for port in unit.i)
                                 .word_select(mine, BITS))),
        ]
        self._check_grant(m, unit, inside, valid)
        self._check_turns(m, inside, mine, is_asking, is_served, moved)
        m.submodules.unit = inside.fragment
        return m

    def _check_grant(self, m, unit, inside, valid):
        """A grant stays until its item has been taken."""
        last, held = inside.register("last"), inside.register("held")
        waits, before = Signal(), Signal.like(unit.grant)
        m.d.sync += [waits.eq(unit.o.valid & ~unit.o.ready), before.eq(unit.grant)]
        m.d.comb += [
            Assert(~waits | (unit.grant == before)),
            Assert(last < self.count),
            Assert(held == waits),
            Assert(~held | ((last == before) & valid.bit_select(last, 1))),
        ]

    def _check_turns(self, m, inside, mine, is_asking, is_served, moved):
        """Each other input goes first once at most."""
        last, held = inside.register("last"), inside.register("held")
        waited = Signal(range(2 * self.count))
        before_mine, turns = Signal(range(self.count + 1)), Signal(range(self.count + 1))
        with m.If(is_asking & ~is_served):
            m.d.sync += waited.eq(waited + moved)
        with m.Else():
            m.d.sync += waited.eq(0)
        m.d.comb += [
            before_mine.eq(Mux(last < mine, mine - last - 1, self.count + mine - last - 1)),
            turns.eq(Mux(~held, before_mine, Mux(last == mine, 0, before_mine + 1))),
            Assert(~is_asking | (waited < self.count)),
            Assert(~is_asking | (waited + turns < self.count)),
            Cover(is_served & (waited == self.count - 1)),
        ]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_arbiter(count):
    prove(ArbiterContract(count=count), name=f"arbiter_{count}")
