import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from hw.attention.layouts import (
    Error,
    Kind,
    ResultKind,
    command_status,
    fetch_status,
    issued_query,
    selection_counts,
    state_beat,
)
from hw.attention.normaliser import Normaliser
from hw.attention.results import Results
from tests.hw.attention.packing import pack
from tests.hw.attention.reset import ResetMidway
from tests.hw.attention.rows import make_config, make_query
from tests.hw.attention.state_beats import output_words, state_words
from tests.hw.harness import run_stream_test

CONFIGS = [
    make_config(),
    make_config(group=4, query_slots=2, result_lanes=16),
    make_config(group=8, result_lanes=32, query_slots=8),
]


@dataclass
class Asked:
    """A query in flight: what it wants, what the heads deliver, and how it went."""

    tag: int
    slot: int
    heads: list
    logits_only: int = 0
    want_output: int = 1
    want_state: int = 0
    counts: dict = field(default_factory=dict)
    fetched: dict = field(default_factory=dict)

    @property
    def error(self):
        errors = [self.counts["error"], self.fetched["error"]]
        return next((error for error in errors if error != Error.NONE), Error.NONE)

    def beats(self, config):
        """The results up to the status, in order."""
        runs = []
        if self.logits_only:
            items = [head.logit_items(config)[:-1] for head in self.heads]
            for row in zip(*items, strict=True):
                runs += [(ResultKind.LOGIT, number, [logit_words(config, item)], 0)
                         for number, item in enumerate(row)]
        elif self.error == Error.NONE:
            for number, head in enumerate(self.heads):
                state = head.state(config)
                if self.want_state:
                    runs.append((ResultKind.STATE, number, state_words(config, state), 1))
                if self.want_output:
                    runs.append((ResultKind.OUTPUT, number, output_words(config, state), 1))
        return [{"kind": kind, "tag": self.tag, "head": number, "words": words,
                 "last": int(closes and place == len(run) - 1)}
                for kind, number, run, closes in runs for place, words in enumerate(run)]

    def status(self, config):
        saturated = any(head.logits(config).saturated.any() for head in self.heads)
        beats = self.counts["beats"] + self.fetched["beats"]
        first = self.error.value | int(saturated) << 4 | (beats << 8) % (1 << 32)
        return status_beat(config, self.tag, [
            first, self.counts["full"], self.counts["coarse"], self.counts["summaries"]])


def logit_words(config, item):
    words = [item["position"] | item["kind"].value << 30, item["logit"] % (1 << 32),
             item["weight"]]
    return words + [0] * (config.result_lanes - 3)


def status_beat(config, tag, words):
    return {"kind": ResultKind.STATUS, "tag": tag, "head": 0, "last": 1,
            "words": words + [0] * (config.result_lanes - len(words))}


def make_asked(config, rng, tag, **changes):
    """A query with its heads; all see the same rows, each with its own vector."""
    count = int(rng.integers(0, 5))
    heads = [make_query(rng, config, count, exponent=int(rng.choice([112, 124, 160])))
             for _ in range(config.group)]
    for head in heads:
        head.keys, head.values = heads[0].keys, heads[0].values
    asked = Asked(tag=tag, slot=tag % config.query_slots, heads=heads, **changes)
    for head in heads:
        head.logits_only = bool(asked.logits_only)
    asked.counts = {"error": Error.NONE, "beats": int(rng.integers(1 << 20)),
                    "full": int(rng.integers(1024)), "coarse": int(rng.integers(1024)),
                    "summaries": int(rng.integers(64))} | asked.counts
    asked.fetched = {"error": Error.NONE, "beats": int(rng.integers(1 << 23))} | asked.fetched
    return asked


def feeds_of(config, queries, statuses=()):
    names = ("tag", "slot", "logits_only", "want_output", "want_state")
    feeds = {
        "i_issued": [{name: getattr(query, name) for name in names} for query in queries],
        "i_counts": [query.counts for query in queries],
        "i_fetch": [query.fetched for query in queries],
        "i_status": list(statuses),
    }
    for head in range(config.group):
        feeds[f"i_state.{head}"] = [
            beat for query in queries if not query.logits_only
            for beat in query.heads[head].state_beats(config)]
        feeds[f"i_logit.{head}"] = [
            item for query in queries if query.logits_only
            for item in query.heads[head].logit_items(config)]
    return feeds


def run(config, queries, statuses=(), *, dut=None, **options):
    """Run queries and other commands' statuses, and compare; returns the result."""
    dut = dut or Results(config)
    closed = []

    async def watch(ctx):
        signals = (dut.done, dut.error, dut.idle, dut.o.valid, dut.o.ready, dut.o.payload)
        async for _, _, done, error, idle, valid, ready, beat in ctx.tick().sample(*signals):
            is_status = valid and ready and beat.kind == ResultKind.STATUS
            assert done == is_status
            assert not (idle and valid)
            if done:
                closed.append((beat.tag, error))

    expected = [beat for query in queries
                for beat in [*query.beats(config), query.status(config)]]
    result = run_stream_test(
        dut, feeds=feeds_of(config, queries, statuses),
        sinks={"o": len(expected) + len(statuses), "o_release": len(queries)},
        testbenches=[watch], **options)

    # Statuses of other commands, in their order, wherever a query is not under way.
    tags = {status["tag"] for status in statuses}
    beats = result.outputs["o"]
    others = [place for place, beat in enumerate(beats) if beat["tag"] in tags]
    assert [beats[place] for place in others] == [
        status_beat(config, status["tag"], [status["error"].value, status["length"]])
        for status in statuses]
    assert all(place == 0 or beats[place - 1]["kind"] == ResultKind.STATUS for place in others)
    assert [beat for beat in beats if beat["tag"] not in tags] == expected
    assert result.outputs["o_release"] == [query.slot for query in queries]
    errors = {query.tag: query.error for query in queries}
    errors |= {status["tag"]: status["error"] for status in statuses}
    assert len(closed) == len(errors)
    assert dict(closed) == errors
    return result


def random_queries(config, rng, count):
    queries = []
    for tag in range(count):
        fault = rng.random()
        changes = {"counts": {"error": Error.BUS}} if fault < 0.15 else {}
        if 0.1 < fault < 0.3:
            changes |= {"fetched": {"error": Error.WINDOW}}
        queries.append(make_asked(
            config, rng, tag, logits_only=int(rng.random() < 0.3),
            want_output=int(rng.integers(2)), want_state=int(rng.integers(2)), **changes))
    return queries


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"g{config.group}")
def test_any_queries_and_statuses_in_any_order(config, stall):
    rng = np.random.default_rng(config.group)
    queries = random_queries(config, rng, 14)
    assert {(query.logits_only, query.error == Error.NONE) for query in queries} >= {
        (0, True), (1, True), (0, False)}
    statuses = [{"tag": 1000 + number, "error": random.Random(number).choice(list(Error)),
                 "length": number * 31} for number in range(6)]
    run(config, queries, statuses, seed=8, stall_probability=stall)


@pytest.mark.parametrize("want_output", [0, 1])
@pytest.mark.parametrize("want_state", [0, 1])
def test_a_query_delivers_what_it_wants(want_output, want_state):
    config = make_config(group=4)
    rng = np.random.default_rng(3)
    queries = [make_asked(config, rng, tag, want_output=want_output, want_state=want_state)
               for tag in range(3)]
    result = run(config, queries, seed=1)
    kinds = {beat["kind"] for beat in result.outputs["o"]}
    assert (ResultKind.OUTPUT in kinds, ResultKind.STATE in kinds) == (want_output, want_state)


@pytest.mark.parametrize("where", ["counts", "fetched"])
@pytest.mark.parametrize("error", [Error.WINDOW, Error.BUS, Error.SHORT])
def test_a_failed_query_delivers_its_status_only(where, error):
    config = make_config(group=4, query_slots=2)
    rng = np.random.default_rng(6)
    queries = [make_asked(config, rng, tag, want_state=1,
                          **({where: {"error": error}} if tag % 2 else {})) for tag in range(4)]
    result = run(config, queries, seed=1, stall_probability=0.2)
    assert {beat["kind"] for beat in result.outputs["o"] if beat["tag"] % 2} == {ResultKind.STATUS}


def test_the_selection_s_error_comes_first():
    config = make_config()
    query = make_asked(config, np.random.default_rng(6), 1, counts={"error": Error.SHORT},
                       fetched={"error": Error.WINDOW})
    run(config, [query], seed=1)
    assert query.error == Error.SHORT


def test_a_status_waits_while_the_slot_before_it_is_not_taken():
    config = make_config()
    rng = np.random.default_rng(2)
    queries = [make_asked(config, rng, tag, want_output=0) for tag in range(3)]
    slots = []

    async def take_slots_late(ctx):
        ctx.set(dut.o_release.ready, 0)
        await ctx.tick().repeat(60)
        ctx.set(dut.o_release.ready, 1)
        async for _, _, valid, slot in ctx.tick().sample(
                dut.o_release.valid, dut.o_release.payload):
            if valid:
                slots.append(slot)

    dut = Results(config)
    result = run_stream_test(dut, feeds=feeds_of(config, queries), sinks={"o": 3}, seed=0,
                             testbenches=[take_slots_late])
    assert slots == [query.slot for query in queries]
    assert result.output_cycles["o"][0] < 60 < result.output_cycles["o"][1]


def test_cycles_of_a_query():
    config = make_config()
    beats = config.head_dim // config.result_lanes
    query = make_asked(config, np.random.default_rng(6), 1)
    result = run(config, [query], seed=1)
    state, out = result.input_cycles["i_state.0"], result.output_cycles["o"]
    first = state[0] + Normaliser(config).latency + 1
    assert out == list(range(first, first + beats + 1))  # the status among them
    assert result.output_cycles["o_release"] == [out[-1] + 1]


@pytest.mark.parametrize("group", [1, 4])
def test_cycles_of_logits_and_commands(group):
    config = make_config(group=group)
    rng = np.random.default_rng(5)
    query = make_asked(config, rng, 1, logits_only=1)
    rows = len(query.heads[0].keys)
    assert rows > 1
    result = run(config, [query], seed=1)
    # A cycle into the queue, one to look at it, a beat per row and head, ENDs, status.
    assert result.output_cycles["o"] == [
        *range(2, 2 + rows * group), 2 + rows * group + group]

    statuses = [{"tag": 7 + n, "error": Error.DATA, "length": 0} for n in range(3)]
    result = run(config, [], statuses, seed=1)
    assert result.output_cycles["o"] == [1, 3, 5]


@pytest.mark.parametrize("cycles", [2, 5, 26, 40])
@pytest.mark.parametrize("fault", [Error.NONE, Error.BUS])
def test_reset_in_the_middle_of_a_query(cycles, fault):
    config = make_config(group=2)
    rng = np.random.default_rng(cycles)
    first = make_asked(config, rng, 9, want_state=1, fetched={"error": fault})
    layouts = {"i_issued": issued_query(config), "i_counts": selection_counts(config),
               "i_fetch": fetch_status(config), "i_status": command_status(config)}
    layouts |= {f"i_state.{head}": state_beat(config) for head in range(2)}
    feeds = feeds_of(config, [first, first])
    # The second query's states never end.
    script = {path: [pack(layout, item) for item in feeds[path]][:12]
              for path, layout in layouts.items()}
    dut = ResetMidway(Results(config), script=script, cycles=cycles)
    queries = [make_asked(config, rng, tag, want_state=1) for tag in range(2)]
    run(config, queries, [{"tag": 50, "error": Error.OPCODE, "length": 0}], dut=dut, seed=1)


def test_every_kind_of_row_is_told_in_a_logit():
    config = make_config()
    rng = np.random.default_rng(0)
    queries = [make_asked(config, rng, tag, logits_only=1) for tag in range(8)]
    result = run(config, queries, seed=1)
    kinds = {beat["words"][0] >> 30 for beat in result.outputs["o"]
             if beat["kind"] == ResultKind.LOGIT}
    assert kinds == {Kind.FULL.value, Kind.COARSE.value, Kind.SUMMARY.value}


def test_bad_config():
    with pytest.raises(TypeError, match="Results config must be an AttentionConfig, not {}"):
        Results({})
