"""Joins V rows with what they weigh, and cuts their work into single-cycle steps."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.accumulator import SHIFT_STEPS
from hw.arith.rounding import clip_unsigned
from hw.attention.layouts import Kind
from hw.attention.row_scale import scaled_beat
from hw.attention.softmax import MANTISSA_BITS, SHIFT_BITS, softmax_item
from hw.config import EXPONENT_BITS, AttentionConfig

__all__ = ["RowSteps", "row_step"]


def row_step(config: AttentionConfig) -> data.StructLayout:
    """An operation on the sums: shift them down, then add the beat if ``multiply`` is high.

    ``shift`` is an index into ``SHIFT_STEPS``. ``falls`` says per block how many octaves the weight
    ``mantissa`` is to be shifted down. END closes the query, with its largest exponent.
    """
    return data.StructLayout({
        "data": config.beat_bytes * 8,
        "kind": Kind,
        "last": 1,
        "multiply": 1,
        "shift": range(len(SHIFT_STEPS)),
        "mantissa": MANTISSA_BITS,
        "falls": data.ArrayLayout(SHIFT_BITS, config.blocks),
        "exponent": EXPONENT_BITS,
    })


class RowSteps(wiring.Component):
    """Makes the steps of each row: those that rescale the sums, then one for each of its beats.

    A beat's own step shifts as well, so a rise by 0, 1, 4 or 16 costs nothing, any other one to
    eight steps. The END of a logits-only query is dropped: it has no sums.

    **Latency**: 1 cycle (`LATENCY`) from both, beat and item, to the first step.

    **Throughput**: one step per cycle. The ``ready`` of each input depends on ``valid`` of the
    other and on ``o.ready`` within the cycle.

    **Numerics**: ``golden.pipeline.accumulate``, docs/numerics.md section 5.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_row : ``In(stream.Signature(scaled_beat(config)))``
    i_item : ``In(stream.Signature(softmax_item()))``
        One for each row; taken with the row's last beat.
    o : ``Out(stream.Signature(row_step(config)))``
    """

    LATENCY = 1

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowSteps config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_row": In(stream.Signature(scaled_beat(config))),
            "i_item": In(stream.Signature(softmax_item())),
            "o": Out(stream.Signature(row_step(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()

        row = self.i_row.payload
        item = self.i_item.payload
        is_end = row.kind == Kind.END
        rescaled = Signal()  # by the first beat of the row at hand
        rise = Mux(rescaled, 0, clip_unsigned(row.rise + item.rise, SHIFT_BITS))
        step = self.o.payload
        remaining = Signal(SHIFT_BITS)
        rest = Signal(SHIFT_BITS)
        final = Signal()
        load = Signal()

        # The longest step that fits; the last assignment wins. The steps are powers of two.
        m.d.comb += rest.eq(remaining)
        for index, shift in enumerate(SHIFT_STEPS[1:], start=1):
            with m.If(remaining[shift.bit_length() - 1:].any()):
                m.d.comb += [step.shift.eq(index), rest.eq(remaining - shift)]
        m.d.comb += [
            # Not by way of `rest`: every `ready` up to the scorer waits for it.
            final.eq(Cat(remaining == shift for shift in SHIFT_STEPS).any()),
            step.multiply.eq(final & (step.kind != Kind.END)),
            load.eq(~self.o.valid | (self.o.ready & final)),
        ]

        with m.If(self.o.ready):
            m.d.sync += remaining.eq(rest)
        with m.If(load):
            m.d.sync += [
                self.o.valid.eq(
                    self.i_row.valid & Mux(is_end, ~row.logits_only, self.i_item.valid)),
                step.data.eq(row.data),
                step.kind.eq(row.kind),
                step.last.eq(row.last),
                step.exponent.eq(row.exponent),
                step.mantissa.eq(item.mantissa),
                remaining.eq(Mux(is_end, 0, rise)),
            ]
            m.d.sync += [
                step.falls[block].eq(clip_unsigned(fall + item.fall, SHIFT_BITS))
                for block, fall in enumerate(row.falls)
            ]
        with m.If(self.i_row.valid & self.i_row.ready):
            m.d.sync += rescaled.eq(~row.last)

        m.d.comb += [
            self.i_row.ready.eq(load & (is_end | self.i_item.valid)),
            self.i_item.ready.eq(load & self.i_row.valid & ~is_end & row.last),
        ]
        return m
