"""Thresholds of a query from its distance histogram."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.prefix import running_sums
from hw.arith.rounding import delay
from hw.attention.layouts import Select
from hw.attention.retrieval_layouts import (
    check_config,
    release_margin,
    scan_job,
    search_job,
    threshold,
)
from hw.checks import check_int
from hw.shared import Once

__all__ = ["Search", "Thresholds", "prefix_latency"]

LEVELS_PER_STAGE = 3


def prefix_latency(bins_per_cycle):
    """Cycles from the bins to their running sums."""
    return max(1, -(-(bins_per_cycle - 1).bit_length() // LEVELS_PER_STAGE))


class Search(wiring.Component):
    """Finds the bin in which the running count reaches a target, chunk by chunk.

    The running sums of a chunk never fall, so its last one tells whether the target lies in it, and
    what is left of the target otherwise: one subtraction per chunk.

    **Latency**: 2 cycles from the chunk of the target to ``o``.

    **Throughput**: one chunk per cycle.

    **Numerics**: ``search`` of docs/numerics.md section 10.

    **Errors**: none. A target above the sum of all bins leaves ``o`` at its start.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    start : ``In(1)``
        Take the next four; chunks follow from the next cycle on.
    target : ``In(token_bits)``
        Count to reach; with zero ``o`` stays at its start.
    limit : ``In(distance_bits)``
        Bin of ``o`` at the start, without ties.
    all_ties : ``In(1)``
        Give every tie of the bin.
    valid : ``In(1)``
        ``sums`` are a chunk.
    chunk : ``In(distance_bits)``
        Its number.
    sums : ``In(ArrayLayout(token_bits, bins_per_cycle))``
        Running sums within the chunk.
    o : ``Out(threshold(config))``
        Bin, and the rest that is needed of its ties.
    """

    def __init__(self, config):
        self._config = check_config("Search", config)
        super().__init__({
            "start": In(1),
            "target": In(config.token_bits),
            "limit": In(config.distance_bits),
            "all_ties": In(1),
            "valid": In(1),
            "chunk": In(config.distance_bits),
            "sums": In(data.ArrayLayout(config.token_bits, config.bins_per_cycle)),
            "o": Out(threshold(config)),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        count = config.bins_per_cycle
        rest = Signal(config.token_bits)
        found = Signal()
        all_ties = Signal()

        # The chunk of the target: compare now, tell the bin in the next cycle.
        total = self.sums[count - 1]
        here = self.valid & ~found & (total >= rest)
        hit = delay(m, here, 1, name="hit")
        chunk = delay(m, self.chunk, 1, name="chunk")
        rest_here = delay(m, rest, 1, name="rest_here")
        sums = [delay(m, self.sums[place], 1, name=f"sum_{place}") for place in range(count - 1)]
        reached = [delay(m, self.sums[place] >= rest, 1, name=f"reached_{place}")
                   for place in range(count - 1)]
        with m.If(self.start):
            m.d.sync += [
                rest.eq(self.target),
                found.eq(self.target == 0),
                all_ties.eq(self.all_ties),
                self.o.bin.eq(self.limit),
                self.o.ties.eq(0),
            ]
        with m.Elif(self.valid):
            m.d.sync += rest.eq(rest - total)
            with m.If(here):
                m.d.sync += found.eq(1)

        place = Signal(range(count))
        below = Signal(config.token_bits)
        for index in range(1, count):
            # Reached from `first` up: the last assignment that holds is that of the first bin.
            with m.If(~reached[index - 1]):
                m.d.comb += [place.eq(index), below.eq(sums[index - 1])]
        with m.If(hit):
            m.d.sync += [
                self.o.bin.eq(Cat(place, chunk) if count > 1 else chunk),
                self.o.ties.eq((rest_here - below) | all_ties.replicate(config.token_bits)),
            ]
        return m


class Thresholds(wiring.Component):
    """Second stage of retrieval: reads the histogram once and finds all thresholds of a query.

    Three searches run side by side: for the full tokens, the full and coarse ones, and the minimum.
    The larger of two thresholds admits more, so that the minimum finds its place without counting
    what the full one admits.

    **Latency**: ``chunks`` + 1 + `prefix_latency` cycles from ``i`` to ``o`` with
    ``chunks`` = ceil(distance_bins / bins_per_cycle); 1 cycle for a dense query.

    **Throughput**: one query at a time; the next once ``o`` was taken.

    **Numerics**: ``golden.selection.thresholds``.

    **Errors**: those of the job pass through.

    Parameters
    ----------
    config : AttentionConfig
    chunks : int
        Shifts that read the whole histogram.

    Members
    -------
    i : ``In(stream.Signature(search_job(config)))``
        A query whose histogram is complete.
    bins : ``In(ArrayLayout(token_bits, bins_per_cycle))``
        Lowest chunk of the histogram.
    shift : ``Out(1)``
        Go to the next chunk; clears the histogram on the way.
    histogram_free : ``Out(1)``
        A query that starts to be matched now finds the histogram cleared.
    o : ``Out(stream.Signature(scan_job(config)))``
        The query and its thresholds.
    """

    def __init__(self, config, *, chunks):
        self._config = check_config("Thresholds", config)
        self._chunks = check_int("Thresholds chunks", chunks, minimum=1)
        super().__init__({
            "i": In(stream.Signature(search_job(config))),
            "bins": In(data.ArrayLayout(config.token_bits, config.bins_per_cycle)),
            "shift": Out(1),
            "histogram_free": Out(1, init=1),
            "o": Out(stream.Signature(scan_job(config))),
        })

    @property
    def config(self):
        return self._config

    @property
    def chunks(self):
        return self._chunks

    def elaborate(self, platform):
        m = Module()
        start = Signal()
        final = self._build_shift(m, start)
        m.d.comb += start.eq(self.i.valid & self.i.ready)

        busy = Signal()
        m.d.comb += self.i.ready.eq(~busy)
        with m.If(start):
            m.d.sync += [busy.eq(1), self.o.valid.eq(self.i.payload.select == Select.DENSE)]
        with m.Elif(final):
            m.d.sync += self.o.valid.eq(1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [busy.eq(0), self.o.valid.eq(0)]

        scope = Signal(self.i.payload.scope.shape())
        with m.If(start):
            m.d.sync += scope.eq(self.i.payload.scope)
        m.d.comb += self.o.payload.scope.eq(scope)
        self._build_choice(m, start, *self._build_searches(m, start))
        return m

    def _build_shift(self, m, start):
        """Shift the histogram through; return a strobe for the cycle before the results hold."""
        left = Signal(range(self.chunks))
        searched = start & (self.i.payload.select != Select.DENSE)
        margin = release_margin(self.config)
        m.d.comb += self.shift.eq(searched | (left != 0))
        with m.If(searched):
            m.d.sync += [
                left.eq(self.chunks - 1),
                self.histogram_free.eq(self.chunks - 1 <= margin),
            ]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), self.histogram_free.eq(left <= margin + 1)]
        last = (left == 1) if self.chunks > 1 else searched
        return delay(m, last, prefix_latency(self.config.bins_per_cycle) + 1, name="last")

    def _build_searches(self, m, start):
        config = self.config
        wait = prefix_latency(config.bins_per_cycle)
        sums = running_sums(m, [self.bins[place] for place in range(config.bins_per_cycle)],
                            bits=config.token_bits, name="sum", levels_per_stage=LEVELS_PER_STAGE)
        valid = delay(m, self.shift, wait, name="valid")
        chunk = Signal(range(self.chunks))
        with m.If(valid):
            m.d.sync += chunk.eq(Mux(chunk == self.chunks - 1, 0, chunk + 1))

        job = self.i.payload
        is_distance = job.select == Select.DISTANCE
        is_percentile = job.select == Select.PERCENTILE
        results = []
        for name in ("full", "selected", "least"):
            m.submodules[name] = search = Once(Search(config))
            results.append(search.o)
            m.d.comb += [
                search.start.eq(start),
                search.target.eq(job[f"{name}_count"]),
                search.valid.eq(valid),
                search.chunk.eq(chunk),
            ]
            m.d.comb += [search.sums[place].eq(value) for place, value in enumerate(sums)]
            if name != "least":
                m.d.comb += search.all_ties.eq(is_percentile)
                with m.If(is_distance):
                    m.d.comb += [search.target.eq(0), search.limit.eq(job[f"{name}_limit"])]
        return results

    def _build_choice(self, m, start, full, selected, least):
        """Put the minimum in the place of a full threshold that admits fewer tokens."""
        job = self.i.payload
        out = self.o.payload
        by_count = Signal()     # the counts searched for tell that it does
        if_above = Signal()     # it does if its bin is above,
        if_equal = Signal()     # or equal: a distance limit admits nothing of its own bin
        with m.If(start):
            whole_bins = (job.select == Select.PERCENTILE) & (job.full_count != 0)
            is_limit = (job.select == Select.DISTANCE) & (job.least_count != 0)
            m.d.sync += [
                by_count.eq((job.select != Select.DISTANCE) & ~whole_bins
                            & (job.least_count > job.full_count)),
                if_above.eq(whole_bins | is_limit),
                if_equal.eq(is_limit),
            ]
        above = least.bin > full.bin
        use_least = by_count | (if_above & above) | (if_equal & (least.bin == full.bin))
        m.d.comb += [
            out.full.eq(Mux(use_least, least, full)),
            out.selected.eq(selected),
        ]
        # Whichever is used is the larger one.
        full_bin = Mux(above, least.bin, full.bin)
        is_largest = (selected.bin > full.bin) & (selected.bin > least.bin)
        largest = Mux(is_largest, selected.bin, full_bin)
        m.d.comb += out.limit.eq(largest + 1)
