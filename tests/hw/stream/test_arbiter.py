import pytest

from hw.stream import Arbiter
from tests.hw.harness import run_stream_test


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_arbiter_loses_nothing_and_keeps_each_order(count, stall):
    feeds = {f"i.{index}": [index << 8 | n for n in range(40)] for index in range(count)}
    dut = Arbiter(16, count=count)
    grants = []

    async def watch_grant(ctx):
        ticks = ctx.tick().sample(dut.grant, dut.o.payload, dut.o.valid, dut.o.ready)
        async for _, _, grant, payload, valid, ready in ticks:
            if valid and ready:
                grants.append((grant, payload))

    result = run_stream_test(dut, feeds=feeds, sinks={"o": 40 * count}, seed=count,
                             stall_probability=stall, testbenches=[watch_grant])
    for index in range(count):
        assert [v for v in result.outputs["o"] if v >> 8 == index] == feeds[f"i.{index}"]
    assert grants == [(payload >> 8, payload) for payload in result.outputs["o"]]


@pytest.mark.parametrize("count", [2, 3, 6])
def test_arbiter_is_fair_and_never_idle(count):
    feeds = {f"i.{index}": [index] * 10 for index in range(count)}
    result = run_stream_test(Arbiter(8, count=count), feeds=feeds, sinks={"o": 10 * count}, seed=0)
    assert result.outputs["o"] == list(range(count)) * 10
    assert result.output_cycles["o"] == list(range(10 * count))


def test_arbiter_gives_all_cycles_to_a_lone_input():
    result = run_stream_test(Arbiter(8, count=4), feeds={"i.2": range(30)}, sinks={"o": 30}, seed=0)
    assert result.output_cycles["o"] == list(range(30))


def test_arbiter_refuses_bad_arguments():
    with pytest.raises(ValueError, match="Arbiter count must be at least 1, not 0"):
        Arbiter(8, count=0)
