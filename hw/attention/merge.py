"""Merges the states of a query over two disjoint sets of tokens."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import clip_unsigned, delay
from hw.arith.shift_add import SHIFT_BITS, ShiftAdd
from hw.attention.layouts import full_state_beat
from hw.config import EXPONENT_BITS, STATE_BITS, AttentionConfig
from hw.shared import Once

__all__ = ["Merge"]


class Merge(wiring.Component):
    """Scales both states down to the larger maximum and exponent, and adds them.

    A state without weight is empty: the other one passes unchanged.

    **Latency**: 5 cycles (`LATENCY`): compare; shift amounts; shift (2); add.

    **Throughput**: one beat per cycle, taken from both inputs at once. The ``ready`` of each
    depends on ``valid`` of the other and on ``o.ready`` within the cycle.

    **Numerics**: ``golden.merge.merge``, docs/numerics.md section 7.

    **Errors**: none. Sums over more than 2**22 tokens may wrap.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_a, i_b : ``In(stream.Signature(full_state_beat(config)))``
        The beats of two states, in step.
    o : ``Out(stream.Signature(full_state_beat(config)))``
    """

    LATENCY = 2 + ShiftAdd.LATENCY

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Merge config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_a": In(stream.Signature(full_state_beat(config))),
            "i_b": In(stream.Signature(full_state_beat(config))),
            "o": Out(stream.Signature(full_state_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()

        advance = Signal()
        beats = [self.i_a.payload, self.i_b.payload]
        maximum, exponent = self._compare(m, advance, *beats)
        compared = [delay(m, beat, 1, name=f"beat_{side}", enable=advance)
                    for side, beat in zip("ab", beats, strict=True)]
        falls = [self._fall(m, advance, side, beat, maximum, exponent)
                 for side, beat in zip("ab", compared, strict=True)]
        scaled = [delay(m, beat, 1, name=f"scaled_{side}", enable=advance)
                  for side, beat in zip("ab", compared, strict=True)]

        merged = self.o.payload
        m.submodules.weights = weights = Once(ShiftAdd(bits=STATE_BITS, is_signed=False))
        self._connect(m, advance, weights, [beat.weight_sum for beat in scaled],
                      [weight_fall for weight_fall, _ in falls])
        m.d.comb += merged.weight_sum.eq(weights.o)
        for lane in range(self.config.result_lanes):
            m.submodules[f"values_{lane}"] = values = Once(
                ShiftAdd(bits=STATE_BITS, is_signed=True))
            self._connect(m, advance, values, [beat.values[lane] for beat in scaled],
                          [value_fall for _, value_fall in falls])
            m.d.comb += merged.values[lane].eq(values.o)

        both = self.i_a.valid & self.i_b.valid
        rest = self.LATENCY - 1
        m.d.comb += [
            merged.maximum.eq(delay(m, maximum, rest, name="maximum", enable=advance)),
            merged.exponent.eq(delay(m, exponent, rest, name="exponent", enable=advance)),
            merged.last.eq(delay(m, compared[0].last, rest, name="last", enable=advance)),
            self.o.valid.eq(delay(m, both, self.LATENCY, name="valid", enable=advance)),
            advance.eq(~self.o.valid | self.o.ready),
            self.i_a.ready.eq(advance & self.i_b.valid),
            self.i_b.ready.eq(advance & self.i_a.valid),
        ]
        return m

    def _compare(self, m, advance, a, b):
        """The merged maximum and exponent: those of the other side if one is empty."""
        take_b = a.weight_sum == 0
        take_a = b.weight_sum == 0
        maximum = Signal.like(a.maximum, name="maximum")
        exponent = Signal.like(a.exponent, name="exponent")
        with m.If(advance):
            m.d.sync += [
                maximum.eq(Mux(take_b | (~take_a & (b.maximum > a.maximum)),
                               b.maximum, a.maximum)),
                exponent.eq(Mux(take_b | (~take_a & (b.exponent > a.exponent)),
                                b.exponent, a.exponent)),
            ]
        return maximum, exponent

    def _fall(self, m, advance, side, beat, maximum, exponent):
        """How far a side is to be shifted down: its weights, and its values.

        For an empty side this means nothing: it has only zeros to shift.
        """
        weight_fall = Signal(SHIFT_BITS, name=f"weight_fall_{side}")
        value_fall = Signal(SHIFT_BITS, name=f"value_fall_{side}")
        octaves = (maximum - beat.maximum).as_unsigned()
        with m.If(advance):
            m.d.sync += [
                weight_fall.eq(clip_unsigned(octaves, SHIFT_BITS)),
                value_fall.eq(clip_unsigned(
                    octaves + (exponent - beat.exponent)[:EXPONENT_BITS], SHIFT_BITS)),
            ]
        return weight_fall, value_fall

    def _connect(self, m, advance, adder, terms, falls):
        m.d.comb += [
            adder.a.eq(terms[0]),
            adder.b.eq(terms[1]),
            adder.shift_a.eq(falls[0]),
            adder.shift_b.eq(falls[1]),
            adder.enable.eq(advance),
        ]
