import pytest
from amaranth.lib import data

from hw.stream import BypassQueue
from tests.hw.harness import run_stream_test


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("depth", [2, 5])
def test_keeps_order(depth, stall):
    items = [{"tag": place % 16, "value": 1000 + place} for place in range(200)]
    layout = data.StructLayout({"tag": 4, "value": 12})
    for seed in range(4):
        result = run_stream_test(BypassQueue(layout, depth=depth), feeds={"i": items},
                                 sinks={"o": 200}, seed=seed, stall_probability=stall)
        assert result.outputs["o"] == items


def test_an_empty_queue_is_passed_within_the_cycle():
    result = run_stream_test(BypassQueue(8, depth=2), feeds={"i": range(20)}, sinks={"o": 20},
                             seed=0)
    assert result.input_cycles["i"] == list(range(20))
    assert result.output_cycles["o"] == list(range(20))


def test_holds_its_depth():
    dut = BypassQueue(8, depth=3)
    with pytest.raises(TimeoutError, match="i took 3 of 9"):
        run_stream_test(dut, feeds={"i": range(9)}, sinks={}, seed=0, timeout_cycles=30)


def test_bad_arguments():
    with pytest.raises(ValueError, match="BypassQueue depth must be at least 2, not 1"):
        BypassQueue(8, depth=1)
