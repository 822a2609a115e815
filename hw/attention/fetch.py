"""Fetches the rows that retrieval chose."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Kind, fetch_status, query_job, row_beat, token_item
from hw.attention.paging import CREDITS, LookupPort, assign_lookup
from hw.attention.row_reader import RowReader, row_header, row_request, worst_error
from hw.bus.read_port import ReadPort
from hw.config import AttentionConfig
from hw.stream import Fork, Queue

__all__ = ["Fetch"]


class Fetch(wiring.Component):
    """Finds and reads the K and V row of each token, in order, several queries behind each other.

    A token's K row is asked for before its V row, so the bus carries both in turn. A logits-only
    query has no V rows; its END reaches both outputs like any other.

    **Latency**: 5 cycles from a token on ``i_token`` to ``bus_key.ar``, one more to
    ``bus_value.ar``; 2 cycles from the bus beat that completes a datapath beat to ``o_key`` and
    ``o_value``; 1 cycle from the later END beat to ``o_status``.

    **Throughput**: 1 row request and 1 bus beat per cycle, also from one query to the next, if the
    next job waits when the END item is taken.

    **Numerics**: none.

    **Errors**: see `RowReader`; a query's status has the lowest code met. The query keeps its shape
    whatever happens: as many beats as without the fault.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_job : ``In(stream.Signature(query_job(config)))``
        Each query, before its tokens.
    i_token : ``In(stream.Signature(token_item(config)))``
        Its rows, and END.
    paging : ``Out(LookupPort(config))``
        Finds rows.
    bus_key, bus_value : ``Out(ReadPort(address_bits, memory_bytes))``
        The memory.
    o_key, o_value : ``Out(stream.Signature(row_beat(config)))``
        Rows in the order of the tokens.
    o_status : ``Out(stream.Signature(fetch_status(config)))``
        Once per query, after its END left both outputs.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Fetch config must be an AttentionConfig, not {config!r}")
        self._config = config
        port = ReadPort(config.address_bits, config.memory_bytes)
        super().__init__({
            "i_job": In(stream.Signature(query_job(config))),
            "i_token": In(stream.Signature(token_item(config))),
            "paging": Out(LookupPort(config)),
            "bus_key": Out(port),
            "bus_value": Out(port),
            "o_key": Out(stream.Signature(row_beat(config))),
            "o_value": Out(stream.Signature(row_beat(config))),
            "o_status": Out(stream.Signature(fetch_status(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        routed = data.StructLayout({"header": row_header(config), "to_key": 1, "to_value": 1})
        m.submodules.headers = headers = Queue(routed, depth=CREDITS)
        m.submodules.fork = fork = Fork(data.StructLayout({
            "request": row_request(config), "to_key": 1, "to_value": 1}), count=2)
        m.submodules.key = key = RowReader(config)
        m.submodules.value = value = RowReader(config)

        self._look_up(m, headers)
        self._route(m, headers, fork)
        for reader, branch, wanted in ((key, fork.o[0], fork.o[0].payload.to_key),
                                       (value, fork.o[1], fork.o[1].payload.to_value)):
            m.d.comb += [
                reader.i.payload.eq(branch.payload.request),
                reader.i.valid.eq(branch.valid & wanted),
                branch.ready.eq(reader.i.ready | ~wanted),
            ]
        for reader, bus, output in ((key, self.bus_key, self.o_key),
                                    (value, self.bus_value, self.o_value)):
            wiring.connect(m, reader.bus, wiring.flipped(bus))
            wiring.connect(m, reader.o, wiring.flipped(output))
        self._report(m, key.o_status, value.o_status)
        return m

    def _look_up(self, m, headers):
        """Ask where a token's rows are: K, then V."""
        job = Signal(query_job(self.config))
        has_job = Signal()
        token = self.i_token.payload
        is_end = Signal()
        value_turn = Signal()
        is_last = Signal()
        header = headers.i.payload.header
        lookup = self.paging.lookup
        step = Signal()
        m.d.comb += [
            is_end.eq(token.kind == Kind.END),
            is_last.eq(is_end | value_turn | job.logits_only),
            *assign_lookup(self.config, lookup.payload, job.entry, position=token.position,
                           is_value=value_turn, is_summary=token.kind == Kind.SUMMARY),
            lookup.valid.eq(self.i_token.valid & has_job & ~is_end & headers.i.ready),
            step.eq(has_job & headers.i.ready & (is_end | lookup.ready)),
            headers.i.valid.eq(self.i_token.valid & step),
            headers.i.payload.to_key.eq(is_end | ~value_turn),
            headers.i.payload.to_value.eq(is_end | value_turn),
            header.slot.eq(job.slot),
            header.logits_only.eq(job.logits_only),
            header.exponents.eq(
                Mux(value_turn, token["values"].as_value(), token["keys"].as_value())),
            self.i_token.ready.eq(step & is_last),
        ]
        m.d.comb += [header[name].eq(token[name]) for name in ("kind", "weight", "position")]
        with m.If(headers.i.valid):
            m.d.sync += value_turn.eq(~is_last)

        # The next job may come in with the END of the one before.
        ends = self.i_token.valid & self.i_token.ready & is_end
        m.d.comb += self.i_job.ready.eq(~has_job | ends)
        with m.If(self.i_job.ready):
            m.d.sync += [has_job.eq(self.i_job.valid), job.eq(self.i_job.payload)]

    def _route(self, m, headers, fork):
        """Pair each header with its place, which END has not."""
        header, place = headers.o, self.paging.place
        has_place = Signal()
        m.d.comb += [
            has_place.eq(header.payload.header.kind != Kind.END),
            fork.i.payload.request.header.eq(header.payload.header),
            fork.i.payload.request.place.eq(place.payload),
            fork.i.payload.to_key.eq(header.payload.to_key),
            fork.i.payload.to_value.eq(header.payload.to_value),
            fork.i.valid.eq(header.valid & (place.valid | ~has_place)),
            header.ready.eq(fork.i.valid & fork.i.ready),
            place.ready.eq(header.valid & fork.i.ready & has_place),
        ]

    def _report(self, m, key, value):
        """One status per query from those of the two readers."""
        error = self.o_status.payload.error
        m.d.comb += [
            error.eq(worst_error(key.payload.error.as_value(), value.payload.error.as_value())),
            self.o_status.payload.beats.eq(key.payload.beats + value.payload.beats),
            self.o_status.valid.eq(key.valid & value.valid),
            key.ready.eq(value.valid & self.o_status.ready),
            value.ready.eq(key.valid & self.o_status.ready),
        ]
