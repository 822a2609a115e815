"""Buffers give every item once, in order, and neither lose nor make one."""

import pytest
from amaranth.hdl import Assert, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from hw.stream import BypassQueue, Queue, SkidBuffer
from tests.formal.inside import Inside
from tests.formal.prover import ProofError, prove, refute
from tests.formal.streams import Follower, drive, holds, stall, wrapped

pytestmark = pytest.mark.regress

BITS = 4


class BufferContract(wiring.Component):
    """What any buffer must do; a subclass says where the item followed lies.

    Parameters
    ----------
    unit : wiring.Component
        With streams ``i`` and ``o``.
    capacity : int
        Items that it holds.
    """

    def __init__(self, unit, *, capacity):
        self.unit = unit
        self.capacity = capacity
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        unit, inside = self.unit, Inside(self.unit)
        m.submodules.follower = follower = Follower(BITS, capacity=self.capacity)
        drive(m, unit.i)
        stall(m, unit.o)
        m.d.comb += [
            follower.goes_in.eq(unit.i.valid & unit.i.ready),
            follower.entering.eq(unit.i.payload),
            follower.comes_out.eq(unit.o.valid & unit.o.ready),
            follower.leaving.eq(unit.o.payload),
            Assert(holds(m, unit.o)),
            # What is inside is on offer, and what fits is taken.
            Assert((follower.level == 0) | unit.o.valid),
            Assert((follower.level == self.capacity) | unit.i.ready),
            Cover(follower.is_inside & (follower.level == self.capacity) & unit.i.valid),
            Cover(follower.is_inside & (follower.ahead == 0) & follower.comes_out),
        ]
        self.tie(m, inside, follower)
        m.submodules.unit = inside.fragment
        return m

    def tie(self, m, inside, follower):
        """Nothing, for induction to fail on."""


class QueueContract(BufferContract):
    """For a queue in a memory, which may be the submodule at ``path``."""

    path = ()

    def tie(self, m, inside, follower):
        depth = self.capacity
        first = inside.register("read_port__addr", *self.path)
        free = inside.register("write_port__addr", *self.path)
        place = Signal.like(first)
        m.d.comb += [
            place.eq(wrapped(first + follower.ahead, depth)),
            Assert(inside.register("level", *self.path) == follower.level),
            Assert(first < depth),
            Assert(free == wrapped(first + follower.level, depth)),
            Assert(~follower.is_inside
                   | (inside.row(place, *self.path, "memory") == follower.item)),
        ]


class BypassContract(QueueContract):
    path = ("queue",)


class RegisterContract(BufferContract):
    """For a queue of one register."""

    def tie(self, m, inside, follower):
        m.d.comb += [
            Assert(self.unit.level == follower.level),
            Assert(~follower.is_inside | (self.unit.o.payload == follower.item)),
        ]


class SkidContract(BufferContract):
    def tie(self, m, inside, follower):
        spare, spare_valid = inside.register("spare"), inside.register("spare_valid")
        m.d.comb += [
            Assert(self.unit.o.valid + spare_valid == follower.level),
            Assert(self.unit.o.valid | ~spare_valid),
            Assert(~follower.is_inside | (follower.ahead == 1)
                   | (self.unit.o.payload == follower.item)),
            Assert(~follower.is_inside | (follower.ahead == 0) | (spare == follower.item)),
        ]


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_queue(depth):
    contract = RegisterContract if depth == 1 else QueueContract
    prove(contract(Queue(BITS, depth=depth), capacity=depth), name=f"queue_{depth}")


def test_bypass_queue():
    prove(BypassContract(BypassQueue(BITS, depth=3), capacity=3), name="bypass_queue")


def test_skid_buffer():
    prove(SkidContract(SkidBuffer(BITS), capacity=2), name="skid_buffer")


class NeverFull(Queue):
    """Takes an item more than it has room for."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(1)
        return m


class WrapsEarly(Queue):
    """Leaves the last row of its memory out, and so overwrites an item when it is full."""

    def _next(self, address):
        return Mux(address == self.depth - 2, 0, address + 1)


@pytest.mark.parametrize("broken", [NeverFull, WrapsEarly])
def test_a_broken_queue_is_refuted(broken):
    name = f"broken_{broken.__name__.lower()}"
    reason = refute(BufferContract(broken(BITS, depth=3), capacity=3), name=name)
    assert "Assert failed in contract" in reason
    with pytest.raises(ProofError, match=f"{name}: base fails"):
        prove(QueueContract(broken(BITS, depth=3), capacity=3), name=name)


def test_a_sound_queue_is_not_refuted():
    with pytest.raises(ProofError, match="no assertion fails within 6 cycles"):
        refute(BufferContract(Queue(BITS, depth=3), capacity=3), name="sound", cycles=6)


def test_a_proof_takes_induction():
    with pytest.raises(ProofError, match="untied: induction fails"):
        prove(BufferContract(Queue(BITS, depth=3), capacity=3), name="untied", cycles=6)


def test_a_proof_takes_its_covers():
    with pytest.raises(ProofError, match="short: cover fails"):
        prove(QueueContract(Queue(BITS, depth=8), capacity=8), name="short", cycles=6)
