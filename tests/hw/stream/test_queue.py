import random

import pytest
from amaranth.lib import data

from hw.stream import Queue, SkidBuffer
from tests.hw.harness import run_stream_test

LAYOUT = data.StructLayout({"tag": 4, "value": data.ArrayLayout(data.StructLayout({"x": 3}), 2)})


def make_items(seed, count):
    rng = random.Random(seed)
    return [{"tag": rng.randrange(16), "value": [{"x": rng.randrange(8)} for _ in range(2)]}
            for _ in range(count)]


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("stall", [0.2, 0.6])
def test_queue_keeps_order_under_stalls(depth, stall):
    items = make_items(depth, 200)
    result = run_stream_test(Queue(LAYOUT, depth=depth), feeds={"i": items}, sinks={"o": 200},
                             seed=depth, stall_probability=stall)
    assert result.outputs["o"] == items


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_queue_latency_and_throughput(depth):
    result = run_stream_test(Queue(16, depth=depth), feeds={"i": range(50)}, sinks={"o": 50},
                             seed=0)
    assert result.outputs["o"] == list(range(50))
    assert result.input_cycles["i"] == list(range(50))
    assert result.output_cycles["o"] == list(range(1, 51))


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_queue_holds_exactly_its_depth(depth):
    dut = Queue(16, depth=depth)
    levels = []

    async def watch_level(ctx):
        async for _, _, level in ctx.tick().sample(dut.level):
            levels.append(level)

    with pytest.raises(TimeoutError, match=f"i took {depth} of 20"):
        run_stream_test(dut, feeds={"i": range(20)}, sinks={}, seed=0, timeout_cycles=40,
                        testbenches=[watch_level])
    assert levels[:depth + 2] == [*range(depth + 1), depth]


def test_skid_buffer_keeps_order_under_stalls():
    items = make_items(0, 300)
    result = run_stream_test(SkidBuffer(LAYOUT), feeds={"i": items}, sinks={"o": 300},
                             seed=3, stall_probability=0.5)
    assert result.outputs["o"] == items


def test_skid_buffer_latency_and_throughput():
    result = run_stream_test(SkidBuffer(16), feeds={"i": range(50)}, sinks={"o": 50}, seed=0)
    assert result.input_cycles["i"] == list(range(50))
    assert result.output_cycles["o"] == list(range(1, 51))


def test_queue_refuses_bad_arguments():
    with pytest.raises(ValueError, match="Queue depth must be at least 1, not 0"):
        Queue(8, depth=0)
    with pytest.raises(TypeError, match="Queue depth must be an integer, not 2.0"):
        Queue(8, depth=2.0)
