import random

import numpy as np
import pytest

from golden.selection import Select, Selection, forced_full
from hw.attention.match_lane import match_lane_latency
from hw.attention.matcher import Matcher
from hw.attention.retrieval_layouts import histogram_latency
from tests.hw.attention.test_thresholds import search_counts
from tests.hw.harness import run_stream_test
from tests.retrieval_scenes import Scene, config_name, make_config

CONFIGS = [
    make_config(lanes=4, code_bits=64),
    make_config(lanes=16, group=3),
    make_config(lanes=32, group=4),
    make_config(lanes=16, code_source="streamed"),
]


class CodeSource:
    """Answers requests with the lines of a scene, and records the distances that come out."""

    def __init__(self, unit, scene, queries, *, gaps, seed):
        self.unit = unit
        self.scene = scene
        self.queries = queries
        self.gaps = gaps
        self.rng = random.Random(seed)
        self.request_cycles = []
        self.line_cycles = []
        self.lines = []            # (cycle, line number, distances, visible, counted)

    def needs_lines(self, query):
        return (self.scene.config.code_source == "streamed"
                or query["job"]["select"] != Select.DENSE)

    def all_lines(self, query):
        lanes = self.scene.config.lanes
        codes = self.scene.context_of(query).codes
        for first in range(0, query["job"]["visible"], lanes):
            # Beyond the context lie codes of others.
            line = codes[first:first + lanes]
            yield line + [self.rng.getrandbits(self.scene.config.code_bits)
                          for _ in range(lanes - len(line))]

    async def serve(self, ctx):
        unit = self.unit
        todo = [query for query in self.queries if self.needs_lines(query)]
        pending, cycle = [], 0
        ctx.set(unit.histogram_free, 1)
        while True:
            offered = bool(pending) and self.rng.random() >= self.gaps
            ctx.set(unit.i_line.valid, offered)
            if offered:
                codes, is_last = pending.pop(0)
                ctx.set(unit.i_line.payload, {"codes": codes, "last": is_last, "beats": cycle})
                self.line_cycles.append(cycle)
            _, _, asked, request, valid, line, given, taken = await ctx.tick().sample(
                unit.request.valid, unit.request.payload, unit.o_line.valid, unit.o_line.payload,
                unit.o.valid, unit.o.ready)
            if asked:
                lines = list(self.all_lines(todo.pop(0)))
                assert request.last_line == len(lines) - 1
                assert not pending
                pending = [(codes, index == len(lines) - 1) for index, codes in enumerate(lines)]
                self.request_cycles.append(cycle)
            if valid:
                self.lines.append((cycle, line.line, list(line.distances), line.visible,
                                   line.counted))
            # Each query's bank is free again before the next but one starts.
            ctx.set(unit.bank_free, given & taken)
            cycle += 1

    def check_lines(self):
        lanes = self.scene.config.lanes
        expected = [(query, first) for query in self.queries if self.needs_lines(query)
                    for first in range(0, query["job"]["visible"], lanes)]
        for (query, first), (_, line, distances, visible, counted) in zip(
                expected, self.lines, strict=True):
            job = query["job"]
            assert line == first // lanes
            present = range(first, min(first + lanes, job["visible"]))
            assert visible == (1 << len(present)) - 1
            free = ~forced_full(job["visible"], self.selection(job))
            if job["select"] == Select.DENSE:
                free[:] = False
            assert counted == sum(int(free[p]) << p - first for p in present)
            wanted = self.scene.distances(query)[first:first + lanes].tolist()
            assert distances[:len(present)] == wanted[:len(present)]

    def selection(self, job):
        return Selection(select=Select(job["select"]), summaries=bool(job["summaries"]),
                         **{name: job[name] for name in (
                             "full", "coarse", "sink", "recent", "minimum")})

    def check_job(self, query, found):
        job = query["job"]
        config = self.scene.config
        forced = forced_full(job["visible"], self.selection(job))
        dense = job["select"] == Select.DENSE
        others = 0 if dense else int((~forced).sum())
        counts = search_counts(self.selection(job), job["visible"], others)
        if job["select"] in (Select.BUDGET, Select.PERCENTILE):
            assert {name: found[name] for name in counts} == counts
        assert found["least_count"] == counts["least_count"]
        assert found["select"].value == job["select"]
        scope = found["scope"]
        assert scope["summaries"] == (job["summaries"] and not dense)
        assert scope["visit_all"] == (job["summaries"] or dense)
        free = np.arange(job["visible"])
        free = free[(free >= scope["sink"]) & (free < scope["recent_start"])]
        assert len(free) == others
        if job["select"] == Select.DISTANCE:
            assert found["full_limit"] == min(job["full"], config.distance_bins)
            assert found["selected_limit"] == min(job["coarse"], config.distance_bins)
        if config.code_source == "resident":
            assert scope["base_page"] == job["entry"]["code_line"] * config.lanes // 16


def match(scene, queries, *, seed=1, stall_probability=0.0, gaps=0.0):
    unit = Matcher(scene.config)
    source = CodeSource(unit, scene, queries, gaps=gaps, seed=seed)
    result = run_stream_test(
        unit, feeds={"i": queries}, sinks={"o_job": len(queries), "o": len(queries)}, seed=seed,
        stall_probability=stall_probability, testbenches=[source.serve])
    source.check_lines()
    for query, found in zip(queries, result.outputs["o"], strict=True):
        source.check_job(query, found)
    banks = [found["scope"]["bank"] for found in result.outputs["o"]]
    assert banks == [1, 0] * (len(banks) // 2) + [1] * (len(banks) % 2)
    return result, source


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
@pytest.mark.parametrize("stall_probability, gaps", [(0.0, 0.0), (0.3, 0.3)])
def test_distances_and_counts(config, stall_probability, gaps):
    scene = Scene(config, seed=21)
    contexts = [scene.add_context(tokens) for tokens in (40, 20)]
    queries = [scene.make_query(context, visible=scene.rng.randrange(1, len(context) + 1),
                                select=select)
               for select in Select for context in contexts for _ in range(2)]
    match(scene, queries, stall_probability=stall_probability, gaps=gaps)


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
def test_a_line_per_cycle_and_exact_latency(config):
    scene = Scene(config, seed=22)
    context = scene.add_context(5 * config.lanes + 1)
    queries = [scene.make_query(context, select=Select.BUDGET, visible=visible)
               for visible in (1, len(context), config.lanes)]
    result, source = match(scene, queries)
    lane = match_lane_latency(config.code_bits, config.group)
    assert [cycle - lane for cycle, *_ in source.lines] == source.line_cycles
    starts = source.request_cycles
    assert starts == result.input_cycles["i"]
    last = {start: max(cycle for cycle in source.line_cycles
                       if cycle < following)
            for start, following in zip(starts, [*starts[1:], 1 << 30], strict=True)}
    for start, given in zip(starts, result.output_cycles["o"], strict=True):
        assert given == max(start + 5, last[start] + lane + histogram_latency(config))
    # The next query starts in the cycle after this one left.
    assert starts[1:] == [cycle + 1 for cycle in result.output_cycles["o"][:-1]]


def test_dense_reads_no_resident_line():
    scene = Scene(CONFIGS[0], seed=23)
    query = scene.make_query(scene.add_context(100), select=Select.DENSE)
    result, source = match(scene, [query])
    assert not source.request_cycles
    assert result.output_cycles["o"][0] - result.input_cycles["i"][0] == 5


@pytest.mark.parametrize("bits, group, latency", [(32, 1, 2), (64, 1, 2), (64, 2, 3), (128, 8, 3),
                                                  (256, 8, 4)])
def test_lane_latency(bits, group, latency):
    assert match_lane_latency(bits, group) == latency
