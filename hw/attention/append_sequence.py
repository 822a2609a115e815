"""The order in which a token's parts are written."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.admission import admitted_row
from hw.attention.code_beats import CodeBeats
from hw.attention.layouts import code_write
from hw.attention.row_packer import row_bus_beat
from hw.attention.row_writer import append_status, write_beat
from hw.attention.summary import page_exponents
from hw.config import PAGE_TOKENS, AttentionConfig

__all__ = ["AppendSequence", "append_record"]

SLOT_BITS = (PAGE_TOKENS - 1).bit_length()


def append_record(config: AttentionConfig) -> data.StructLayout:
    """What the sequence must know of a token, its rows apart: fields of `admitted_row`."""
    row = admitted_row(config)
    return data.StructLayout({name: row[name].shape for name in (
        "error", "store", "last", "has_summary", "summary_address", "has_code", "code",
        "keys", "values", "position", "code_line", "code_address")})


class AppendSequence(wiring.Component):
    """Of each token its rows, its page's summary rows if it completes the page, and its code.

    What follows a command's last token is its close, so that a response on the bus can be told to
    belong to the command or to the next.

    **Latency**: 1 cycle from a token on ``i`` to its first beat, if it is there.

    **Throughput**: a token per its beats and 1 cycle, or 2 if it closes a command.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(append_record(config)))``
        Tokens; taken when all is written.
    i_rows : ``In(stream.Signature(write_beat(config)))``
        Two rows of each token that is stored.
    i_summary : ``In(stream.Signature(row_bus_beat(config)))``
        Two rows of each token with ``has_summary``.
    i_exponents : ``In(stream.Signature(page_exponents(config)))``
        For each token that is stored.
    i_encoded : ``In(stream.Signature(code_bits))``
        For each token that is stored and comes without a code.
    o : ``Out(stream.Signature(write_beat(config)))``
        What goes to memory.
    o_code : ``Out(stream.Signature(code_write(config)))``
        What goes to the code memory; only with ``code_source`` "resident".
    o_close : ``Out(stream.Signature(append_status(config)))``
        The end of a command.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"AppendSequence config must be an AttentionConfig, not {config!r}")
        self._config = config
        members = {
            "i": In(stream.Signature(append_record(config))),
            "i_rows": In(stream.Signature(write_beat(config))),
            "i_summary": In(stream.Signature(row_bus_beat(config))),
            "i_exponents": In(stream.Signature(page_exponents(config))),
            "i_encoded": In(stream.Signature(config.code_bits)),
            "o": Out(stream.Signature(write_beat(config))),
            "o_close": Out(stream.Signature(append_status(config))),
        }
        if config.code_source == "resident":
            members["o_code"] = Out(stream.Signature(code_write(config)))
        super().__init__(members)

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        token = self.i.payload
        code = Signal(self.config.code_bits)
        code_known = Signal()
        code_stored = Signal()
        is_value = Signal()
        m.d.comb += [
            code.eq(Mux(token.has_code, token.code, self.i_encoded.payload)),
            code_known.eq(self.i_exponents.valid & (token.has_code | self.i_encoded.valid)),
            self.i_exponents.ready.eq(code_stored),
            self.i_encoded.ready.eq(code_stored & ~token.has_code),
            self.o_close.payload.error.eq(token.error),
        ]
        row_written = self.o.valid & self.o.ready & self.o.payload.last

        with m.FSM():
            with m.State("ROWS"), m.If(self.i.valid):
                with m.If(token.store):
                    self._pass_rows(m)
                    with m.If(row_written):
                        m.d.sync += is_value.eq(~is_value)
                        with m.If(is_value):
                            m.next = "CODE"
                            with m.If(token.has_summary):
                                m.next = "SUMMARY"
                with m.Else():
                    m.next = "CLOSE"
            with m.State("SUMMARY"):
                self._pass_summary(m, is_value)
                with m.If(row_written):
                    m.d.sync += is_value.eq(~is_value)
                    with m.If(is_value):
                        m.next = "CODE"
            with m.State("CODE"):
                self._store_code(m, code=code, known=code_known, stored=code_stored)
                with m.If(code_stored):
                    m.d.comb += self.i.ready.eq(~token.last)
                    m.next = "ROWS"
                    with m.If(token.last):
                        m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += [
                    self.o_close.valid.eq(1),
                    self.i.ready.eq(self.o_close.ready),
                ]
                with m.If(self.o_close.ready):
                    m.next = "ROWS"
        return m

    def _pass_rows(self, m):
        m.d.comb += [
            self.o.payload.eq(self.i_rows.payload),
            self.o.valid.eq(self.i_rows.valid),
            self.i_rows.ready.eq(self.o.ready),
        ]

    def _pass_summary(self, m, is_value):
        """The values' summary row lies behind that of the keys."""
        beat = self.o.payload
        m.d.comb += [
            beat.address.eq(self.i.payload.summary_address
                            + Mux(is_value, self.config.row_bytes, 0)),
            beat.length.eq(self.config.full_beats - 1),
            beat.data.eq(self.i_summary.payload.data),
            beat.strobe.eq(~0),
            beat.last.eq(self.i_summary.payload.last),
            self.o.valid.eq(self.i_summary.valid),
            self.i_summary.ready.eq(self.o.ready),
        ]

    def _store_code(self, m, *, code, known, stored):
        """To the code memory, or to the code's line in memory."""
        token = self.i.payload
        if self.config.code_source == "streamed":
            m.submodules.code_beats = beats = CodeBeats(self.config)
            m.d.comb += [
                beats.i.valid.eq(known),
                beats.i.payload.code.eq(code),
                self.o.payload.eq(beats.o.payload),
                self.o.valid.eq(beats.o.valid),
                beats.o.ready.eq(self.o.ready),
                stored.eq(beats.i.valid & beats.i.ready),
            ]
            m.d.comb += [beats.i.payload[name].eq(token[name])
                         for name in ("position", "code_address", "keys", "values")]
            return
        lane_bits = (self.config.lanes - 1).bit_length()
        new = self.o_code.payload
        # Pages count from the start of the code memory, as lines do.
        first_page = (token.code_line << lane_bits) >> SLOT_BITS
        m.d.comb += [
            self.o_code.valid.eq(known),
            new.line.eq(token.code_line + (token.position >> lane_bits)),
            new.lane.eq(token.position),
            new.code.eq(code),
            new["keys"].eq(token["keys"]),
            new["values"].eq(token["values"]),
            new.page.eq(first_page + (token.position >> SLOT_BITS)),
            new.page_keys.eq(self.i_exponents.payload["keys"]),
            new.page_values.eq(self.i_exponents.payload["values"]),
            stored.eq(known & self.o_code.ready),
        ]
