"""No slot is given out twice, and none gets lost."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib import wiring

from hw.attention.slots import SlotPool
from tests.formal.inside import Inside
from tests.formal.prover import prove
from tests.formal.streams import holds, stall

pytestmark = pytest.mark.regress


class SlotContract(wiring.Component):
    """Takes slots, and gives back some of those taken.

    Parameters
    ----------
    count : int
        Slots of the pool.
    """

    def __init__(self, *, count):
        self.count = count
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        count, unit = self.count, SlotPool(count=self.count)
        inside = Inside(unit)
        taken, gone, come = (Signal(count, name=name) for name in ("taken", "gone", "come"))
        offered, was_returned = Signal(count), Signal(count)
        stall(m, unit.o)
        m.d.comb += [
            unit.i.valid.eq(AnySeq(1)),
            unit.i.payload.eq(AnySeq(len(unit.i.payload))),
            Assume(~unit.i.valid | ((taken & come) != 0)),
            come.bit_select(unit.i.payload, 1).eq(unit.i.valid),
            offered.bit_select(unit.o.payload, 1).eq(unit.o.valid),
            gone.eq(offered & unit.o.ready.replicate(count)),
        ]
        m.d.sync += [
            taken.eq((taken | gone) & ~come),
            was_returned.eq(was_returned | come),
        ]

        free = inside.register("free")
        missing = Signal(2)  # cycles in which some slot is in nobody's hands, nor on offer
        with m.If(unit.o.valid | taken.all()):
            m.d.sync += missing.eq(0)
        with m.Else():
            m.d.sync += missing.eq(missing + 1)
        m.d.comb += [
            Assert(unit.i.ready),
            Assert(holds(m, unit.o)),
            Assert(~unit.o.valid | (unit.o.payload < count)),
            Assert((offered & taken) == 0),
            Assert(missing < 2),
            # Each slot is free, on offer, or taken: exactly one of these.
            Assert((free & offered) == 0),
            Assert((free & taken) == 0),
            Assert((free | offered | taken).all()),
            Cover(taken.all()),
            Cover((gone & was_returned).any()),
        ]
        m.submodules.unit = inside.fragment
        return m


@pytest.mark.parametrize("count", [2, 3, 8])
def test_slot_pool(count):
    prove(SlotContract(count=count), name=f"slots_{count}")
