import random

import pytest

from hw.attention.slots import SlotPool
from tests.hw.harness import run_stream_test


def test_every_slot_is_offered_once_and_in_each_cycle():
    for count in (2, 5, 8):
        result = run_stream_test(SlotPool(count=count), feeds={}, sinks={"o": count}, seed=0)
        assert result.outputs["o"] == list(range(count))
        assert result.output_cycles["o"] == list(range(1, count + 1))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_no_slot_is_held_twice(count):
    rng = random.Random(count)
    total, held, taken = 300, set(), []

    async def give_back(ctx):
        to_return = total - count
        async for _, _, valid, ready, number, back, freed in ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload, dut.i.valid, dut.i.payload):
            if back:
                held.remove(freed)
            if valid and ready:
                assert number not in held
                held.add(number)
                taken.append(number)
            chosen = rng.choice(sorted(held)) if held and to_return and rng.random() < 0.4 else None
            to_return -= chosen is not None
            ctx.set(dut.i.payload, chosen or 0)
            ctx.set(dut.i.valid, chosen is not None)

    dut = SlotPool(count=count)
    run_stream_test(dut, feeds={}, sinks={"o": total}, seed=1, stall_probability=0.3,
                    testbenches=[give_back])
    assert len(taken) == total
    assert set(taken) == set(range(count))


def test_a_slot_is_offered_two_cycles_after_its_return():
    offers = []

    async def testbench(ctx):
        for _ in range(4):
            ctx.set(dut.o.ready, 1)
            await ctx.tick()
        assert not ctx.get(dut.o.valid)
        ctx.set(dut.i.payload, 1)
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        for _ in range(3):
            offers.append((ctx.get(dut.o.valid), ctx.get(dut.o.payload)))
            await ctx.tick()

    dut = SlotPool(count=2)
    run_stream_test(dut, feeds={}, sinks={}, seed=0, testbenches=[testbench])
    assert [valid for valid, _ in offers] == [0, 1, 0]
    assert offers[1] == (1, 1)


def test_bad_count():
    with pytest.raises(ValueError, match="SlotPool count must be at least 2, not 1"):
        SlotPool(count=1)
    with pytest.raises(TypeError, match="SlotPool count must be an integer, not 2.0"):
        SlotPool(count=2.0)
