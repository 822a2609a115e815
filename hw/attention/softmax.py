"""Online softmax in base 2: what each logit weighs, and the sum of the weights."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.exp2 import Exp2
from hw.arith.rounding import clip_unsigned, delay, round_shift_by
from hw.attention.layouts import Kind, logit_item
from hw.config import (
    EMPTY_MAXIMUM,
    EXP2_FRACTION_BITS,
    LOGIT_FRACTION_BITS,
    MAXIMUM_BITS,
    PAGE_TOKENS,
    PROBABILITY_BITS,
    PROBABILITY_FRACTION_BITS,
    AttentionConfig,
)
from hw.stream import Queue

__all__ = ["MANTISSA_BITS", "SHIFT_BITS", "Softmax", "probability", "softmax_item", "softmax_total"]

MANTISSA_BITS = EXP2_FRACTION_BITS + 1
SHIFT_BITS = 6  # a shift by 63 stands for all longer ones


def softmax_item() -> data.StructLayout:
    """What a row weighs: ``mantissa`` * 2**(m - ``fall`` - 24), m being the maximum so far.

    ``rise`` is how far the maximum rose for it: what was summed before is to be shifted down so.
    """
    return data.StructLayout({
        "mantissa": MANTISSA_BITS,
        "rise": SHIFT_BITS,
        "fall": SHIFT_BITS,
    })


def softmax_total(config: AttentionConfig) -> data.StructLayout:
    """The softmax part of a query's final state."""
    return data.StructLayout({
        "maximum": signed(32),
        "weight_sum": config.weight_sum_bits,
        "saturated": 1,
    })


def probability(mantissa, shift):
    """p(shift) of section 4: a weight in units of 2**-32, ``shift`` octaves down."""
    scaled = Cat(Const(0, PROBABILITY_FRACTION_BITS - EXP2_FRACTION_BITS), mantissa)
    return round_shift_by(scaled, shift)[:PROBABILITY_BITS]


class Softmax(wiring.Component):
    """Weighs logits against their running maximum, and sums the weights.

    **Latency**: 5 cycles (`LATENCY`) from a logit to its item on ``o``: exp2 (2), weight,
    normalisation, comparison. 7 cycles (`TOTAL_LATENCY`) from END to ``o_total``.

    **Throughput**: one item per cycle. ``i.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: ``golden.exp2.weigh`` and ``golden.pipeline.accumulate``, docs/numerics.md
    sections 4 and 5.

    **Errors**: none. ``saturated`` in the total tells that one of the query's logits was clipped.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(logit_item(config)))``
        Logits of one query after the other, each closed by an END.
    o : ``Out(stream.Signature(softmax_item()))``
        An item for each logit; none for END.
    o_total : ``Out(stream.Signature(softmax_total(config)))``
        One for each END. Up to two wait here before the unit stalls.
    """

    LATENCY = 5
    TOTAL_LATENCY = 7

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Softmax config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(logit_item(config))),
            "o": Out(stream.Signature(softmax_item())),
            "o_total": Out(stream.Signature(softmax_total(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.totals = totals = Queue(softmax_total(self.config), depth=2)

        # What goes along with a logit, up to the stage that sums.
        advance = Signal()
        tag = Signal(data.StructLayout({"row": 1, "end": 1, "saturated": 1}))
        is_end = self.i.payload.kind == Kind.END
        m.d.comb += [
            tag.row.eq(self.i.valid & ~is_end),
            tag.end.eq(self.i.valid & is_end),
            tag.saturated.eq(self.i.payload.saturated),
        ]
        weighed = delay(m, tag, self.LATENCY - 1, name="weighed", enable=advance)
        compared = delay(m, weighed, 1, name="compared", enable=advance)
        summed = delay(m, compared, 1, name="summed", enable=advance)

        mantissa, octave = self._weigh(m, advance)
        maximum, fresh = self._compare(m, advance, weighed, mantissa, octave)
        self._sum(m, advance, summed, maximum, fresh, totals)

        # The queue of totals fills only as the pipeline advances, so `o.valid` holds.
        room = ~summed.end | totals.i.ready
        m.d.comb += [
            self.o.valid.eq(compared.row & room),
            advance.eq(room & (~compared.row | self.o.ready)),
            self.i.ready.eq(advance),
        ]
        wiring.connect(m, totals.o, wiring.flipped(self.o_total))
        return m

    def _weigh(self, m, advance):
        """The weight of the logit, as a mantissa and an octave, after four stages."""
        m.submodules.exp2 = exp2 = Exp2()
        logit = self.i.payload.logit
        weight = delay(m, self.i.payload.weight, exp2.LATENCY, name="weight", enable=advance)
        octave = delay(m, logit[LOGIT_FRACTION_BITS:].as_signed(), exp2.LATENCY + 1, name="octave",
                       enable=advance)
        m.d.comb += [
            exp2.fraction.eq(logit[:LOGIT_FRACTION_BITS]),
            exp2.enable.eq(advance),
        ]

        weight_octaves = PAGE_TOKENS.bit_length() - 1
        weighted = Signal(MANTISSA_BITS + weight_octaves)
        extra = Signal(range(weight_octaves + 1))
        mantissa = Signal(MANTISSA_BITS)
        weighted_octave = Signal(signed(MAXIMUM_BITS))
        for octaves in range(1, weight_octaves + 1):
            with m.If(weighted[MANTISSA_BITS + octaves - 1]):
                m.d.comb += extra.eq(octaves)
        with m.If(advance):
            m.d.sync += [
                weighted.eq(exp2.mantissa * weight),
                mantissa.eq(weighted >> extra),
                weighted_octave.eq(octave + extra),
            ]
        return mantissa, weighted_octave

    def _compare(self, m, advance, weighed, mantissa, octave):
        """Update the running maximum, and make the item.

        Returns the maximum as of the item, and whether nothing came before it in its query.
        """
        empty = Signal(init=1)
        maximum = Signal(signed(MAXIMUM_BITS))
        fresh = Signal()
        item = self.o.payload
        above = octave - maximum
        below = maximum - octave
        with m.If(advance):
            m.d.sync += [
                item.mantissa.eq(mantissa),
                item.rise.eq(0),
                item.fall.eq(0),
                fresh.eq(empty),
            ]
            with m.If(weighed.row):
                m.d.sync += empty.eq(0)
                with m.If(empty):
                    m.d.sync += maximum.eq(octave)
                with m.Elif(below < 0):
                    m.d.sync += [
                        maximum.eq(octave),
                        item.rise.eq(clip_unsigned(above.as_unsigned(), SHIFT_BITS)),
                    ]
                with m.Else():
                    m.d.sync += item.fall.eq(clip_unsigned(below.as_unsigned(), SHIFT_BITS))
            with m.If(weighed.end):
                m.d.sync += empty.eq(1)
        return maximum, fresh

    def _sum(self, m, advance, summed, maximum, fresh, totals):
        """Sum the weights of a query, and hand over the total at its END."""
        item = self.o.payload
        weight = Signal(PROBABILITY_BITS)
        rise = Signal(SHIFT_BITS)
        closing = delay(m, maximum, 1, name="closing", enable=advance)
        is_empty = delay(m, fresh, 1, name="is_empty", enable=advance)
        weight_sum = Signal(self.config.weight_sum_bits)
        saturated = Signal()
        with m.If(advance):
            m.d.sync += [
                weight.eq(probability(item.mantissa, item.fall)),
                # The longest shift drops the sum of the query before.
                rise.eq(item.rise | fresh.replicate(SHIFT_BITS)),
            ]
            with m.If(summed.row):
                m.d.sync += [
                    weight_sum.eq((weight_sum >> rise) + weight),
                    saturated.eq(saturated | summed.saturated),
                ]
            with m.If(summed.end):
                m.d.sync += saturated.eq(0)
        m.d.comb += [
            totals.i.payload.maximum.eq(Mux(is_empty, EMPTY_MAXIMUM, closing)),
            totals.i.payload.weight_sum.eq(Mux(is_empty, 0, weight_sum)),
            totals.i.payload.saturated.eq(saturated),
            totals.i.valid.eq(summed.end & advance),
        ]
