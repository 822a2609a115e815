"""Bursts cover every byte of a run exactly once, in order, and none crosses 4 KiB."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from hw.config import StreamingConfig
from hw.streaming.burst import RUN_BITS, BurstSplitter
from tests.formal.inside import Inside
from tests.formal.prover import prove, refute
from tests.formal.streams import drive, holds, stall

pytestmark = pytest.mark.regress

PAGE_BITS = 12
CONTEXT_BITS = 2


class Hesitant(BurstSplitter):
    """With a bug: a run that ends at a boundary is not seen to end there."""

    @staticmethod
    def _fits(size, room):
        return size < room


class SplitterContract(wiring.Component):
    """Follows a run through the splitter, byte by byte.

    Parameters
    ----------
    config : StreamingConfig
    splitter : type
    """

    def __init__(self, config, *, splitter=BurstSplitter):
        self.config = config
        self.splitter = splitter
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        unit = self.splitter(config, context=CONTEXT_BITS)
        inside = Inside(unit)
        drive(m, unit.i)
        stall(m, unit.o)
        m.d.comb += unit.cut.eq(AnySeq(1))
        enters, leaves = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready
        piece, entering = unit.o.payload, unit.i.payload

        # The byte that comes next, and how many are left from there to the end of the run.
        is_open, is_cut = Signal(), Signal()
        address, left = Signal(config.address_bits), Signal(RUN_BITS)
        context = Signal(CONTEXT_BITS)
        size = Signal(PAGE_BITS + 1)
        final = Signal(config.address_bits)
        m.d.comb += [
            final.eq((piece.address & -config.bus_bytes)
                     + piece.length * config.bus_bytes + piece.tail),
            size.eq(Mux(piece.is_empty, 0, final - piece.address + 1)),
        ]
        with m.If(leaves):
            m.d.sync += [
                address.eq(final + 1),
                left.eq(left - size),
                is_cut.eq(unit.cut & ~piece.last),
                is_open.eq(~piece.last),
            ]
        with m.If(enters):
            m.d.sync += [
                is_open.eq(1), is_cut.eq(0),
                address.eq(entering.address), left.eq(entering.bytes),
                context.eq(entering.context),
            ]

        block = config.burst_bytes.bit_length() - 1
        is_burst = unit.o.valid & ~piece.is_empty
        m.d.comb += [
            Assert(holds(m, unit.o)),
            Assert(unit.o.valid == is_open),
            Assert(unit.i.ready == (~is_open | (leaves & piece.last))),
            # Where a burst lies.
            Assert(~is_burst | (piece.address[PAGE_BITS:] == final[PAGE_BITS:])),
            Assert(~is_burst | (piece.address[block:] == final[block:])),
            Assert(~is_burst | (piece.address <= final)),
            Assert(~is_burst | (piece.length < config.burst_bytes // config.bus_bytes)),
            # Every byte once, in order, and nothing else.
            Assert(~is_burst | (piece.address == address)),
            Assert(~is_burst | (size <= left)),
            Assert(~unit.o.valid | is_cut | (piece.last == (size == left))),
            Assert(~unit.o.valid | (piece.is_empty == (is_cut | (left == 0)))),
            Assert(~(unit.o.valid & is_cut) | piece.last),
            Assert(~unit.o.valid | (piece.context == context)),
            # What induction needs besides.
            Assert(~is_burst | piece.last | final[:block].all()),
            Assert(~is_burst | piece.last | (inside.register("rest") == left - size)),
            Cover(leaves & piece.last & ~piece.is_empty & final[:block].all()),
            Cover(leaves & ~piece.last & (piece.tail == config.bus_bytes - 1)),
            Cover(leaves & is_cut),
        ]
        m.submodules.unit = inside.fragment
        return m


def make_config(bus_bytes, burst_bytes):
    return StreamingConfig(
        head_dim=64, bus_bytes=bus_bytes, burst_bytes=burst_bytes, address_bits=16)


@pytest.mark.parametrize("bus_bytes, burst_bytes", [
    (8, 2048), (16, 4096), (64, 4096), (64, 256), (8, 8)])
def test_burst_splitter(bus_bytes, burst_bytes):
    prove(SplitterContract(make_config(bus_bytes, burst_bytes)),
          name=f"burst_splitter_{bus_bytes}_{burst_bytes}", cycles=8)


def test_stray_burst_is_found():
    contract = SplitterContract(make_config(16, 4096), splitter=Hesitant)
    assert "Assert failed in contract" in refute(contract, name="burst_splitter_stray")
