"""Bursts leave under their port's id, data follow in their order, and answers find their port."""

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hw.bus import axi4
from hw.bus.write_mux import WriteMux
from tests.formal.inside import Inside
from tests.formal.prover import prove, refute
from tests.formal.streams import Follower, drive, holds, stall, wrapped

pytestmark = pytest.mark.regress

ADDRESS_BITS = 4
BURSTS = 3


class WriteMuxContract(wiring.Component):
    """Follows a grant to the bus's requests, to the port whose data it lets pass, and each beat.

    Grants and data pass two followers of the same items, so bursts and their data have one order.

    Parameters
    ----------
    unit : WriteMux
    """

    def __init__(self, unit):
        self.unit = unit
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        unit, inside = self.unit, Inside(self.unit)
        for port in unit.port:
            drive(m, port.aw)
            drive(m, port.w)
        stall(m, unit.axi.aw)
        stall(m, unit.axi.w)
        requests = Cat(port.aw.valid & port.aw.ready for port in unit.port)
        beats = Cat(port.w.valid & port.w.ready for port in unit.port)
        grants, sends = Signal.like(requests), Signal.like(beats)
        granted, sending = Signal(unit.id_bits), Signal(unit.id_bits)
        m.d.comb += [grants.eq(requests), sends.eq(beats)]
        for index in range(unit.ports):
            with m.If(grants[index]):
                m.d.comb += granted.eq(index)
            with m.If(sends[index]):
                m.d.comb += sending.eq(index)
        for moves in (grants, sends):
            m.d.comb += Assert((moves & (moves - 1)[:unit.ports]) == 0)

        request = Cat(port.aw.payload for port in unit.port).word_select(
            granted, len(Value.cast(unit.port[0].aw.payload)))
        beat = Cat(port.w.payload for port in unit.port).word_select(
            sending, len(Value.cast(unit.port[0].w.payload)))
        self._check_requests(m, inside, grants.any(), granted, request)
        self._check_order(m, inside, grants.any(), granted, sends.any(), sending, beat[-1])
        self._check_beats(m, inside, sends.any(), beat)
        self._check_turns(m, inside, grants)
        self._check_answers(m)
        m.submodules.unit = inside.fragment
        return m

    def _check_slice(self, m, inside, name, port, entering, goes_in, fields):
        """A register slice gives what went in; ``fields`` of its payload are followed."""
        follower = Follower(len(entering), capacity=2)
        m.submodules[f"{name}_follower"] = follower
        spare, spare_valid = (inside.register(part, name) for part in ("spare", "spare_valid"))
        spare = type(port.payload)(port.payload.shape(), spare)
        first, second = fields(port.payload), fields(spare)
        m.d.comb += [
            follower.goes_in.eq(goes_in),
            follower.entering.eq(entering),
            follower.comes_out.eq(port.valid & port.ready),
            follower.leaving.eq(first),
            Assert(holds(m, port)),
            Assert(follower.level == port.valid + spare_valid),
            Assert(port.valid | ~spare_valid),
            Assert(~follower.is_inside
                   | (follower.item == Mux(follower.ahead == 0, first, second))),
            Cover(follower.is_inside & (follower.ahead == 1)),
            Cover(follower.is_inside & (follower.ahead == 0) & follower.comes_out),
        ]
        return spare, spare_valid

    def _check_requests(self, m, inside, goes_in, granted, request):
        axi = self.unit.axi.aw
        spare, spare_valid = self._check_slice(
            m, inside, "requests", axi, Cat(request, granted), goes_in,
            lambda burst: Cat(burst.addr, burst.len, burst.id))
        for burst, valid in ((axi.payload, axi.valid), (spare, spare_valid)):
            m.d.comb += [
                Assert(~valid | (burst.id < self.unit.ports)),
                Assert(~valid | ((burst.size == 1) & (burst.burst == axi4.Burst.INCR))),
            ]

    def _check_beats(self, m, inside, goes_in, beat):
        self._check_slice(m, inside, "beats", self.unit.axi.w, beat, goes_in,
                          lambda item: Cat(item.data, item.strb, item.last))

    def _check_order(self, m, inside, goes_in, granted, moves, sending, last):
        """The port whose beat is taken is that of the oldest grant whose last beat was not."""
        m.submodules.order = follower = Follower(self.unit.id_bits, capacity=BURSTS)
        first = inside.register("read_port__addr", "order")
        free = inside.register("write_port__addr", "order")
        place, oldest = Signal.like(first), Signal(self.unit.id_bits)
        m.d.comb += [
            follower.goes_in.eq(goes_in),
            follower.entering.eq(granted),
            follower.comes_out.eq(moves & last),
            follower.leaving.eq(sending),
            place.eq(wrapped(first + follower.ahead, BURSTS)),
            oldest.eq(inside.row(first, "order", "memory")),
            Assert(inside.register("level", "order") == follower.level),
            Assert(first < BURSTS),
            Assert(free == wrapped(first + follower.level, BURSTS)),
            Assert(~follower.is_inside | (inside.row(place, "order", "memory") == follower.item)),
            # Any beat, not just the last.
            Assert(~moves | ((follower.level != 0) & (sending == oldest))),
            Cover(follower.is_inside & (follower.level == BURSTS)),
            Cover(follower.is_inside & follower.comes_out & (follower.ahead == 0)),
        ]
        # What the oldest grant waits for is taken as soon as the slice has room: nothing else
        # holds it up.
        room = ~inside.register("spare_valid", "beats")
        for index, port in enumerate(self.unit.port):
            m.d.comb += Assert(
                port.w.ready == (room & (follower.level != 0) & (oldest == index)))

    def _check_turns(self, m, inside, grants):
        """Each other port goes first once at most; a grant is there while there is room for it."""
        unit = self.unit
        last, held = (inside.register(name, "arbiter") for name in ("last", "held"))
        mine, asking = Signal(range(unit.ports)), Signal()
        waited = Signal(range(2 * unit.ports))
        before, turns = Signal(range(unit.ports + 1)), Signal(range(unit.ports + 1))
        valid = Cat(port.aw.valid for port in unit.port)
        served = Signal()
        m.d.comb += [
            mine.eq(AnyConst(len(mine))),
            Assume(mine < unit.ports),
            asking.eq(valid.bit_select(mine, 1)),
            served.eq(grants.bit_select(mine, 1)),
        ]
        with m.If(asking & ~served):
            m.d.sync += waited.eq(waited + grants.any())
        with m.Else():
            m.d.sync += waited.eq(0)
        room = (~inside.register("spare_valid", "requests")
                & (inside.register("level", "order") != BURSTS))
        m.d.comb += [
            before.eq(Mux(last < mine, mine - last - 1, unit.ports + mine - last - 1)),
            turns.eq(Mux(~held, before, Mux(last == mine, 0, before + 1))),
            Assert(last < unit.ports),
            Assert(~held | valid.bit_select(last, 1)),
            Assert(~asking | (waited < unit.ports)),
            Assert(~asking | (waited + turns < unit.ports)),
            Assert(grants.any() == (valid.any() & room)),
            Cover(served & (waited == unit.ports - 1)),
        ]

    def _check_answers(self, m):
        axi, ports = self.unit.axi.b, self.unit.port
        drive(m, axi)
        given = Signal(len(ports))
        moved = axi.valid & axi.ready
        for port in ports:
            m.d.comb += [
                port.b.ready.eq(AnySeq(1)),
                Assert(holds(m, port.b)),
                Assert(~port.b.valid
                       | (port.b.payload.response == Value.cast(axi.payload.resp))),
            ]
        m.d.comb += [
            given.eq(Cat(port.b.valid & port.b.ready for port in ports)),
            Assert(~moved | (given == Mux(axi.payload.id < len(ports), 1 << axi.payload.id, 0))),
            Assert(moved | (given == 0)),
            Cover(moved & (axi.payload.id >= len(ports))),
        ]


def make_unit(cls, ports):
    return cls(address_bits=ADDRESS_BITS, data_bytes=2, ports=ports, bursts=BURSTS)


@pytest.mark.parametrize("ports", [3, 5])
def test_write_mux(ports):
    prove(WriteMuxContract(make_unit(WriteMux, ports)), name=f"write_mux_{ports}", cycles=10)


class Impatient(WriteMux):
    """Lets the data of the next burst begin a beat early."""

    def _send(self, m, order):
        super()._send(m, order)
        m.d.comb += order.ready.eq(order.valid)


class Forgetful(WriteMux):
    """Asks for a burst whose data it has no place for."""

    def _ask(self, m, order):
        super()._ask(m, order)
        requests, arbiter = m.submodules.requests, m.submodules.arbiter
        m.d.comb += [
            requests.i.valid.eq(arbiter.o.valid),
            arbiter.o.ready.eq(requests.i.ready),
        ]


@pytest.mark.parametrize("broken", [Impatient, Forgetful])
def test_a_broken_write_mux_is_refuted(broken):
    reason = refute(WriteMuxContract(make_unit(broken, 3)),
                    name=f"{broken.__name__.lower()}_write_mux", cycles=10)
    assert "Assert failed in contract" in reason
