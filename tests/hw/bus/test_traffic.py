import random

import pytest

from hw.bus.traffic import Traffic
from tests.hw.harness import run_stream_test

INPUTS = ("ar_asked", "ar_moved", "r_moved", "r_last", "aw_asked", "aw_moved", "w_moved", "b_moved")


def run(cycles, *, seed=0):
    """The outputs in each of a list of cycles, which name the inputs that are high."""
    shown = []

    async def testbench(ctx):
        for high in cycles:
            for name in INPUTS:
                ctx.set(getattr(dut, name), name in high)
            await ctx.delay(0)
            shown.append((ctx.get(dut.beat_read), ctx.get(dut.beat_written), ctx.get(dut.held)))
            await ctx.tick()

    dut = Traffic()
    run_stream_test(dut, feeds={}, sinks={}, seed=seed, quiet_cycles=len(cycles) + 2,
                    testbenches=[testbench])
    assert len(shown) == len(cycles)
    return shown


def held(cycles):
    return [is_held for _, _, is_held in run(cycles)]


def test_nothing_is_held_while_nothing_was_asked():
    assert held([set()] * 4) == [0] * 4


def test_a_request_that_is_not_taken_is_held():
    for channel in ("ar", "aw"):
        asked = {f"{channel}_asked"}
        assert held([asked, asked, asked | {f"{channel}_moved"}]) == [1, 1, 0]


def test_a_read_is_outstanding_until_its_last_beat():
    request, beat, last = {"ar_asked", "ar_moved"}, {"r_moved"}, {"r_moved", "r_last"}
    assert held([request, set(), beat, set(), last, set()]) == [0, 1, 0, 1, 0, 0]


def test_a_write_is_outstanding_until_its_response():
    request, beat, response = {"aw_asked", "aw_moved"}, {"w_moved"}, {"b_moved"}
    assert held([request, set(), beat, set(), response, set()]) == [0, 1, 0, 1, 0, 0]


def test_a_burst_that_ends_as_another_begins():
    request, last = {"ar_asked", "ar_moved"}, {"r_moved", "r_last"}
    assert held([request, request | last, set(), last, set()]) == [0, 0, 1, 0, 0]


def test_many_bursts_outstanding():
    request, last = {"ar_asked", "ar_moved"}, {"r_moved", "r_last"}
    assert held([request] * 300 + [last] * 299 + [set(), last, set()])[-3:] == [1, 0, 0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_traffic(seed):
    """Against a list of the bursts on their way."""
    rng = random.Random(seed)
    reads, writes = [], []  # beats left of each, in any order
    cycles, wanted = [], []
    for _ in range(600):
        high, is_outstanding = set(), bool(reads or writes)
        for channel, bursts in (("ar", reads), ("aw", writes)):
            if rng.random() < 0.2:
                high.add(f"{channel}_asked")
                if rng.random() < 0.5:
                    high.add(f"{channel}_moved")
                    bursts.append(rng.randrange(1, 5) if channel == "ar" else 0)
        started = "ar_moved" in high, "aw_moved" in high
        old_reads, old_writes = len(reads) - started[0], len(writes) - started[1]
        if old_reads and rng.random() < 0.5:
            place = rng.randrange(old_reads)
            reads[place] -= 1
            high |= {"r_moved"} | ({"r_last"} if not reads[place] else set())
            if not reads[place]:
                reads.pop(place)
        elif rng.random() < 0.1:
            high.add("r_last")  # means nothing without a beat
        if rng.random() < 0.2:
            high.add("w_moved")
        if old_writes and rng.random() < 0.3:
            writes.pop(0)
            high.add("b_moved")
        is_asked = is_outstanding or bool(high & {"ar_asked", "aw_asked"})
        moved = {name for name in high if name.endswith("_moved")}
        cycles.append(high)
        wanted.append((int("r_moved" in high), int("w_moved" in high),
                       int(is_asked and not moved)))
    assert run(cycles, seed=seed) == wanted
    assert {True, False} == {bool(is_held) for _, _, is_held in wanted}
