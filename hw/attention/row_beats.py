"""Splits a token's rows into bus beats."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.row_writer import write_beat
from hw.config import AttentionConfig

__all__ = ["RowBeats", "row_pair"]


def row_pair(config: AttentionConfig) -> data.StructLayout:
    """A token's rows as stored, and where they go."""
    return data.StructLayout({
        "key": config.row_bytes * 8, "value": config.row_bytes * 8,
        "key_address": config.address_bits, "value_address": config.address_bits,
    })


class RowBeats(wiring.Component):
    """Two bursts for each token: its K row and its V row.

    **Latency**: 0 cycles.

    **Throughput**: 1 beat per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(row_pair(config)))``
        Tokens; taken with their last beat.
    o : ``Out(stream.Signature(write_beat(config)))``
        Their beats.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowBeats config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(row_pair(config))),
            "o": Out(stream.Signature(write_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        pair, beat = self.i.payload, self.o.payload
        full_beats = self.config.full_beats
        count = Signal(range(2 * full_beats))
        is_value = count >= full_beats
        m.d.comb += [
            beat.address.eq(Mux(is_value, pair.value_address, pair.key_address)),
            beat.length.eq(full_beats - 1),
            beat.data.eq(Cat(pair.key, pair.value).word_select(count, len(beat.data))),
            beat.strobe.eq(~0),
            beat.last.eq(count % full_beats == full_beats - 1),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & is_value & beat.last),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += count.eq(count + 1)
        return m
