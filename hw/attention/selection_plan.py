"""Counts that a query's thresholds are searched for."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Select
from hw.attention.retrieval_layouts import check_config
from hw.config import PAGE_TOKENS, PERCENT_FRACTION_BITS

__all__ = ["SelectionPlan"]


def _excess(a, b):
    """max(a - b, 0)"""
    return Mux(a > b, (a - b)[:len(a)], 0)


class SelectionPlan(wiring.Component):
    """Turns the request of a query into forced ranges and search counts.

    With M tokens not forced of the N visible ones, a count less the forced ones is
    F - (N - M) = M - (N - F), which is at most M for any F: one subtraction clips both ends.

    **Latency**: the inputs must hold from the cycle of ``start``. ``recent_start`` is valid 1 cycle
    after ``start`` and the counts 4 cycles after; both hold as long as the inputs do.

    **Throughput**: one query in 4 cycles.

    **Numerics**: ``golden.selection.thresholds``, docs/numerics.md section 10.

    **Errors**: none. A budget above ``visible`` must have been refused before.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    start : ``In(1)``
        First cycle of a query.
    select, full, coarse, visible, sink, recent, minimum, summaries : ``In``
        Fields of the query's ``query_job``.
    recent_start : ``Out(token_bits)``
        Positions from here on are forced: the recent window, with ``summaries`` the unfinished
        page, and everything of a dense query.
    full_count, selected_count, least_count : ``Out(token_bits)``
        Tokens to admit by the full, the selected and the minimum search.
    """

    def __init__(self, config):
        self._config = check_config("SelectionPlan", config)
        tokens = config.token_bits
        super().__init__({
            "start": In(1),
            "select": In(Select),
            "full": In(PERCENT_FRACTION_BITS + tokens),
            "coarse": In(PERCENT_FRACTION_BITS + tokens),
            "visible": In(tokens),
            "sink": In(tokens),
            "recent": In(tokens),
            "minimum": In(tokens),
            "summaries": In(1),
            "recent_start": Out(tokens),
            "full_count": Out(tokens),
            "selected_count": Out(tokens),
            "least_count": Out(tokens),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        tokens = self.config.token_bits
        full, coarse = self._build_amounts(m)

        slot_bits = (PAGE_TOKENS - 1).bit_length()
        whole_pages = Cat(Const(0, slot_bits), self.visible[slot_bits:])
        limit = Mux(self.summaries, whole_pages, self.visible)
        window_start = _excess(self.visible, self.recent)
        others = Signal(tokens)         # tokens that are not forced
        without_full = Signal(tokens)   # tokens that a full budget leaves out, and
        without_least = Signal(tokens)  # those that the minimum does
        m.d.sync += [
            self.recent_start.eq(Mux(self.select == Select.DENSE, 0,
                                     Mux(window_start < limit, window_start, limit))),
            without_least.eq(_excess(self.visible, self.minimum)),

            others.eq(_excess(self.recent_start, self.sink)),
            without_full.eq(_excess(self.visible, full)),

            self.full_count.eq(_excess(others, without_full)),
            self.least_count.eq(_excess(others, without_least)),
        ]
        wanted = self.full_count + coarse
        m.d.sync += self.selected_count.eq(Mux(wanted < others, wanted, others))
        return m

    def _build_amounts(self, m):
        """Full and coarse as counts of tokens. One multiplier serves both shares in turn."""
        tokens = self.config.token_bits
        second = Signal()
        share = Mux(self.start, self.full, self.coarse)
        product = Signal(PERCENT_FRACTION_BITS + tokens)
        whole = Signal()
        full_share = Signal(tokens)
        part = Mux(whole, self.visible, product[PERCENT_FRACTION_BITS:])
        m.d.sync += [
            second.eq(self.start),
            product.eq(share[:PERCENT_FRACTION_BITS] * self.visible),
            whole.eq(share[PERCENT_FRACTION_BITS:].any()),
        ]
        with m.If(second):
            m.d.sync += full_share.eq(part)
        is_share = self.select == Select.PERCENTILE
        full = Mux(is_share, Mux(second, part, full_share), self.full[:tokens])
        coarse = Mux(is_share, part, self.coarse[:tokens])
        return full, coarse
