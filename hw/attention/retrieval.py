"""Which tokens of a context a query reads: wiring of the stages."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.code_memory import CodeMemory
from hw.attention.code_stream import CodeStream
from hw.attention.distance_buffer import DistanceBuffer
from hw.attention.expander import Expander
from hw.attention.histogram import Histogram
from hw.attention.layouts import (
    code_write,
    query_job,
    retrieval_job,
    selection_counts,
    token_item,
)
from hw.attention.matcher import Matcher
from hw.attention.retrieval_layouts import check_config
from hw.attention.scanner import Scanner
from hw.attention.thresholds import Thresholds
from hw.attention.token_gate import TokenGate
from hw.bus.read_port import ReadPort
from hw.stream import Queue

__all__ = ["Retrieval"]

QUEUE_JOBS = 4


class Retrieval(wiring.Component):
    """Finds the tokens of a context nearest to a query, exactly, and lists them with exponents.

    Four stages, each of which may hold a query: the matcher fills a bank of distances and the
    histogram; the thresholds are searched in the histogram; the scanner classes the tokens page by
    page; the expander lists them. A dense query passes the first two without work (streamed code
    lines are read all the same, for the exponents in them).

    **Latency**: with resident codes, N / lanes + ceil(distance_bins / bins_per_cycle) + 14 cycles
    from ``i`` to the first token, when the last 16 pages have one; 1 more for each further stage
    of the popcount (group * code_bits above 64, above 1024), of the counting (32 lanes or more) and
    of the running sums (more than 8 bins per cycle). Dense: 14 cycles. Streamed codes: with the
    memory's latency, and ``code_line_beats`` cycles per line.

    **Throughput**: a query per N / lanes + ceil(distance_bins / bins_per_cycle) cycles without a
    pause, while the one before is scanned and listed: one cycle per token and per page visited, or
    per 16 pages without a candidate. Two queries are in flight from their match to their last
    token, so that very short ones take half their latency each.

    **Numerics**: ``golden.hashing.distance`` and ``golden.selection.select``; docs/numerics.md
    sections 9 and 10.

    **Errors**: BUS or SHORT in ``o_counts`` when a code line could not be read (streamed codes);
    the query then has no tokens but END.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(retrieval_job(config)))``
        Queries, with 1 <= visible <= length, and full + coarse <= visible for a budget.
    i_code : ``In(stream.Signature(code_write(config)))``
        Resident codes only: a new token's code and exponents.
    bus : ``Out(ReadPort(address_bits, memory_bytes))``
        Streamed codes only: reads code lines.
    o_job : ``Out(stream.Signature(query_job(config)))``
        Each query, before its tokens.
    o_token : ``Out(stream.Signature(token_item(config)))``
        Tokens and summaries, positions descending; END closes a query.
    o_counts : ``Out(stream.Signature(selection_counts(config)))``
        What a query selected, after its END.
    matching, scanning : ``Out(1)``
        Work in the first two stages, and in the third.
    """

    def __init__(self, config):
        self._config = check_config("Retrieval", config)
        source = ({"i_code": In(stream.Signature(code_write(config)))}
                  if config.code_source == "resident" else
                  {"bus": Out(ReadPort(config.address_bits, config.memory_bytes))})
        super().__init__({
            "i": In(stream.Signature(retrieval_job(config))),
            **source,
            "o_job": Out(stream.Signature(query_job(config))),
            "o_token": Out(stream.Signature(token_item(config))),
            "o_counts": Out(stream.Signature(selection_counts(config))),
            "matching": Out(1),
            "scanning": Out(1),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.codes = codes = self._make_source(m)
        m.submodules.matcher = matcher = Matcher(config)
        m.submodules.histogram = histogram = Histogram(config)
        m.submodules.buffer = buffer = DistanceBuffer(config)
        m.submodules.thresholds = thresholds = Thresholds(config, chunks=histogram.chunks)
        m.submodules.scanner = scanner = Scanner(config)
        m.submodules.expander = expander = Expander(config)
        m.submodules.jobs = jobs = Queue(query_job(config), depth=QUEUE_JOBS)
        m.submodules.gate = gate = TokenGate(config)

        wiring.connect(m, wiring.flipped(self.i), matcher.i)
        wiring.connect(m, matcher.request, codes.i)
        wiring.connect(m, codes.o, matcher.i_line)
        wiring.connect(m, matcher.o_line, histogram.i, buffer.i)
        wiring.connect(m, matcher.o, thresholds.i)
        wiring.connect(m, thresholds.o, scanner.i)
        wiring.connect(m, scanner.minima, buffer.minima)
        wiring.connect(m, scanner.distances, buffer.distances)
        wiring.connect(m, scanner.o, expander.i)
        wiring.connect(m, expander.token_exponents, codes.token_exponents)
        wiring.connect(m, expander.page_exponents, codes.page_exponents)
        wiring.connect(m, matcher.o_job, jobs.i)
        wiring.connect(m, jobs.o, gate.i_job)
        wiring.connect(m, expander.o, gate.i_token)
        wiring.connect(m, expander.o_counts, gate.i_counts)
        for name in ("o_job", "o_token", "o_counts"):
            wiring.connect(m, getattr(gate, name), wiring.flipped(getattr(self, name)))
        m.d.comb += [
            thresholds.bins.eq(histogram.bins),
            histogram.shift.eq(thresholds.shift),
            matcher.histogram_free.eq(thresholds.histogram_free),
            matcher.bank_free.eq(expander.bank_free),
            self.matching.eq(matcher.matching),
            self.scanning.eq(scanner.scanning),
        ]
        return m

    def _make_source(self, m):
        """The code source, wired to the port that feeds it."""
        if self.config.code_source == "resident":
            codes = CodeMemory(self.config)
            wiring.connect(m, wiring.flipped(self.i_code), codes.i_code)
        else:
            codes = CodeStream(self.config)
            wiring.connect(m, codes.bus, wiring.flipped(self.bus))
        return codes
