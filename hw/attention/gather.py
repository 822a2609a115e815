"""Gathers the data beats of a command into records."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import data_beat
from hw.config import AttentionConfig

__all__ = ["Gather", "record_bytes"]


def record_bytes(config: AttentionConfig) -> int:
    """Bytes of the largest record that the data stream can carry."""
    return max(
        config.query_data_bytes,
        config.group * config.code_bits // 8,
        2 * config.row_bytes + config.exponent_bytes + config.code_bits // 8,
    )


class Gather(wiring.Component):
    """Collects ``beats`` data beats into one record, and notes where ``last`` fell.

    **Latency**: 1 cycle from the last beat to the record.

    **Throughput**: one beat per cycle while the record is taken at once, less one cycle per record.

    **Errors**: a ``last`` before the final beat closes the record early (``short``).

    Members
    -------
    beats : ``In``
        Beats of the record being gathered, constant until it is taken; 0 takes no data.
    i : ``In(stream)`` of ``data_beat``
    o : ``Out(stream)`` of {data, last, short}
        ``data`` has the record's first byte in bits 7:0.
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        self._max_beats = -(-record_bytes(config) // config.memory_bytes)
        self._layout = data.StructLayout({
            "data": self._max_beats * config.memory_bytes * 8, "last": 1, "short": 1})
        super().__init__({
            "beats": In(range(self._max_beats + 1)),
            "i": In(stream.Signature(data_beat(config))),
            "o": Out(stream.Signature(self._layout)),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        width = self.config.memory_bytes * 8
        count = Signal(range(self._max_beats))
        final = Signal()
        m.d.comb += [
            final.eq(count + 1 == self.beats),
            self.i.ready.eq((self.beats != 0) & ~self.o.valid),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                self.o.payload.data.word_select(count, width).eq(self.i.payload.data),
                count.eq(count + 1),
            ]
            with m.If(final | self.i.payload.last):
                m.d.sync += [
                    count.eq(0),
                    self.o.valid.eq(1),
                    self.o.payload.last.eq(self.i.payload.last),
                    self.o.payload.short.eq(~final),
                ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m
