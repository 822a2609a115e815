import random

import pytest

from golden.memory.device import Load as GoldenLoad
from hw.memory.load import Load
from tests.hw.harness import run_testbench

LATENCY = 2


def run_load(counts, *, rises, falls, count_bits):
    """Levels of the unit for a count per cycle, beside those of the golden model."""
    dut = Load(count_bits=count_bits)
    seen = []

    async def bench(ctx):
        ctx.set(dut.rises, rises)
        ctx.set(dut.falls, falls)
        for count in [*counts, *[counts[-1]] * LATENCY]:
            ctx.set(dut.waiting, count)
            _, _, level = await ctx.tick().sample(dut.level)
            seen.append(level)

    run_testbench(dut, bench)
    golden = GoldenLoad(rises=tuple(rises), falls=tuple(falls))
    return seen[LATENCY:], [int(golden.update(count)) for count in counts], seen[:LATENCY]


def test_each_threshold_and_its_neighbours():
    rises, falls = (4, 8, 12), (2, 5, 10)
    near = [count + step for count in (*rises, *falls) for step in (-1, 0, 1)]
    counts = [count for start in (0, 15, *near) for end in near for count in (start, end)]
    levels, expected, before = run_load(counts, rises=rises, falls=falls, count_bits=4)
    assert levels == expected
    assert before == [0, 0]
    assert set(levels) == {0, 1, 2, 3}


def test_many_levels_at_once_and_hysteresis():
    levels, expected, _ = run_load([0, 15, 10, 9, 15, 0, 7, 8, 5, 4, 1],
                                   rises=(4, 8, 12), falls=(2, 5, 10), count_bits=4)
    assert levels == expected == [0, 3, 3, 2, 3, 0, 1, 2, 2, 1, 0]


def test_level_comes_two_cycles_after_the_count():
    dut = Load(count_bits=4)
    seen = []

    async def bench(ctx):
        ctx.set(dut.rises, [4, 8, 12])
        ctx.set(dut.falls, [2, 5, 10])
        for cycle in range(8):
            ctx.set(dut.waiting, 8 if cycle == 3 else 4)
            _, _, level = await ctx.tick().sample(dut.level)
            seen.append(level)

    run_testbench(dut, bench)
    assert seen == [0, 0, 1, 1, 1, 2, 1, 1]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.regress)
                                       for seed in range(2, 8))])
def test_at_random(seed):
    rng = random.Random(seed)
    for _ in range(4):
        rises = sorted(rng.sample(range(4, 256), 3))
        falls = sorted(rng.sample(range(1, rises[0]), 3)) if rng.random() < 0.5 else [
            rise - 1 for rise in rises]
        count, counts = 0, []
        for _ in range(300):
            count = (rng.randrange(256) if rng.random() < 0.1
                     else min(255, max(0, count + rng.randrange(-9, 10))))
            counts.append(count)
        levels, expected, _ = run_load(counts, rises=rises, falls=falls, count_bits=8)
        assert levels == expected


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), ("4", TypeError)])
def test_bad_parameter(value, error):
    with pytest.raises(error, match="Load count_bits must be"):
        Load(count_bits=value)
