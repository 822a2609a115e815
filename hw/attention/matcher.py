"""Compares a query's codes with those of every visible token."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.attention.layouts import Error, Select, query_job, retrieval_job
from hw.attention.match_lane import MatchLane, match_lane_latency
from hw.attention.ranges import lanes_below
from hw.attention.retrieval_layouts import (
    Strobe,
    check_config,
    code_line,
    distance_line,
    histogram_latency,
    line_request,
    search_job,
)
from hw.attention.selection_plan import SelectionPlan
from hw.config import PAGE_TOKENS
from hw.shared import Once

__all__ = ["Matcher"]

# Of the distance buffer and of streamed exponents: queries from their match to their last token.
BANKS = 2
PLAN_CYCLES = 4


class Matcher(wiring.Component):
    """First stage of retrieval: asks for the code lines of a query and gives their distances.

    A dense query needs no distances. With resident codes it passes without reading a line; streamed
    lines are read all the same, for the exponents that they carry.

    **Latency**: distances of a line 2 to 4 cycles after it (`match_lane_latency`). ``o`` is valid
    in the cycle in which the bins hold the last line (`histogram_latency` later), and never earlier
    than 5 cycles after ``i``.

    **Throughput**: one line per cycle without bubbles. The next query starts when the histogram is
    free before its first distances get there.

    **Numerics**: ``golden.hashing.distance``; forced tokens as ``golden.selection.forced_full``.

    **Errors**: those of the code source, in ``o``.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(retrieval_job(config)))``
        Queries.
    o_job : ``Out(stream.Signature(query_job(config)))``
        Each query as it starts. It starts only when this stream can take it.
    request : ``Out(Strobe(line_request(config)))``
        To the code source, in the cycle in which a query starts.
    i_line : ``In(Strobe(code_line(config)))``
        Code lines from there.
    o_line : ``Out(Strobe(distance_line(config)))``
        Their distances.
    o : ``Out(stream.Signature(search_job(config)))``
        The query, once all its lines are in the histogram.
    histogram_free : ``In(1)``
        A query that starts now may add to the bins `release_margin` cycles later.
    bank_free : ``In(1)``
        A query left the last stage: its bank can be used again.
    matching : ``Out(1)``
        A query is being matched, or its thresholds are being searched.
    """

    def __init__(self, config):
        self._config = check_config("Matcher", config)
        super().__init__({
            "i": In(stream.Signature(retrieval_job(config))),
            "o_job": Out(stream.Signature(query_job(config))),
            "request": Out(Strobe(line_request(config))),
            "i_line": In(Strobe(code_line(config))),
            "o_line": Out(Strobe(distance_line(config))),
            "o": Out(stream.Signature(search_job(config))),
            "histogram_free": In(1, init=1),
            "bank_free": In(1),
            "matching": Out(1),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        start = Signal()
        bank = Signal()     # of the query being matched
        query = Signal(self.i.payload.shape())
        m.d.comb += start.eq(self.i.valid & self.i.ready)
        with m.If(start):
            m.d.sync += [query.eq(self.i.payload), bank.eq(~bank)]

        m.submodules.plan = plan = SelectionPlan(self.config)
        started = delay(m, start, 1, name="started")
        m.d.comb += plan.start.eq(started)
        for name in ("select", "full", "coarse", "visible", "sink", "recent", "minimum",
                     "summaries"):
            m.d.comb += getattr(plan, name).eq(query.job[name])

        self._build_lanes(m, query.codes)
        self._build_masks(m, start, bank, query.job, plan.recent_start)
        self._build_start(m, start, bank)
        self._build_end(m, start, started)
        self._build_job(m, query.job, bank, plan)
        return m

    def _build_lanes(self, m, codes):
        config = self.config
        for index in range(config.lanes):
            lane = Once(MatchLane(code_bits=config.code_bits, group=config.group,
                                  distance_shift=config.distance_shift))
            m.submodules[f"lane_{index}"] = lane
            m.d.comb += [
                lane.code.eq(self.i_line.payload.codes[index]),
                lane.queries.eq(codes),
                self.o_line.payload.distances[index].eq(lane.distance),
            ]

    def _build_masks(self, m, start, bank, job, recent_start):
        """Which lanes of a line hold tokens, and which of these are counted."""
        lanes = self.config.lanes
        out = self.o_line.payload
        line = Signal.like(out.line)
        with m.If(start):
            m.d.sync += line.eq(0)
        with m.Elif(self.i_line.valid):
            m.d.sync += line.eq(line + 1)

        # The forced ranges are known a cycle before the first line's masks are.
        wait = match_lane_latency(self.config.code_bits, self.config.group) - 1
        valid = delay(m, self.i_line.valid, wait, name="line_valid")
        index = delay(m, line, wait, name="line_index")
        counted = lanes_below(index, recent_start, lanes) & ~lanes_below(index, job.sink, lanes)
        m.d.sync += [
            self.o_line.valid.eq(valid),
            out.line.eq(index),
            out.bank.eq(bank),
            out.visible.eq(lanes_below(index, job.visible, lanes)),
            out.counted.eq(counted),
        ]

    def _build_start(self, m, start, bank):
        config = self.config
        job = self.i.payload.job
        request = self.request.payload
        slot_bits = (config.lanes - 1).bit_length()
        pending = Signal()
        banks_used = Signal(range(BANKS + 1))
        can_start = ~pending & self.histogram_free & (banks_used != BANKS)
        needs_lines = 1
        if config.code_source == "resident":
            needs_lines = job.select != Select.DENSE
            m.d.comb += request.first_line.eq(job.entry.code_line)
        else:
            m.d.comb += request.address.eq(job.entry.code_address)
        m.d.comb += [
            self.i.ready.eq(can_start & self.o_job.ready),
            self.o_job.valid.eq(self.i.valid & can_start),
            self.o_job.payload.eq(job),
            self.request.valid.eq(start & needs_lines),
            request.last_line.eq((job.visible - 1)[slot_bits:]),
            request.bank.eq(~bank),
            self.matching.eq(pending | ~self.histogram_free),
        ]
        m.d.sync += banks_used.eq(banks_used + start - self.bank_free)
        with m.If(start):
            m.d.sync += pending.eq(1)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += pending.eq(0)

    def _build_end(self, m, start, started):
        """Hand the query over once its last line has landed in the bins and its plan is made."""
        config = self.config
        landed = Signal()
        planned = Signal()
        wait = (match_lane_latency(config.code_bits, config.group)
                + histogram_latency(config) - 1)
        is_last = self.i_line.valid & self.i_line.payload.last
        with m.If(delay(m, started, PLAN_CYCLES - 1, name="plan_wait")):
            m.d.sync += planned.eq(1)
        with m.If(delay(m, is_last, wait, name="last")):
            m.d.sync += landed.eq(1)
        m.d.comb += self.o.valid.eq(landed & planned)
        with m.If(start):
            m.d.sync += [landed.eq(~self.request.valid), planned.eq(0)]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += landed.eq(0)

    def _build_job(self, m, job, bank, plan):
        config = self.config
        out = self.o.payload
        scope = out.scope
        dense = job.select == Select.DENSE
        error = Signal(Error)
        beats = Signal.like(scope.beats)
        if config.code_source == "streamed":
            with m.If(self.i_line.valid):
                m.d.sync += [error.eq(self.i_line.payload.error),
                             beats.eq(self.i_line.payload.beats)]
        else:
            line = job.entry.code_line
            page_lines_log2 = (PAGE_TOKENS // config.lanes).bit_length() - 1
            line_pages_log2 = (config.lanes // PAGE_TOKENS).bit_length() - 1
            m.d.comb += scope.base_page.eq(
                line >> page_lines_log2 if config.lanes < PAGE_TOKENS else line << line_pages_log2)
        m.d.comb += [
            scope.bank.eq(bank),
            scope.visible.eq(job.visible),
            scope.sink.eq(job.sink),
            scope.recent_start.eq(plan.recent_start),
            scope.summaries.eq(job.summaries & ~dense),
            scope.visit_all.eq(job.summaries | dense),
            scope.error.eq(error),
            scope.beats.eq(beats),
            out.select.eq(job.select),
            out.full_limit.eq(self._clip_limit(job.full)),
            out.selected_limit.eq(self._clip_limit(job.coarse)),
            out.full_count.eq(plan.full_count),
            out.selected_count.eq(plan.selected_count),
            out.least_count.eq(plan.least_count),
        ]

    def _clip_limit(self, limit):
        """A limit above every distance admits them all."""
        bins = self.config.distance_bins
        return Mux(limit < bins, limit[:self.config.distance_bits], bins)
