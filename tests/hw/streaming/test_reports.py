import random
from collections import Counter

import pytest

from hw.config import StreamingConfig
from hw.streaming.layouts import CopyError, Decision, Outcome, Reason
from hw.streaming.reports import MASK_BITS, Cause, JobEnd, ReportKind, Reports
from tests.hw.harness import run_stream_test

CONFIG = StreamingConfig(head_dim=64, bus_bytes=16)
FIRST_ID = 0xFFFFFFF0
ALL = (1 << MASK_BITS) - 1
PORTS = ("i_record", "i_frame", "i_copy", "i_job")


def random_source(rng, kind):
    """An item of a source, and the code and id that its report must have."""
    if kind == ReportKind.DECISION:
        decision, chunk = rng.choice(list(Decision)), rng.getrandbits(8)
        item = {"time": rng.getrandbits(32), "decision": decision, "chunk": chunk}
        is_stage = decision == Decision.STAGE
        return item, (decision.value, chunk if is_stage else (chunk + FIRST_ID) % (1 << 32))
    if kind == ReportKind.FRAME:
        outcome = rng.choice([Outcome.REFUSED, Outcome.REFUSED, Outcome.WINDOW, Outcome.WRITE])
        reason = (rng.choice([r for r in Reason if r != Reason.NONE])
                  if outcome == Outcome.REFUSED else Reason.NONE)
        item = {"chunk_id": rng.getrandbits(32), "reason": reason, "outcome": outcome}
        code = reason.value if outcome == Outcome.REFUSED else 16 + outcome.value
        return item, (code, item["chunk_id"])
    if kind == ReportKind.COPY:
        item = {"tag": rng.getrandbits(16), "error": rng.choice(list(CopyError))}
        return item, (item["error"].value, item["tag"])
    item = {"end": rng.choice(list(JobEnd)), "detail": rng.getrandbits(16)}
    return item, (item["end"].value, item["detail"])


def is_wanted(mask, kind, code):
    bit = code if kind == ReportKind.DECISION else 17 + kind.value
    return mask >> bit & 1


def causes_of(kind, code):
    if kind == ReportKind.DECISION:
        return {Decision.LOST.value: Cause.LOST, Decision.PRESENT.value: Cause.CHUNK}.get(
            code, Cause(0))
    if kind == ReportKind.COPY:
        return Cause.COPY if code == 0 else Cause.COPY | Cause.COPY_FAILED
    return {ReportKind.FRAME: Cause.FRAME, ReportKind.JOB: Cause.JOB}[kind]


def run(sources, *, mask, seed, stall, reading=True):
    """Feed the sources; check what comes out, the interrupts, and every count."""
    dut = Reports(CONFIG)
    counts, causes = {}, []

    async def keep_time(ctx):
        now = 1000
        while True:
            ctx.set(dut.now, now)
            _, _, raised = await ctx.tick().sample(dut.causes)
            if raised:
                causes.append(Cause(raised))
            now += 1

    async def read_counts(ctx):
        """All counts, again and again: the last round is that of the end."""
        while reading:
            for index in range(128):
                ctx.set(dut.event_index, index)
                _, _, counts[(index - 1) % 128] = await ctx.tick().sample(dut.event_count)

    wanted = {kind: [(code, identity) for _, (code, identity) in items
                     if is_wanted(mask, kind, code)] for kind, items in sources.items()}
    result = run_stream_test(
        dut, feeds={port: [item for item, _ in sources.get(kind, [])]
                    for port, kind in zip(PORTS, ReportKind, strict=True)},
        sinks={"o": sum(map(len, wanted.values()))}, seed=seed, stall_probability=stall,
        quiet_cycles=280, inputs={"mask": mask, "first_id": FIRST_ID},
        testbenches=[keep_time, read_counts])
    reports = result.outputs["o"]
    for kind, items in wanted.items():
        # Each kind keeps its order.
        assert [(report["code"], report["id"]) for report in reports
                if report["kind"] == kind] == items
    expected = Counter(kind.value << 5 | code
                       for kind, items in sources.items() for _, (code, _) in items)
    if reading:
        assert counts == {index: expected[index] for index in range(128)}
    raised = Counter(causes_of(kind, code) for kind, items in sources.items()
                     for _, (code, _) in items)
    del raised[Cause(0)]
    assert Counter(causes) == raised
    return result


def random_sources(rng, count):
    return {kind: [random_source(rng, kind) for _ in range(count)] for kind in ReportKind}


@pytest.mark.parametrize("stall", [
    0.3, *(pytest.param(stall, marks=pytest.mark.regress) for stall in (0.0, 0.8))])
@pytest.mark.parametrize("seed, mask", [(1, ALL), (2, 0), (3, None), (4, None)])
def test_every_report_is_counted_and_every_wanted_one_passed_on(stall, seed, mask):
    rng = random.Random(seed)
    mask = rng.getrandbits(MASK_BITS) if mask is None else mask
    run(random_sources(rng, 60), mask=mask, seed=seed, stall=stall)


@pytest.mark.parametrize("bit", range(MASK_BITS))
def test_each_bit_of_the_mask_stands_for_one_kind(bit):
    rng = random.Random(bit)
    everything = [({"time": 5, "decision": decision, "chunk": 1},
                   (decision.value, 1 if decision == Decision.STAGE else (1 + FIRST_ID)))
                  for decision in Decision]
    sources = {ReportKind.DECISION: everything,
               **{kind: [random_source(rng, kind)] for kind in list(ReportKind)[1:]}}
    reports = run(sources, mask=1 << bit, seed=1, stall=0, reading=False).outputs["o"]
    assert len(reports) == 1
    kind = ReportKind(max(0, bit - 17))
    assert reports[0]["kind"] == kind
    assert kind != ReportKind.DECISION or reports[0]["code"] == bit


def test_times():
    """Decisions bring their own time; the rest have that in which they are taken."""
    sources = random_sources(random.Random(5), 3)
    result = run(sources, mask=ALL, seed=1, stall=0)
    taken = {kind: list(result.input_cycles[port])
             for port, kind in zip(PORTS, ReportKind, strict=True)}
    assert sorted(sum(taken.values(), [])) == list(range(0, 24, 2))
    for report, cycle in zip(result.outputs["o"], result.output_cycles["o"], strict=True):
        came = taken[report["kind"]].pop(0)
        assert cycle == came + 1
        if report["kind"] == ReportKind.DECISION:
            item, _ = sources[ReportKind.DECISION].pop(0)
            assert report["time"] == item["time"]
        else:
            assert report["time"] == 1000 + came


@pytest.mark.parametrize("last", range(4, 10))
def test_clear(last):
    """What was taken up to the clear is not counted, what is taken later is."""
    dut = Reports(CONFIG)
    seen = []

    async def drive(ctx):
        ctx.set(dut.event_index, ReportKind.JOB.value << 5 | JobEnd.ABORTED.value)
        for cycle in range(30):
            ctx.set(dut.clear, cycle in (1, last - 1, last))
            _, _, count = await ctx.tick().sample(dut.event_count)
            seen.append(count)

    result = run_stream_test(
        dut, feeds={"i_job": [{"end": JobEnd.ABORTED, "detail": 0}] * 10}, seed=1,
        sinks={"o": 0}, quiet_cycles=30, testbenches=[drive])
    taken = result.input_cycles["i_job"]
    assert taken == list(range(0, 20, 2))
    counted = [cycle for cycle in taken if cycle > last]
    assert seen[last + 2:] == [sum(cycle + 4 <= now for cycle in counted)
                               for now in range(last + 2, 30)]


def test_a_clear_takes_every_count():
    """Also those that no report has touched since."""
    dut = Reports(CONFIG)
    counts = []

    async def drive(ctx):
        await ctx.tick().repeat(20)
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        for index in range(128):
            ctx.set(dut.event_index, index)
            await ctx.tick()
            counts.append(ctx.get(dut.event_count))

    rng = random.Random(2)
    run_stream_test(dut, feeds={"i_copy": [random_source(rng, ReportKind.COPY)[0]] * 10}, seed=1,
                    sinks={"o": 0}, quiet_cycles=200, testbenches=[drive])
    assert counts == [0] * 128


def test_bad_config():
    with pytest.raises(TypeError, match="Reports config must be a StreamingConfig, not 3"):
        Reports(3)
