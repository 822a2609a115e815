"""How fast a route is against its prediction."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.arith.divider import Divider
from hw.streaming.layouts import PREDICTION_BITS, TICK_BITS

__all__ = ["RATIO_BITS", "RATIO_ONE", "Meter"]

RATIO_BITS = 16
RATIO_FRACTION_BITS = 8
RATIO_ONE = 1 << RATIO_FRACTION_BITS
RATIO_MAX = (1 << RATIO_BITS) - 1
WINDOW_LOG2_MAX = 4


class Meter(wiring.Component):
    """Mean of the last 2^``window_log2`` ratios of measured over predicted time.

    **Latency**: ``busy`` for 13 cycles from ``record`` or ``measure`` on, 3 if the ratio is the
    largest, 1 if nothing is in flight.

    **Throughput**: one at a time; not while ``busy``, except ``restart``.

    **Numerics**: ``golden.streaming.meter.Meter``.

    **Errors**: none.

    Members
    -------
    now : ``In(32)``
    window_log2 : ``In(3)``
        0..4.
    begin : ``In(1)``
        Once after a reset, before all else; ``window_log2`` then holds.
    predicted : ``In(24)``
        Ticks of what ended or, for ``measure``, of the oldest request in flight; 0: there is none.
    record : ``In(1)``
        Something has ended, and its time counts.
    restart : ``In(1)``
        The route leaves idleness, or has ended something whose time does not count.
    measure : ``In(1)``
        Make ``estimate``.
    estimate : ``Out(16)``
        Unsigned 8.8; holds until the next.
    busy : ``Out(1)``
    """

    now: In(TICK_BITS)
    window_log2: In(3)
    begin: In(1)
    predicted: In(PREDICTION_BITS)
    record: In(1)
    restart: In(1)
    measure: In(1)
    estimate: Out(RATIO_BITS)
    busy: Out(1)

    def elaborate(self, platform):
        m = Module()
        # elapsed * 2^8 / predicted = elapsed * 2^16 / (predicted * 2^8); the quotient fits.
        m.submodules.divider = divider = Divider(
            divisor_bits=TICK_BITS, quotient_bits=RATIO_BITS + 1, bits_per_cycle=2)
        m.submodules.window = window = Memory(
            shape=RATIO_BITS, depth=1 << WINDOW_LOG2_MAX, init=[])
        newest, oldest = window.write_port(), window.read_port(domain="comb")

        index = Signal(WINDOW_LOG2_MAX)
        is_filled = Signal()
        total = Signal(RATIO_BITS + WINDOW_LOG2_MAX)
        replaced = Signal(RATIO_BITS)
        since, elapsed = Signal(TICK_BITS), Signal(TICK_BITS)
        predicted = Signal(PREDICTION_BITS)
        records = Signal()
        ratio = Signal(RATIO_BITS)
        pending = Signal.like(total)
        mean = Signal(RATIO_BITS)
        ones = Signal.like(total)
        m.d.comb += [
            oldest.addr.eq(index),
            newest.addr.eq(index),
            newest.data.eq(ratio),
            replaced.eq(Mux(is_filled, oldest.data, RATIO_ONE)),
            # Before the first ratio the sum is that of a window of ones.
            ones.eq(RATIO_ONE << self.window_log2),
            divider.i.payload.numerator.eq(elapsed),
            divider.i.payload.divisor.eq(predicted << RATIO_FRACTION_BITS),
        ]
        with m.If(self.begin):
            m.d.sync += total.eq(ones)
        with m.If(self.record | self.restart):
            m.d.sync += since.eq(self.now)

        with m.FSM(name="state") as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += [
                    elapsed.eq(self.now - since),
                    predicted.eq(self.predicted),
                    records.eq(self.record),
                    mean.eq(total >> self.window_log2),
                ]
                with m.If(self.record | self.measure & (self.predicted != 0)):
                    m.next = "DIVIDE"
                with m.Elif(self.measure):
                    m.next = "MEAN"
            with m.State("DIVIDE"):
                with m.If((elapsed >> RATIO_FRACTION_BITS) >= predicted):
                    m.d.sync += ratio.eq(RATIO_MAX)
                    m.next = "SUM"
                with m.Else():
                    m.d.comb += divider.i.valid.eq(1)
                    m.next = "QUOTIENT"
            with m.State("QUOTIENT"):
                m.d.comb += divider.o.ready.eq(1)
                m.d.sync += ratio.eq(divider.o.payload)
                with m.If(divider.o.valid):
                    m.next = "SUM"
            with m.State("SUM"):
                m.d.sync += pending.eq(total - replaced + ratio)
                m.next = "ENTER"
            with m.State("ENTER"):
                with m.If(records):
                    m.d.comb += newest.en.eq(1)
                    m.d.sync += total.eq(pending)
                    with m.If(index + 1 == 1 << self.window_log2):
                        m.d.sync += [index.eq(0), is_filled.eq(1)]
                    with m.Else():
                        m.d.sync += index.eq(index + 1)
                with m.Else():
                    would_be = pending >> self.window_log2
                    m.d.sync += self.estimate.eq(Mux(would_be > mean, would_be, mean))
                m.next = "IDLE"
            with m.State("MEAN"):
                m.d.sync += self.estimate.eq(mean)
                m.next = "IDLE"
        return m
