"""Admits rows to be appended: canonical exponents, places in memory, and the window check."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error, append_row, context_entry, exponents
from hw.attention.paging import LookupPort, assign_lookup
from hw.config import PAGE_TOKENS, PLANE_BITS, AttentionConfig

__all__ = ["Admission", "admitted_row"]

SLOT_BITS = (PAGE_TOKENS - 1).bit_length()
PASSED_FROM_ROW = ("context", "position", "last", "has_code", "code", "key", "value")
PASSED_FROM_ENTRY = ("code_line", "code_address", "weight_set")


def admitted_row(config: AttentionConfig) -> data.StructLayout:
    """A row with all that its storing needs.

    ``store``: it is to be stored; otherwise it only closes its command, with ``error``. ``first``:
    the first row stored of its command. ``has_summary``: it completes a page whose summary rows are
    kept.
    """
    row, entry = append_row(config), context_entry(config)
    return data.StructLayout({
        "error": Error,
        "store": 1,
        "first": 1,
        "has_summary": 1,
        **{name: row[name].shape for name in PASSED_FROM_ROW},
        "keys": exponents(config), "values": exponents(config),
        "key_address": config.address_bits,
        "value_address": config.address_bits,
        "summary_address": config.address_bits,
        **{name: entry[name].shape for name in PASSED_FROM_ENTRY},
    })


class Admission(wiring.Component):
    """Lets through the rows that may be written, and what closes a command.

    **Latency**: 7 cycles from a row on ``i`` to ``valid`` on ``o``, 9 where a page ends.

    **Throughput**: a row per 8 cycles, 10 where a page ends.

    **Numerics**: ``golden.mxint.canonical``: a block of zeros gets exponent 0.

    **Errors**: once a row comes with an error, or lies (it or the summary it completes) outside its
    window (WINDOW), neither it nor the command's later rows are let through; its last row then
    only carries the first error met.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(append_row(config)))``
        Rows; taken only once they are admitted or dropped. A context with ``summary_limit`` 0
        keeps no summaries.
    paging : ``Out(LookupPort(config))``
        Finds rows.
    o : ``Out(stream.Signature(admitted_row(config)))``
        The same, without those that must not be stored.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Admission config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(append_row(config))),
            "paging": Out(LookupPort(config)),
            "o": Out(stream.Signature(admitted_row(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        row, lookup, place = self.i.payload, self.paging.lookup, self.paging.place
        # In this order: key, value, summary of the keys, summary of the values.
        asked = Signal(range(5))
        answered = Signal(range(4))
        places = Signal(data.ArrayLayout(self.config.address_bits, 4))
        wanted = Signal(range(5))
        has_summary = Signal()
        fault = Signal()
        is_first = Signal(init=1)
        failure = Signal(Error)   # of the rows before
        known = Signal(Error)     # and of this row, before it is looked up
        error = Signal(Error)     # and after that
        m.d.comb += [
            has_summary.eq((row.position[:SLOT_BITS] == PAGE_TOKENS - 1)
                           & (row.entry.summary_limit != 0)),
            wanted.eq(Mux(has_summary, 4, 2)),
            *assign_lookup(self.config, lookup.payload, row.entry, position=row.position,
                           is_value=asked[0], is_summary=asked[1]),
            known.eq(Mux(failure != Error.NONE, failure.as_value(), row.error.as_value())),
            error.eq(Mux(fault, Error.WINDOW.value, known.as_value())),
            self.o.payload.error.eq(error),
            self.o.payload.store.eq(error == Error.NONE),
            self.o.payload.first.eq(is_first),
            self.o.payload.has_summary.eq(has_summary),
        ]
        self._describe(m, places)

        with m.FSM():
            with m.State("LOOK_UP"), m.If(self.i.valid):
                with m.If(known != Error.NONE):
                    m.next = "OFFER"
                with m.Else():
                    m.d.comb += [lookup.valid.eq(asked != wanted), place.ready.eq(1)]
                    with m.If(lookup.valid & lookup.ready):
                        m.d.sync += asked.eq(asked + 1)
                    with m.If(place.valid):
                        m.d.sync += [
                            places[answered].eq(place.payload.address),
                            fault.eq(fault | place.payload.fault),
                            answered.eq(answered + 1),
                        ]
                        with m.If(answered == wanted - 1):
                            m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += [
                    self.o.valid.eq(self.o.payload.store | row.last),
                    self.i.ready.eq(self.o.ready | ~self.o.valid),
                ]
                with m.If(self.i.ready):
                    m.d.sync += [
                        asked.eq(0), answered.eq(0), fault.eq(0),
                        is_first.eq(row.last | (is_first & ~self.o.payload.store)),
                        failure.eq(Mux(row.last, Error.NONE.value, error.as_value())),
                    ]
                    m.next = "LOOK_UP"
        return m

    def _describe(self, m, places):
        """What passes on of the row, its exponents made canonical."""
        row, admitted = self.i.payload, self.o.payload
        m.d.comb += [
            admitted.key_address.eq(places[0]),
            admitted.value_address.eq(places[1]),
            admitted.summary_address.eq(places[2]),
        ]
        for name in PASSED_FROM_ROW:
            m.d.comb += admitted[name].eq(row[name])
        for name in PASSED_FROM_ENTRY:
            m.d.comb += admitted[name].eq(row.entry[name])
        bits = self.config.exponent_block * PLANE_BITS
        for stored, given, kept in ((row.key, row["keys"], admitted["keys"]),
                                    (row.value, row["values"], admitted["values"])):
            planes = len(stored) // 2
            for block in range(self.config.blocks):
                used = (stored[:planes].word_select(block, bits).any()
                        | stored[planes:].word_select(block, bits).any())
                m.d.comb += kept[block].eq(Mux(used, given[block], 0))
