"""Holds a query's final state while the next query is summed, and sends it in beats."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import state_beat
from hw.attention.softmax import softmax_total
from hw.config import EXPONENT_BITS, AttentionConfig

__all__ = ["StateDrain"]


class StateDrain(wiring.Component):
    """Shifts a captured state out, ``result_lanes`` elements per beat.

    **Latency**: 1 cycle from ``capture`` to the first beat, if the query's total is there.

    **Throughput**: one beat per cycle; a state per head_dim / result_lanes cycles.

    **Numerics**: none, the state passes unchanged.

    **Errors**: none. ``capture`` while ``busy`` loses a state.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    capture : ``In(1)``
        Take ``exponent`` and ``sums``.
    exponent : ``In(8)``
    sums : ``In(ArrayLayout(signed(value_sum_bits), head_dim))``
    i_total : ``In(stream.Signature(softmax_total(config)))``
        The other half of the state; may come earlier or later.
    o : ``Out(stream.Signature(state_beat(config)))``
    done : ``Out(1)``
        High in the cycle in which the last beat is taken.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"StateDrain config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "capture": In(1),
            "exponent": In(EXPONENT_BITS),
            "sums": In(data.ArrayLayout(signed(config.value_sum_bits), config.head_dim)),
            "i_total": In(stream.Signature(softmax_total(config))),
            "o": Out(stream.Signature(state_beat(config))),
            "done": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config

        held = Signal()
        exponent = Signal(EXPONENT_BITS)
        sums = Signal(data.ArrayLayout(signed(config.value_sum_bits), config.head_dim))
        place = Signal(range(config.head_dim // config.result_lanes))
        beat = self.o.payload
        total = self.i_total.payload
        m.d.comb += [
            self.o.valid.eq(held & self.i_total.valid),
            beat.maximum.eq(total.maximum),
            beat.weight_sum.eq(total.weight_sum),
            beat.saturated.eq(total.saturated),
            beat.exponent.eq(exponent),
            beat.last.eq(place == config.head_dim // config.result_lanes - 1),
            self.done.eq(self.o.valid & self.o.ready & beat.last),
            self.i_total.ready.eq(self.done),
        ]
        m.d.comb += [beat.values[lane].eq(sums[lane]) for lane in range(config.result_lanes)]

        beat_bits = config.value_sum_bits * config.result_lanes
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [sums.eq(sums.as_value()[beat_bits:]), place.eq(place + 1)]
        with m.If(self.done):
            m.d.sync += held.eq(0)
        with m.If(self.capture):
            m.d.sync += [
                held.eq(1),
                place.eq(0),
                exponent.eq(self.exponent),
                sums.eq(self.sums),
            ]
        return m
