import random

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.attention.histogram import Histogram
from tests.retrieval_scenes import config_name, make_config

CONFIGS = [
    make_config(lanes=4),
    make_config(lanes=16, group=3, bins_per_cycle=4),
    make_config(lanes=32, bins_per_cycle=1),
    make_config(lanes=64, code_bits=64, bins_per_cycle=32),
]


def make_lines(config, rng, count):
    """Lines as (valid, distances, counted)."""
    centre = rng.randrange(config.distance_bins)
    near = [rng.choice([centre, rng.randrange(config.distance_bins)]) for _ in range(6)]
    return [(rng.random() < 0.8, [rng.choice(near) for _ in range(config.lanes)],
             rng.getrandbits(config.lanes)) for _ in range(count)]


def count_tokens(config, lines):
    counted = [distance for valid, distances, mask in lines if valid
               for lane, distance in enumerate(distances) if mask >> lane & 1]
    return np.bincount(counted, minlength=config.distance_bins).tolist()


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
def test_counts_and_clears(config):
    rng = random.Random(config.lanes)
    unit = Histogram(config)
    latency = 3 if config.lanes >= 32 else 2
    # Two runs: the second finds the bins cleared by the reading of the first.
    runs = [make_lines(config, rng, 12) for _ in range(2)]
    found = []

    async def bench(ctx):
        for lines in runs:
            for valid, distances, counted in lines:
                ctx.set(unit.i.valid, valid)
                ctx.set(unit.i.payload, {"distances": distances, "counted": counted})
                await ctx.tick()
            # The last line is in the bins exactly `latency` cycles after it was given.
            ctx.set(unit.i.valid, 0)
            for _ in range(latency - 1):
                await ctx.tick()
            ctx.set(unit.shift, 1)
            bins = []
            for _ in range(unit.chunks):
                bins += [ctx.get(unit.bins[place]) for place in range(config.bins_per_cycle)]
                await ctx.tick()
            ctx.set(unit.shift, 0)
            found.append(bins)

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for bins, lines in zip(found, runs, strict=True):
        expected = count_tokens(config, lines)
        assert bins == expected + [0] * (len(bins) - len(expected))


def test_counts_a_full_context_in_one_bin():
    config = make_config(lanes=64, max_tokens=256)
    unit = Histogram(config)

    async def bench(ctx):
        ctx.set(unit.i.valid, 1)
        ctx.set(unit.i.payload, {"distances": [0] * 64, "counted": (1 << 64) - 1})
        for _ in range(4):
            await ctx.tick()
        ctx.set(unit.i.valid, 0)
        for _ in range(2):
            await ctx.tick()
        assert ctx.get(unit.bins[0]) == 256

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("bins_per_cycle, chunks", [(1, 33), (8, 5), (32, 2), (64, 1)])
def test_chunks(bins_per_cycle, chunks):
    assert Histogram(make_config(bins_per_cycle=bins_per_cycle)).chunks == chunks
