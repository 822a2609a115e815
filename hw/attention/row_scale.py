"""Puts the exponents of V rows on one scale: that of the running maximum."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import clip_unsigned, delay
from hw.attention.layouts import Kind, row_beat
from hw.attention.softmax import SHIFT_BITS
from hw.config import EXPONENT_BITS, AttentionConfig

__all__ = ["RowScale", "scaled_beat"]


def scaled_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat of a V row with its scale.

    ``exponent`` is the running maximum ev after the row, ``rise`` how far it rose for it (on the
    row's first beat), and ``falls`` how far each block lies below it.
    """
    return data.StructLayout({
        "data": config.beat_bytes * 8,
        "kind": Kind,
        "last": 1,
        "logits_only": 1,
        "exponent": EXPONENT_BITS,
        "rise": SHIFT_BITS,
        "falls": data.ArrayLayout(SHIFT_BITS, config.blocks),
    })


class RowScale(wiring.Component):
    """Keeps the running maximum of a query's V exponents.

    **Latency**: 2 cycles (`LATENCY`).

    **Throughput**: one beat per cycle. ``i.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: ``golden.pipeline.accumulate``, docs/numerics.md section 5.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(row_beat(config)))``
        V rows. END closes a query, and carries its final maximum (0 for an empty one) on ``o``.
    o : ``Out(stream.Signature(scaled_beat(config)))``
    """

    LATENCY = 2

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowScale config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(row_beat(config))),
            "o": Out(stream.Signature(scaled_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()

        advance = Signal()
        row = delay(m, self.i.payload, 1, name="row", enable=advance)
        row_valid = delay(m, self.i.valid, 1, name="row_valid", enable=advance)
        largest = delay(m, _largest(self.i.payload.exponents), 1, name="largest", enable=advance)

        empty = Signal(init=1)
        maximum = Signal(EXPONENT_BITS)  # 0 when empty
        raised = Signal(EXPONENT_BITS)
        scaled = self.o.payload
        is_end = row.kind == Kind.END
        m.d.comb += raised.eq(Mux(~is_end & (largest > maximum), largest, maximum))
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(row_valid),
                scaled.data.eq(row.data),
                scaled.kind.eq(row.kind),
                scaled.last.eq(row.last),
                scaled.logits_only.eq(row.logits_only),
                scaled.exponent.eq(raised),
                scaled.rise.eq(Mux(empty, 0, clip_unsigned(
                    (raised - maximum)[:EXPONENT_BITS], SHIFT_BITS))),
            ]
            for block, exponent in enumerate(row.exponents):
                m.d.sync += scaled.falls[block].eq(
                    clip_unsigned((raised - exponent)[:EXPONENT_BITS], SHIFT_BITS))
            with m.If(row_valid):
                m.d.sync += [
                    maximum.eq(Mux(is_end, 0, raised)),
                    empty.eq(is_end),
                ]

        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(advance),
        ]
        return m


def _largest(values):
    values = list(values)
    while len(values) > 1:
        values = [Mux(left > right, left, right)
                  for left, right in zip(values[::2], values[1::2], strict=True)]
    return values[0]
