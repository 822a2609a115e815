"""Bursts of runs, against golden; the proof is tests/formal/test_burst_splitter.py."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.streaming.copy import split
from hw.streaming.burst import BurstSplitter
from tests.hw.harness import run_stream_test
from tests.hw.streaming.copies import make_config

ADDRESS_BITS = 20


def expected(config, runs):
    bursts, width = [], config.bus_bytes
    for run in runs:
        pieces = list(split(run["address"], run["bytes"], config.burst_bytes))
        for index, (address, size) in enumerate(pieces):
            end = address + size - 1
            bursts.append({
                "address": address, "length": end // width - address // width,
                "tail": end % width, "is_empty": 0, "last": int(index == len(pieces) - 1),
                "context": run["context"]})
    return bursts


def random_runs(config, seed, count):
    """Runs that begin and end near boundaries, or anywhere."""
    rng = random.Random(seed)
    step = config.burst_bytes
    for index in range(count):
        address = rng.randrange(1 << (ADDRESS_BITS - 1))
        if rng.random() < 0.6:
            address = address // step * step + step + rng.choice([-1, 0, 1])
        size = rng.choice([
            1, rng.randrange(1, 3 * step), step, rng.randrange(1, 4) * step - address % step])
        yield {"address": address, "bytes": max(1, size), "context": index % 8}


@pytest.mark.parametrize("bus_bytes, burst_bytes", [(8, 8), (8, 2048), (16, 256), (64, 4096)])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_bursts(bus_bytes, burst_bytes, stall):
    config = make_config(bus_bytes, burst_bytes=burst_bytes, address_bits=ADDRESS_BITS)
    runs = list(random_runs(config, seed=burst_bytes, count=30))
    bursts = expected(config, runs)
    result = run_stream_test(
        BurstSplitter(config, context=3), feeds={"i": runs}, sinks={"o": len(bursts)},
        seed=bus_bytes, stall_probability=stall)
    assert result.outputs["o"] == bursts
    if not stall:
        # A cycle late, and no gap, not even between runs.
        first = result.input_cycles["i"][0] + 1
        assert result.output_cycles["o"] == list(range(first, first + len(bursts)))


def test_run_of_no_bytes():
    config = make_config()
    result = run_stream_test(
        BurstSplitter(config, context=3), seed=1, sinks={"o": 3},
        feeds={"i": [{"address": 16 * n, "bytes": 16 * (n != 1), "context": n} for n in range(3)]})
    assert [(burst["is_empty"], burst["last"], burst["context"])
            for burst in result.outputs["o"]] == [(0, 1, 0), (1, 1, 1), (0, 1, 2)]


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_cut(stall):
    """A run that is cut ends behind the burst that was taken; the next begins as always."""
    config = make_config()
    unit = BurstSplitter(config, context=3)
    long_run = {"address": 5, "bytes": 1 << 30, "context": 1}
    next_run = {"address": 100, "bytes": 200, "context": 2}

    async def cut_at_third(ctx):
        taken = 0
        while True:
            ctx.set(unit.cut, taken == 2)
            _, _, moved = await ctx.tick().sample(unit.o.valid & unit.o.ready)
            taken += moved

    bursts = expected(config, [{**long_run, "bytes": 3 * 256 - 5}, next_run])
    bursts[2]["last"] = 0
    result = run_stream_test(unit, feeds={"i": [long_run, next_run]}, sinks={"o": len(bursts) + 1},
                             seed=2, stall_probability=stall, testbenches=[cut_at_third])
    end = result.outputs["o"].pop(3)
    assert (end["is_empty"], end["last"], end["context"]) == (1, 1, 1)
    assert result.outputs["o"] == bursts


@given(st.integers(0, 1 << 40), st.integers(0, 20_000), st.integers(3, 12))
def test_golden_split(address, size, log2):
    """Once each, in order, and none across a boundary."""
    bursts = list(split(address, size, 1 << log2))
    assert [at for start, count in bursts for at in (start, start + count)] == (
        [address, *(at for start, _ in bursts[1:] for at in (start, start)), address + size]
        if bursts else [])
    assert all(count > 0 and start >> log2 == (start + count - 1) >> log2
               for start, count in bursts)
    assert sum(count for _, count in bursts) == size


def test_config_is_checked():
    with pytest.raises(TypeError, match="BurstSplitter config must be a StreamingConfig, not 8"):
        BurstSplitter(8)
