"""Classes of a page's tokens from their distances."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.prefix import running_sums
from hw.arith.rounding import delay
from hw.attention.ranges import lanes_below
from hw.attention.retrieval_layouts import Strobe, check_config, scan_job
from hw.config import PAGE_TOKENS
from hw.shared import Once

__all__ = ["PageFilter", "TieCounter"]

RANK_BITS = PAGE_TOKENS.bit_length()


class TieCounter(wiring.Component):
    """Admits the most recent ties of a query, over pages that come in descending order.

    **Latency**: 2 cycles: the ranks within the page, then the test against what is left.

    **Throughput**: one page per cycle.

    **Numerics**: ``golden.selection``: rank 0 is the most recent tie.

    **Errors**: none.

    Parameters
    ----------
    count_bits : int
        Width of the number of ties to admit.

    Members
    -------
    start : ``In(1)``
        Take ``quota``: a new query begins.
    quota : ``In(count_bits)``
    valid : ``In(1)``
        ``ties`` are those of a page.
    ties : ``In(16)``
    admitted : ``Out(16)``
        The ties of the page 1 cycle before that the quota admits, combinational.
    left : ``Out(1)``
        Something is left of the quota.
    """

    def __init__(self, *, count_bits):
        self._count_bits = count_bits
        super().__init__({
            "start": In(1),
            "quota": In(count_bits),
            "valid": In(1),
            "ties": In(PAGE_TOKENS),
            "admitted": Out(PAGE_TOKENS),
            "left": Out(1),
        })

    @property
    def count_bits(self):
        return self._count_bits

    def elaborate(self, platform):
        m = Module()
        # Counted from the most recent token down: a tie's own place in the count is its rank + 1.
        numbers = running_sums(
            m, [self.ties[slot] for slot in reversed(range(PAGE_TOKENS))], bits=RANK_BITS,
            name="number", levels_per_stage=PAGE_TOKENS)
        total = numbers[-1]
        ties = delay(m, self.ties, 1, name="ties")
        valid = delay(m, self.valid, 1, name="valid")

        left = Signal(self.count_bits)
        plenty = left[RANK_BITS:].any()
        with m.If(self.start):
            m.d.sync += left.eq(self.quota)
        with m.Elif(valid):
            m.d.sync += left.eq(Mux(left > total, left - total, 0))
        within = Cat(number <= left[:RANK_BITS] for number in reversed(numbers))
        m.d.comb += [
            self.admitted.eq(ties & (within | plenty.replicate(PAGE_TOKENS))),
            self.left.eq(left != 0),
        ]
        return m


class PageFilter(wiring.Component):
    """Compares a page's distances with the thresholds, and counts the ties.

    **Latency**: 3 cycles from ``i`` to ``full`` and ``coarse``; the distances come 1 cycle after
    ``i``.

    **Throughput**: one page per cycle.

    **Numerics**: ``golden.selection.select``.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_job : ``In(Strobe(scan_job(config)))``
        A query begins; its first page comes 1 cycle later or more, and all its pages have passed
        before the next query.
    i : ``In(Strobe(page_bits))``
        Number of a page; pages of a query descend.
    distances : ``In(ArrayLayout(distance_bits, 16))``
        Its distances.
    full, coarse : ``Out(16)``
        Its tokens of each class; combinational.
    limit : ``Out(distance_bits)``
        No distance of the limit or more can be admitted any more; valid 1 cycle after ``i_job``.
    """

    def __init__(self, config):
        self._config = check_config("PageFilter", config)
        super().__init__({
            "i_job": In(Strobe(scan_job(config))),
            "i": In(Strobe(config.page_bits)),
            "distances": In(data.ArrayLayout(config.distance_bits, PAGE_TOKENS)),
            "full": Out(PAGE_TOKENS),
            "coarse": Out(PAGE_TOKENS),
            "limit": Out(config.distance_bits),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        job = Signal(self.i_job.payload.shape())
        with m.If(self.i_job.valid):
            m.d.sync += job.eq(self.i_job.payload)

        page = delay(m, self.i.payload, 1, name="page")
        valid = delay(m, self.i.valid, 2, name="valid")
        visible = lanes_below(page, job.scope.visible, PAGE_TOKENS)
        free = (lanes_below(page, job.scope.recent_start, PAGE_TOKENS)
                & ~lanes_below(page, job.scope.sink, PAGE_TOKENS))
        forced = delay(m, visible & ~free, 2, name="forced")

        full, full_limit = self._build_class(m, "full", job, visible & free, valid)
        selected, selected_limit = self._build_class(m, "selected", job, visible & free, valid)
        m.d.comb += [
            self.full.eq(forced | full),
            self.coarse.eq(selected & ~(forced | full)),
        ]
        with m.If(self.i_job.valid):
            m.d.sync += self.limit.eq(self.i_job.payload.limit)
        with m.Else():
            m.d.sync += self.limit.eq(
                Mux(full_limit > selected_limit, full_limit, selected_limit))
        return m

    def _build_class(self, m, name, job, candidates, valid):
        """Candidates within a threshold, and the limit that the threshold sets to coming pages."""
        bin_ = job[name].bin
        below = Cat(distance < bin_ for distance in self.distances)
        equal = Cat(distance == bin_ for distance in self.distances)
        m.submodules[f"{name}_ties"] = ties = Once(TieCounter(count_bits=self.config.token_bits))
        m.d.comb += [
            ties.start.eq(self.i_job.valid),
            ties.quota.eq(self.i_job.payload[name].ties),
            ties.valid.eq(valid),
            ties.ties.eq(delay(m, equal & candidates, 1, name=f"{name}_equal")),
        ]
        within = delay(m, below & candidates, 2, name=f"{name}_below") | ties.admitted
        return within, (bin_ + ties.left)[:self.config.distance_bits]
