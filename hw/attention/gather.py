"""Gathers the data beats of a command into records, and finds the command's end."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import data_beat
from hw.config import AttentionConfig

__all__ = ["Gather", "GatherMode", "gathered_record", "max_record_beats", "record_count_bits"]


class GatherMode(enum.Enum, shape=2):
    """What becomes of the data stream."""

    HOLD = 0    # nothing is taken; the next command starts afresh
    GATHER = 1  # beats become records
    DRAIN = 2   # beats are dropped, up to the command's last


def max_record_beats(config: AttentionConfig) -> int:
    """Data beats of the longest record, of all commands."""
    longest = max(
        config.query_data_bytes,
        config.group * config.code_bits // 8,
        2 * config.row_bytes + config.exponent_bytes + config.code_bits // 8,
    )
    return -(-longest // config.memory_bytes)


def record_count_bits(config: AttentionConfig) -> int:
    """Width of a number of records: heads, tokens, or rows of the weight memory."""
    weight_rows = 2 * config.encoder_sets * config.code_bits
    return max(config.token_bits, weight_rows.bit_length())


def gathered_record(config: AttentionConfig) -> data.StructLayout:
    """A record; its first byte is in bits 7:0 of ``data``.

    ``final``: the last one that the command should have. ``bad``: the data stream ended within the
    record or after it though it is not final, or goes on though it is.
    """
    return data.StructLayout({
        "data": max_record_beats(config) * config.memory_bytes * 8, "final": 1, "bad": 1})


class Gather(wiring.Component):
    """Makes records of a command's data beats, up to its final record or the first bad one.

    **Latency**: 1 cycle from a record's last beat to the record.

    **Throughput**: one beat per cycle; in GATHER less one cycle per record.

    **Numerics**: none.

    **Errors**: a ``last`` on a beat that is not the command's final one, or its lack there, makes
    the record ``bad``.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    mode : ``In(GatherMode)``
        HOLD for at least a cycle between two commands. GATHER until the final or bad record was
        taken.
    records : ``In``
        Records of the command, constant in GATHER.
    beats : ``In``
        Beats of record number ``index``.
    i : ``In(stream)`` of ``data_beat``
    o : ``Out(stream)`` of ``gathered_record``
    index : ``Out``
        Number, from 0, of the record on ``o``, or else of the one that is being gathered.
    ended : ``Out(1)``
        The command's last beat was taken.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Gather config must be an AttentionConfig, not {config!r}")
        self._config = config
        count_bits = record_count_bits(config)
        super().__init__({
            "mode": In(GatherMode),
            "records": In(count_bits),
            "beats": In(range(max_record_beats(config) + 1)),
            "i": In(stream.Signature(data_beat(config))),
            "o": Out(stream.Signature(gathered_record(config))),
            "index": Out(count_bits),
            "ended": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        beat, record = self.i.payload, self.o.payload
        width = self.config.memory_bytes * 8
        count = Signal(range(max_record_beats(self.config)))
        taken = Signal()    # a beat
        closing = Signal()  # with that beat, a record
        stopped = Signal()  # no record follows the one at hand
        is_whole, is_final = count + 1 == self.beats, self.index + 1 == self.records

        with m.Switch(self.mode):
            with m.Case(GatherMode.GATHER):
                m.d.comb += self.i.ready.eq(~self.o.valid & ~stopped)
            with m.Case(GatherMode.DRAIN):
                m.d.comb += self.i.ready.eq(~self.ended)
        m.d.comb += [
            taken.eq(self.i.valid & self.i.ready),
            closing.eq(taken & (self.mode == GatherMode.GATHER) & (is_whole | beat.last)),
        ]
        with m.If(taken):
            m.d.sync += [
                record.data.word_select(count, width).eq(beat.data),
                count.eq(count + 1),
                self.ended.eq(beat.last),
            ]
        with m.If(closing):
            is_bad = ~is_whole | (beat.last != is_final)
            m.d.sync += [
                count.eq(0),
                self.o.valid.eq(1),
                record.final.eq(is_final),
                record.bad.eq(is_bad),
                stopped.eq(is_final | is_bad),
            ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [self.o.valid.eq(0), self.index.eq(self.index + 1)]
        with m.If(self.mode == GatherMode.HOLD):
            m.d.sync += [count.eq(0), self.index.eq(0), self.ended.eq(0), stopped.eq(0)]
        return m
