"""Loads an append: tokens to the append unit, and the context's new length from its answer."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.contexts import context_length
from hw.attention.layouts import Error, append_row
from hw.attention.loader import loader_members
from hw.config import EXPONENT_BITS, EXPONENT_NAN, AttentionConfig

__all__ = ["AppendLoader"]


class AppendLoader(wiring.Component):
    """Turns records into rows, waits until they are written, and then lengthens the context.

    **Latency**: a row leaves in the cycle of its record; ``o_length`` 1 cycle after ``i_appended``.

    **Throughput**: one row per cycle.

    **Numerics**: none.

    **Errors**: DATA, and EXPONENT for a NaN exponent, go out with the row, which is then the
    command's last: the append unit may meet another error before it, and answers with the first.
    The context's length stays as it was.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    loader_members
    o_append : ``Out(stream)`` of ``append_row``
    i_appended : ``In(stream)`` of {error}, one after the last row of each command
    o_length : ``Out(stream)`` of ``context_length``
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"AppendLoader config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__(loader_members(config) | {
            "o_append": Out(stream.Signature(append_row(config))),
            "i_appended": In(stream.Signature(data.StructLayout({"error": Error}))),
            "o_length": Out(stream.Signature(context_length(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, command = self.config, self.command
        bare_bytes = 2 * config.row_bytes + config.exponent_bytes
        coded_bytes = bare_bytes + config.code_bits // 8
        bare_beats, coded_beats = (
            -(-size // config.memory_bytes) for size in (bare_bytes, coded_bytes))
        m.d.comb += [
            self.records.eq(command.count),
            self.beats.eq(Mux(command.has_code, coded_beats, bare_beats)),
            self.o_length.payload.index.eq(command.context),
            self.o_length.payload.length.eq(self.entry.length + command.count),
        ]
        self._describe_row(m)
        with m.FSM():
            with m.State("ROWS"):
                m.d.comb += [
                    self.o_append.valid.eq(self.i.valid),
                    self.i.ready.eq(self.o_append.ready),
                ]
                with m.If(self.i.valid & self.i.ready & self.o_append.payload.last):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.comb += self.i_appended.ready.eq(1)
                with m.If(self.i_appended.valid):
                    with m.If(self.i_appended.payload.error == Error.NONE):
                        m.next = "LENGTH"
                    with m.Else():
                        m.d.comb += [
                            self.done.eq(1), self.error.eq(self.i_appended.payload.error)]
                        m.next = "ROWS"
            with m.State("LENGTH"):
                m.d.comb += [self.o_length.valid.eq(1), self.done.eq(self.o_length.ready)]
                with m.If(self.o_length.ready):
                    m.next = "ROWS"
        return m

    def _describe_row(self, m):
        config, record, row = self.config, self.i.payload, self.o_append.payload
        fields = data.StructLayout({
            "key": config.row_bytes * 8, "value": config.row_bytes * 8,
            "exponents": data.ArrayLayout(EXPONENT_BITS, 2 * config.blocks),
            "code": config.code_bits,
        })
        token = data.View(fields, record.data[:fields.size])
        has_nan = Cat(token.exponents[i] == EXPONENT_NAN for i in range(2 * config.blocks)).any()
        m.d.comb += [
            row.error.eq(Mux(record.bad, Error.DATA, Mux(has_nan, Error.EXPONENT, Error.NONE))),
            row.context.eq(self.command.context),
            row.position.eq(self.entry.length + self.index),
            row.last.eq(record.final | record.bad | has_nan),
            row.has_code.eq(self.command.has_code),
            row.entry.eq(self.entry),
            row.key.eq(token.key),
            row.value.eq(token.value),
            Cat(row.keys, row.values).eq(token.exponents),
            row.code.eq(token.code),
        ]
