import pytest
from amaranth.lib import data

from hw.bus.beat_queue import BeatQueue
from tests.hw.harness import run_stream_test

LAYOUT = data.StructLayout({"data": 16, "closes": 1})


@pytest.mark.parametrize("depth", [7, 16])
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_keeps_order(depth, stall):
    items = [{"data": n, "closes": n & 1} for n in range(depth)]
    result = run_stream_test(BeatQueue(LAYOUT, depth=depth), feeds={"i": items},
                             sinks={"o": len(items)}, seed=depth, stall_probability=stall)
    assert result.outputs["o"] == items


def test_latency_and_throughput():
    result = run_stream_test(BeatQueue(8, depth=4), feeds={"i": range(50)}, sinks={"o": 50}, seed=0)
    assert result.outputs["o"] == list(range(50))
    assert result.input_cycles["i"] == list(range(50))
    assert result.output_cycles["o"] == list(range(2, 52))


def test_holds_its_depth():
    dut = BeatQueue(8, depth=5)

    async def open_late(ctx):
        await ctx.tick().repeat(10)
        ctx.set(dut.o.ready, 1)
        got = []
        while len(got) < 5:
            _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid:
                got.append(payload)
        assert got == list(range(5))
        done.append(True)

    done = []
    run_stream_test(dut, feeds={"i": range(5)}, sinks={}, seed=0, testbenches=[open_late],
                    quiet_cycles=30)
    assert done == [True]


def test_refuses_a_depth_of_one():
    with pytest.raises(ValueError, match="^BeatQueue depth must be at least 2, not 1$"):
        BeatQueue(8, depth=1)
