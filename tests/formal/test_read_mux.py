"""A burst leaves under its port's id, and beats go to the port whose id they have."""

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hw.bus import axi4
from hw.bus.read_mux import ReadMux
from tests.formal.inside import Inside
from tests.formal.prover import prove
from tests.formal.streams import Follower, drive, holds, stall

pytestmark = pytest.mark.regress

ADDRESS_BITS = 4


class ReadMuxContract(wiring.Component):
    """Looks at one port, whichever the solver picks, and follows one of its bursts.

    Parameters
    ----------
    ports : int
    """

    def __init__(self, *, ports):
        self.ports = ports
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        unit = ReadMux(address_bits=ADDRESS_BITS, data_bytes=2, ports=self.ports)
        inside = Inside(unit)
        mine = Signal(unit.id_bits)
        m.d.comb += [mine.eq(AnyConst(unit.id_bits)), Assume(mine < self.ports)]
        self._check_requests(m, unit, inside, mine)
        self._check_beats(m, unit, mine)
        m.submodules.unit = inside.fragment
        return m

    def _check_requests(self, m, unit, inside, mine):
        bits = len(Value.cast(unit.port[0].ar.payload))
        m.submodules.follower = follower = Follower(bits, capacity=2)
        for port in unit.port:
            drive(m, port.ar)
        stall(m, unit.axi.ar)
        asked, burst = Signal(self.ports), unit.axi.ar.payload
        m.d.comb += [
            asked.eq(Cat(port.ar.valid & port.ar.ready for port in unit.port)),
            follower.goes_in.eq(asked.bit_select(mine, 1)),
            follower.entering.eq(
                Cat(port.ar.payload for port in unit.port).word_select(mine, bits)),
            follower.comes_out.eq(unit.axi.ar.valid & unit.axi.ar.ready & (burst.id == mine)),
            follower.leaving.eq(Cat(burst.addr, burst.len)),
            Assert(holds(m, unit.axi.ar)),
            Assert(~unit.axi.ar.valid | (burst.id < self.ports)),
            Assert(~unit.axi.ar.valid | ((burst.size == 1) & (burst.burst == axi4.Burst.INCR))),
            Cover(follower.is_inside & (follower.ahead == 1)),
            Cover(follower.is_inside & (follower.ahead == 0) & follower.comes_out),
        ]

        # The slice holds two bursts, of any ports.
        spare, spare_valid = (inside.register(name, "slice") for name in ("spare", "spare_valid"))
        spare = type(burst)(burst.shape(), spare)
        is_first, is_spare = Signal(), Signal()
        m.d.comb += [
            is_first.eq(unit.axi.ar.valid & (burst.id == mine)),
            is_spare.eq(spare_valid & (spare.id == mine)),
            Assert(unit.axi.ar.valid | ~spare_valid),
            Assert(~spare_valid | (spare.id < self.ports)),
            Assert(~spare_valid | ((spare.size == 1) & (spare.burst == axi4.Burst.INCR))),
            Assert(follower.level == is_first + is_spare),
            Assert(~follower.is_inside | (follower.item == Mux(
                is_first & (follower.ahead == 0), Cat(burst.addr, burst.len),
                Cat(spare.addr, spare.len)))),
        ]

    def _check_beats(self, m, unit, mine):
        drive(m, unit.axi.r)
        beat, lanes = unit.axi.r.payload, [port.r for port in unit.port]
        bits = len(Value.cast(lanes[0].payload))
        given = Signal(self.ports)
        moved = unit.axi.r.valid & unit.axi.r.ready
        for lane in lanes:
            m.d.comb += [
                lane.ready.eq(AnySeq(1)),
                Assert(holds(m, lane)),
            ]
        m.d.comb += [
            given.eq(Cat(lane.valid & lane.ready for lane in lanes)),
            Assert(~moved | (given == Mux(beat.id < self.ports, 1 << beat.id, 0))),
            Assert(moved | (given == 0)),
            Assert(~given.bit_select(mine, 1) | (
                Cat(lane.payload for lane in lanes).word_select(mine, bits)
                == Cat(beat.data, beat.resp, beat.last))),
            Cover(given.bit_select(mine, 1)),
            Cover(moved & (beat.id >= self.ports)),
        ]


@pytest.mark.parametrize("ports", [3, 5])
def test_read_mux(ports):
    prove(ReadMuxContract(ports=ports), name=f"read_mux_{ports}", cycles=8)
