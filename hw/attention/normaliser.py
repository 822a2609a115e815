"""From a head's state to its output in float32."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.reciprocal import RECIPROCAL_BITS, Reciprocal, reciprocal_latency
from hw.arith.rounding import delay
from hw.attention.float_lane import FloatLane
from hw.attention.layouts import float_beat, state_beat
from hw.checks import check_int
from hw.config import ELEMENT_FRACTION_BITS, EXPONENT_BIAS, EXPONENT_BITS, AttentionConfig
from hw.shared import Once

__all__ = ["Normaliser"]

# Where the leading ones of value, reciprocal and weight sum are counted from: bits 25, 26 and 0.
LEADING_SCALE = 51 + EXPONENT_BIAS + ELEMENT_FRACTION_BITS


class Normaliser(wiring.Component):
    """Divides a state's values by its weight sum.

    A state's first beat starts its division; its beats wait in the front of the lanes meanwhile.

    **Latency**: `latency` cycles from a state's first beat on ``i`` to its first on ``o``: 17 for
    the reciprocal and 5 for multiplying and packing, with two quotient bits per cycle.

    **Throughput**: one beat per cycle within a state. The next state may enter, and its division
    start, when the last beat before it went into the multipliers.

    **Numerics**: ``golden.pipeline.normalise``, docs/numerics.md section 6.

    **Errors**: none. An empty state gives +0.0.

    Parameters
    ----------
    config : AttentionConfig
    bits_per_cycle : int
        Quotient bits per cycle.

    Members
    -------
    i : ``In(stream.Signature(state_beat(config)))``
    o : ``Out(stream.Signature(float_beat(config)))``
    """

    def __init__(self, config: AttentionConfig, *, bits_per_cycle=2):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Normaliser config must be an AttentionConfig, not {config!r}")
        self._config = config
        self._bits_per_cycle = check_int("Normaliser bits_per_cycle", bits_per_cycle, minimum=1,
                                         maximum=RECIPROCAL_BITS)
        super().__init__({
            "i": In(stream.Signature(state_beat(config))),
            "o": Out(stream.Signature(float_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def bits_per_cycle(self):
        return self._bits_per_cycle

    @property
    def latency(self):
        return reciprocal_latency(self.bits_per_cycle) + FloatLane.BACK_LATENCY

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.reciprocal = reciprocal = Reciprocal(
            in_bits=config.weight_sum_bits, bits_per_cycle=self.bits_per_cycle)

        state = self.i.payload
        is_first = Signal(init=1)
        front = Signal()
        back = Signal()
        tag = Signal(data.StructLayout({"valid": 1, "last": 1, "exponent": EXPONENT_BITS}))
        m.d.comb += [
            tag.valid.eq(self.i.valid & self.i.ready),
            tag.last.eq(state.last),
            tag.exponent.eq(state.exponent),
        ]
        ready = delay(m, tag, FloatLane.FRONT_LATENCY, name="front", enable=front)
        divided = reciprocal.o.payload
        leaves = ready.valid & reciprocal.o.valid
        done = delay(m, leaves, FloatLane.BACK_LATENCY, name="valid", enable=back)

        for place, (value, output) in enumerate(
                zip(state.values, self.o.payload.values, strict=True)):
            m.submodules[f"lane_{place}"] = lane = Once(FloatLane(value_bits=config.value_sum_bits))
            m.d.comb += [
                lane.value.eq(value),
                lane.reciprocal.eq(divided.mantissa),
                lane.scale.eq(ready.exponent - divided.octave - LEADING_SCALE),
                lane.is_zero.eq(divided.is_zero),
                lane.front_enable.eq(front),
                lane.back_enable.eq(back),
                output.eq(lane.o),
            ]

        with m.If(self.i.valid & self.i.ready):
            m.d.sync += is_first.eq(state.last)
        m.d.comb += [
            back.eq(~self.o.valid | self.o.ready),
            front.eq(~ready.valid | (reciprocal.o.valid & back)),
            self.i.ready.eq(front & (~is_first | reciprocal.i.ready)),
            reciprocal.i.valid.eq(self.i.valid & is_first & front),
            reciprocal.i.payload.eq(state.weight_sum),
            reciprocal.o.ready.eq(ready.valid & ready.last & back),
            self.o.valid.eq(done),
            self.o.payload.last.eq(delay(m, ready.last, FloatLane.BACK_LATENCY, name="last",
                                         enable=back)),
        ]
        return m
