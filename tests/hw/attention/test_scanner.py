import numpy as np
import pytest

from golden.selection import COARSE, FULL, Select, Selection, select
from hw.attention.scanner import Scanner
from hw.config import PAGE_TOKENS
from tests.hw.harness import run_stream_test
from tests.retrieval_scenes import Scene, make_config

CONFIG = make_config(max_tokens=1024, resident_tokens=2048)
GROUP = 16   # pages


class Case:
    """A query to scan: distances as the buffer holds them, thresholds and classes of golden."""

    def __init__(self, scene, context, bank, **query):
        self.query = scene.make_query(context, **query)
        job = self.query["job"]
        visible = self.visible = job["visible"]
        self.selection = Selection(
            select=Select(job["select"]), summaries=bool(job["summaries"]),
            **{name: job[name] for name in ("full", "coarse", "sink", "recent", "minimum")})
        self.distances = scene.distances(self.query)
        self.choice = select(self.distances, visible, self.selection, CONFIG.distance_bins)
        dense = self.selection.select == Select.DENSE
        self.summaries = self.selection.summaries and not dense
        start = 0 if dense else max(visible - job["recent"], 0)
        if self.selection.summaries:
            start = min(start, visible // PAGE_TOKENS * PAGE_TOKENS)
        position = np.arange(visible)
        self.free = (position >= job["sink"]) & (position < start)
        bins = [min(threshold.bin, CONFIG.distance_bins)
                for threshold in (self.choice.full, self.choice.selected)]
        self.limit = max(bins) + 1
        self.job = {
            "scope": {"bank": bank, "base_page": 3, "visible": visible, "sink": job["sink"],
                      "recent_start": start, "summaries": self.summaries,
                      "visit_all": self.selection.summaries or dense},
            "full": {"bin": bins[0], "ties": self.choice.full.ties},
            "selected": {"bin": bins[1], "ties": self.choice.selected.ties},
            "limit": self.limit,
        }

    def page_distances(self, page):
        row = self.distances[:self.visible][page * PAGE_TOKENS:(page + 1) * PAGE_TOKENS].tolist()
        return row + [1] * (PAGE_TOKENS - len(row))  # what lies beyond must not matter

    def page_minimum(self, page):
        span = slice(page * PAGE_TOKENS, min((page + 1) * PAGE_TOKENS, self.visible))
        if span.start >= self.visible:
            return 0
        return int(np.where(self.free[span], self.distances[span], 0).min())

    def pages(self):
        """(page, full, coarse) of every page that gives something, or must be visited."""
        for page in reversed(range(-(-self.visible // PAGE_TOKENS))):
            classes = self.choice.classes[page * PAGE_TOKENS:(page + 1) * PAGE_TOKENS]
            masks = [sum(int(found) << slot for slot, found in enumerate(classes == kind))
                     for kind in (FULL, COARSE)]
            if any(masks) or self.job["scope"]["visit_all"]:
                yield page, *masks

    def visits(self):
        """Most pages that may be visited."""
        return sum(self.job["scope"]["visit_all"] or self.page_minimum(page) < self.limit
                   for page in range(-(-self.visible // PAGE_TOKENS)))


def serve_buffer(unit, cases):
    """A testbench in the place of the distance buffer: two banks, of which each query has one."""
    async def serve(ctx):
        current = {}
        waiting = list(cases)
        while True:
            _, _, started, minima, group, distances, page = await ctx.tick().sample(
                unit.i.valid & unit.i.ready, unit.minima.en, unit.minima.addr,
                unit.distances.en, unit.distances.addr)
            if started:
                case = waiting.pop(0)
                current[case.job["scope"]["bank"]] = case
            if minima:
                bank, group = divmod(group, CONFIG.max_pages // GROUP)
                ctx.set(unit.minima.data, [
                    current[bank].page_minimum(group * GROUP + slot) for slot in range(GROUP)])
            if distances:
                bank, page = divmod(page, CONFIG.max_pages)
                ctx.set(unit.distances.data, current[bank].page_distances(page))
    return serve


def scan(cases, *, seed=1, stall_probability=0.0):
    unit = Scanner(CONFIG)
    result = run_stream_test(
        unit, feeds={"i": [case.job for case in cases]}, sinks={"o": None}, seed=seed,
        stall_probability=stall_probability, testbenches=[serve_buffer(unit, cases)])
    found = result.outputs["o"]
    for case in cases:
        end = next(place for place, item in enumerate(found) if item["end"])
        items, found = found[:end], found[end + 1:]
        assert len(items) <= case.visits()
        given = [item for item in items
                 if item["full"] or item["coarse"] or case.job["scope"]["visit_all"]]
        assert [(item["page"], item["full"], item["coarse"]) for item in given] == list(
            case.pages())
        for item in items:
            assert item["store_page"] == 3 + item["page"]
            complete = (item["page"] + 1) * PAGE_TOKENS <= case.visible
            assert item["summary"] == (case.summaries and complete)
    assert not found
    return result


@pytest.mark.parametrize("stall_probability", [0.0, 0.5])
def test_pages_of_random_queries(stall_probability):
    scene = Scene(CONFIG, seed=31)
    contexts = [scene.add_context(tokens) for tokens in (400, 40)]
    cases = [Case(scene, context, number % 2, visible=scene.rng.randrange(1, len(context) + 1))
             for number, context in enumerate(contexts * 15)]
    scan(cases, stall_probability=stall_probability)


def test_a_page_per_cycle():
    scene = Scene(CONFIG, seed=32)
    context = scene.add_context(1024)
    result = scan([Case(scene, context, 0, select=Select.DENSE)])
    cycles = result.output_cycles["o"]
    assert cycles[0] - result.input_cycles["i"][0] == 6
    assert cycles == list(range(cycles[0], cycles[0] + 64 + 1))


def test_a_group_per_cycle_where_nothing_is_near():
    scene = Scene(CONFIG, seed=33)
    context = scene.add_context(1024)
    # Only the first page holds something: a sink.
    result = scan([Case(scene, context, 0, select=Select.BUDGET, full=0, coarse=0, sink=1, recent=0,
                        minimum=0, summaries=0)])
    # Three groups pass before, and the end follows the page.
    assert [cycle - result.input_cycles["i"][0] for cycle in result.output_cycles["o"]] == [9, 10]


def test_queries_follow_each_other():
    scene = Scene(CONFIG, seed=34)
    context = scene.add_context(64)
    result = scan([Case(scene, context, number % 2, select=Select.DENSE) for number in range(4)])
    starts = result.input_cycles["i"]
    # Two cycles to the first page, four pages, the end, three cycles of filter.
    assert [b - a for a, b in zip(starts, starts[1:], strict=False)] == [2 + 4 + 1 + 3] * 3


def test_an_error_gives_the_end_only():
    scene = Scene(CONFIG, seed=35)
    case = Case(scene, scene.add_context(64), 0, select=Select.DENSE)
    case.job["scope"] = {**case.job["scope"], "error": 8, "beats": 77}
    unit = Scanner(CONFIG)
    result = run_stream_test(unit, feeds={"i": [case.job]}, sinks={"o": 1}, seed=1,
                             testbenches=[serve_buffer(unit, [case])])
    (item,) = result.outputs["o"]
    assert item["end"] == 1
    assert item["error"].value == 8
    assert item["beats"] == 77
