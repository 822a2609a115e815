import pytest
from amaranth.hdl import signed

from hw.stream import Fork, Join
from tests.hw.harness import run_stream_test


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fork_gives_each_item_to_every_output(count):
    sinks = {f"o.{index}": 100 for index in range(count)}
    result = run_stream_test(Fork(8, count=count), feeds={"i": range(100)}, sinks=sinks,
                             seed=count, stall_probability=0.4)
    assert all(result.outputs[name] == list(range(100)) for name in sinks)


def test_fork_passes_one_item_per_cycle():
    result = run_stream_test(Fork(8, count=3), feeds={"i": range(20)},
                             sinks={"o.0": 20, "o.1": 20, "o.2": 20}, seed=0)
    assert all(cycles == list(range(20)) for cycles in result.output_cycles.values())


def test_fork_lets_a_fast_output_go_first():
    dut = Fork(8, count=2)
    with pytest.raises(TimeoutError, match=r"^after 20 cycles: i took 0 of 2, o.0 gave 1 of 2$"):
        run_stream_test(dut, feeds={"i": [1, 2]}, sinks={"o.0": 2}, seed=0, timeout_cycles=20)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_join_pairs_items_in_order(stall):
    weights = [n % 16 for n in range(100)]
    result = run_stream_test(Join({"row": signed(8), "weight": 4}),
                             feeds={"i_row": range(-50, 50), "i_weight": weights},
                             sinks={"o": 100}, seed=7, stall_probability=stall)
    assert result.outputs["o"] == [{"row": n - 50, "weight": n % 16} for n in range(100)]
    if stall == 0:
        assert result.output_cycles["o"] == list(range(100))


def test_bad_arguments():
    with pytest.raises(ValueError, match="Fork count must be at least 1, not 0"):
        Fork(8, count=0)
    with pytest.raises(TypeError, match="Join shapes must be a dict of names to shapes, not 8"):
        Join(8)
    with pytest.raises(ValueError, match="Join shapes must name at least one input, not {}"):
        Join({})
