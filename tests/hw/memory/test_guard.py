"""Every request is judged as the golden guard does; refusals are counted and the first logged."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from golden.memory import windows as golden
from hw.config import MemoryConfig
from hw.memory.guard import Guard, Refusal
from tests.hw.harness import run_stream_test, run_testbench

FULL = golden.Window(context=255, base=0, size=1 << 52)


def make_windows(rng, count):
    return [golden.Window(context=rng.randrange(3), base=64 * rng.randrange(40),
                          size=64 * rng.randint(1, 20), writable=rng.random() < 0.5)
            for _ in range(count)]


def run(windows, requests, *, count=8, stall=0.0, seed=1, clears=()):
    """Judge (line, context, write) and compare with the golden guard; clear in these cycles."""
    table = [{"valid": 1, "context": window.context, "first": window.base // 64,
              "last": (window.base + window.size) // 64 - 1, "writable": window.writable}
             for window in windows]
    table += [{"valid": 0, "last": (1 << 46) - 1, "writable": 1}] * (count - len(table))
    dut = Guard(MemoryConfig(windows=count), 8)
    pulses, log, cycle = 0, None, 0

    async def watch(ctx):
        nonlocal pulses, log, cycle
        while True:
            ctx.set(dut.clear, cycle in clears)
            _, _, refused, is_logged, logged = await ctx.tick().sample(
                dut.refused, dut.is_logged, dut.logged)
            pulses += refused
            log = (logged.reason.value, logged.context, logged.line,
                   bool(logged.write)) if is_logged else None
            cycle += 1

    items = [{"line": line, "context": context, "write": write, "payload": k & 255}
             for k, (line, context, write) in enumerate(requests)]
    result = run_stream_test(dut, feeds={"i": items}, sinks={"o": len(items)}, seed=seed,
                             stall_probability=stall, inputs={"table": table}, testbenches=[watch])
    model = golden.Guard(windows)
    cleared = sorted(clears)
    for item, found, at in zip(items, result.outputs["o"], result.output_cycles["o"], strict=True):
        while cleared and cleared[0] <= at:
            model.first = None
            cleared.pop(0)
        reason = model.check(item["context"], item["line"] * 64, write=bool(item["write"]))
        assert found == {**item, "reason": Refusal(int(reason))}
    assert pulses == model.count
    first = model.first if not cleared else None
    assert log == (first and (int(first.reason), first.context, first.address // 64, first.write))
    return result


def make_requests(rng, count):
    return [(rng.randrange(64), rng.randrange(4), rng.randrange(2)) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 8, 32])
def test_requests_at_random(count):
    rng = random.Random(count)
    run(make_windows(rng, count), make_requests(rng, 200), count=count)


def test_edges_and_the_first_window_decides():
    windows = [golden.Window(context=1, base=640, size=64, writable=False),
               golden.Window(context=1, base=576, size=192), FULL]
    requests = [(line, context, write) for line in (8, 9, 10, 11, 12, (1 << 46) - 1)
                for context in (1, 2, 255) for write in (0, 1)]
    run(windows, requests)


def test_cycles():
    result = run([FULL], [(line, 255, 1) for line in range(40)])
    assert result.input_cycles["i"] == list(range(40))
    assert result.output_cycles["o"] == [cycle + 5 for cycle in range(40)]


@pytest.mark.parametrize("clears", [{20}, {20, 21, 60}, {58}])
def test_log_is_cleared(clears):
    """Also in the cycle of a refused request, which is then the first."""
    run([], [(line, 3, line & 1) for line in range(45)], clears=clears)


@pytest.mark.parametrize("seed", range(2))
def test_stalls(seed):
    rng = random.Random(seed)
    run(make_windows(rng, 8), make_requests(rng, 150), stall=0.5, seed=seed)


def test_reset_in_mid_stream_leaves_nothing():
    """Also what was about to be logged."""
    dut, reset = Guard(MemoryConfig(windows=1), 8), Signal()
    left = []

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload.payload, 1)
        await ctx.tick().repeat(12)
        assert ctx.get(dut.o.valid)
        assert not ctx.get(dut.i.ready)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(dut.o.ready, 1)
        for cycle in range(20):
            ctx.set(dut.i.valid, cycle == 3)
            ctx.set(dut.i.payload.payload, 2)
            _, _, valid, found, pulse, is_logged = await ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.refused, dut.is_logged)
            if valid:
                left.append((cycle, found.payload, found.reason))
            assert pulse == (cycle == 9)
            assert is_logged == (cycle >= 9)

    run_testbench(ResetInserter(reset)(dut), bench)
    assert left == [(8, 2, Refusal.OUTSIDE)]


def test_reasons_are_those_of_golden():
    assert {each.name: each.value for each in Refusal} == {
        each.name: each.value for each in golden.Refusal}


def test_config_must_be_one():
    with pytest.raises(TypeError, match="Guard config must be a MemoryConfig, not 3"):
        Guard(3, 1)
