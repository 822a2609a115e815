"""Spells a head's state out in 64-bit words."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import state_beat
from hw.config import STATE_BITS, AttentionConfig

__all__ = ["StateWords", "word_beat"]


def word_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat's worth of 32-bit words; ``last`` closes a state."""
    return data.StructLayout({
        "words": data.ArrayLayout(32, config.result_lanes), "last": 1})


class StateWords(wiring.Component):
    """Gives, for each state, a header beat and then two beats for each of its own.

    **Latency**: 0 cycles, combinational.

    **Throughput**: one beat per cycle on ``o``. ``i.ready`` depends on ``o.ready`` within the
    cycle.

    **Numerics**: none; values are sign-extended.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream)`` of ``state_beat``
    o : ``Out(stream)`` of ``word_beat``
        Header: m, ev, l in two words. Then the elements of o, two words each, low word first.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"StateWords config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(state_beat(config))),
            "o": Out(stream.Signature(word_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, beat = self.config, self.i.payload
        header = data.View(
            data.StructLayout({"maximum": 32, "exponent": 32, "weight_sum": STATE_BITS}),
            Signal(2 * 32 + STATE_BITS))
        values = Signal(data.ArrayLayout(signed(STATE_BITS), config.result_lanes))
        half_bits = STATE_BITS * config.result_lanes // 2
        m.d.comb += [
            header.maximum.eq(beat.maximum),
            header.exponent.eq(beat.exponent),
            header.weight_sum.eq(beat.weight_sum),
            *(wide.eq(value) for wide, value in zip(values, beat.values, strict=True)),
        ]

        in_header, in_upper = Signal(init=1), Signal()
        bits = values.as_value()
        half = Mux(in_upper, bits[half_bits:], bits[:half_bits])
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.o.payload.words.eq(Mux(in_header, header, half)),
            self.o.payload.last.eq(beat.last & in_upper),
            self.i.ready.eq(self.o.ready & in_upper),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [
                in_header.eq(self.o.payload.last),
                in_upper.eq(~in_header & ~in_upper),
            ]
        return m
