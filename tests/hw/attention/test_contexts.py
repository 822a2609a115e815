import random

import pytest

from hw.attention.contexts import ContextFault, ContextTable
from tests.hw.attention.rows import make_config
from tests.hw.harness import run_stream_test

CONFIG = make_config(lanes=4, contexts=5, table_pages=96, resident_tokens=512, encoder_sets=3)
STREAMED = make_config(code_source="streamed", contexts=1, table_pages=64)
ROW = CONFIG.row_bytes
ALIGNED = ("key_base", "key_page_stride", "key_row_stride", "value_base", "value_page_stride",
           "value_row_stride", "summary_base", "summary_page_stride")


def make_entry(**changes):
    entry = {name: ROW * (3 + number) for number, name in enumerate(ALIGNED)}
    return entry | {"length": 17, "capacity": 256, "code_line": 64, "table_base": 80,
                    "key_limit": 12345, "value_limit": 23456, "summary_limit": 34567,
                    "weight_set": 2} | changes


def write(index, *, valid=1, truncated=0, **changes):
    return {"index": index, "valid": valid, "truncated": truncated,
            "entry": make_entry(**changes)}


class Bench:
    """A context table driven operation by operation; each waits for its outcome."""

    def __init__(self, ctx, dut):
        self.ctx = ctx
        self.dut = dut

    async def write(self, **item):
        """Returns the fault, whether it was told as rejected, and the cycles it took."""
        ctx, port = self.ctx, self.dut.i_write
        ctx.set(port.payload, item)
        ctx.set(port.valid, 1)
        cycles = 1
        while not ctx.get(port.ready):
            await ctx.tick()
            cycles += 1
        await ctx.tick()
        ctx.set(port.valid, 0)
        rejected = ctx.get(self.dut.rejected)
        fault = ContextFault(ctx.get(self.dut.fault))
        await ctx.tick()
        assert not ctx.get(self.dut.rejected)
        return fault, rejected, cycles

    async def look_up(self, index):
        """Returns the view, and the cycles it took."""
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.i_lookup.payload, index)
        ctx.set(dut.i_lookup.valid, 1)
        assert ctx.get(dut.i_lookup.ready)
        await ctx.tick()
        ctx.set(dut.i_lookup.valid, 0)
        cycles = 1
        while not ctx.get(dut.o_view.valid):
            await ctx.tick()
            cycles += 1
        view = ctx.get(dut.o_view.payload)
        ctx.set(dut.o_view.ready, 1)
        await ctx.tick()
        ctx.set(dut.o_view.ready, 0)
        return view, cycles

    async def lengthen(self, index, length):
        ctx, port = self.ctx, self.dut.i_length
        ctx.set(port.payload, {"index": index, "length": length})
        ctx.set(port.valid, 1)
        assert ctx.get(port.ready)
        await ctx.tick()
        ctx.set(port.valid, 0)

    async def shown_length(self, index):
        self.ctx.set(self.dut.length_index, index)
        await self.ctx.tick()
        return self.ctx.get(self.dut.length_valid), self.ctx.get(self.dut.length)


def run(operations, config=CONFIG):
    """Run a coroutine function on a `Bench`, to its end."""
    finished = []

    async def testbench(ctx):
        await operations(Bench(ctx, dut))
        finished.append(True)

    dut = ContextTable(config)
    run_stream_test(dut, feeds={}, sinks={}, seed=0, quiet_cycles=400, testbenches=[testbench])
    assert finished == [True]


def same(view, entry):
    return all(view.entry[name] == value for name, value in entry.items())


def test_what_was_entered_is_found():
    async def operations(bench):
        for index in range(CONFIG.contexts):
            view, cycles = await bench.look_up(index)
            assert (view.valid, cycles) == (0, 1)
            assert await bench.shown_length(index) == (0, 0)
            assert await bench.write(**write(index, length=index)) == (ContextFault.NONE, 0, 2)
        for index in range(CONFIG.contexts):
            view, cycles = await bench.look_up(index)
            assert (view.valid, cycles) == (1, 1)
            assert same(view, make_entry(length=index))
            assert await bench.shown_length(index) == (1, index)
        await bench.write(**write(3, valid=0, capacity=0))
        assert not (await bench.look_up(3))[0].valid
        assert (await bench.look_up(4))[0].valid

    run(operations)


@pytest.mark.parametrize(("fault", "item"), [
    (ContextFault.INDEX, write(5)),
    (ContextFault.INDEX, write(8)),
    (ContextFault.INDEX, write(0xFFFF, capacity=0)),
    *((ContextFault.ALIGNMENT, write(0, **{name: 5 * ROW + step}))
      for name in ALIGNED for step in (1, ROW // 2)),
    (ContextFault.CAPACITY, write(0, capacity=0, length=0)),
    (ContextFault.CAPACITY, write(0, capacity=1025)),
    (ContextFault.CAPACITY, write(0, length=257)),
    (ContextFault.CODES, write(0, code_line=65)),
    (ContextFault.CODES, write(0, code_line=68)),
    (ContextFault.CODES, write(0, code_line=0xFFFFFFC0)),
    (ContextFault.CODES, write(0, code_line=0x40000000, capacity=513)),
    (ContextFault.WEIGHTS, write(0, weight_set=3)),
    (ContextFault.TABLE, write(0, table_base=81)),
    (ContextFault.TABLE, write(0, table_base=255)),
    (ContextFault.WIDTH, write(0, truncated=1)),
])
def test_a_bad_entry_is_refused_and_its_context_invalid(fault, item):
    async def operations(bench):
        assert await bench.write(**write(0)) == (ContextFault.NONE, 0, 2)
        assert await bench.write(**item) == (fault, 1, 2)
        # The entry that was there is gone; no other is touched.
        assert (await bench.look_up(0))[0].valid == (item["index"] != 0)
        assert not (await bench.look_up(item["index"]))[0].valid
        assert await bench.write(**write(1)) == (ContextFault.NONE, 0, 2)
        assert (await bench.look_up(1))[0].valid

    run(operations)


@pytest.mark.parametrize("item", [
    write(0, capacity=512, code_line=0, table_base=64),
    write(0, capacity=256, length=256, code_line=64, table_base=80),
    write(0, capacity=1, length=0, code_line=124, table_base=95),
    write(0, capacity=17, code_line=0, table_base=94),
])
def test_entries_at_the_limits_are_accepted(item):
    async def operations(bench):
        assert await bench.write(**item) == (ContextFault.NONE, 0, 2)
        assert same((await bench.look_up(0))[0], item["entry"])

    run(operations)


def test_streamed_codes_have_an_aligned_address_and_no_lines():
    good = write(0, capacity=1024, code_line=0xFFFFFFFF, table_base=0, weight_set=0,
                 code_address=16 * 7)

    async def operations(bench):
        assert (await bench.write(**good))[0] == ContextFault.NONE
        assert (await bench.look_up(0))[0].valid
        bad = good | {"entry": good["entry"] | {"code_address": 16 * 7 + 8}}
        assert (await bench.write(**bad))[0] == ContextFault.ALIGNMENT
        assert (await bench.write(**good | {"index": 1}))[0] == ContextFault.INDEX

    run(operations, STREAMED)


def test_forgetting_a_context_above_the_table_does_nothing():
    async def operations(bench):
        await bench.write(**write(0))
        assert await bench.write(**write(8, valid=0)) == (ContextFault.NONE, 0, 2)
        assert (await bench.look_up(0))[0].valid

    run(operations)


def test_an_append_lengthens_its_context_alone():
    async def operations(bench):
        for index in range(3):
            await bench.write(**write(index))
        await bench.look_up(1)
        await bench.lengthen(1, 99)
        for index, length in enumerate([17, 99, 17]):
            assert same((await bench.look_up(index))[0], make_entry(length=length))
            assert await bench.shown_length(index) == (1, length)

    run(operations)


@pytest.mark.parametrize("valid", [0, 1])
@pytest.mark.parametrize("together", [False, True])
def test_a_length_of_an_entry_that_is_gone_is_dropped(valid, together):
    async def operations(bench):
        ctx, dut = bench.ctx, bench.dut
        await bench.write(**write(1))
        item = write(1, valid=valid, capacity=20, length=5)
        if together:
            # The write is taken in the cycle of the lookup, which still sees the entry before it.
            ctx.set(dut.i_write.payload, item)
            ctx.set(dut.i_write.valid, 1)
            await ctx.tick()
            assert ctx.get(dut.i_write.ready)
            ctx.set(dut.i_lookup.payload, 1)
            ctx.set(dut.i_lookup.valid, 1)
            await ctx.tick()
            ctx.set(dut.i_write.valid, 0)
            ctx.set(dut.i_lookup.valid, 0)
            view = ctx.get(dut.o_view.payload)
            assert view.valid
            assert same(view, make_entry())
            ctx.set(dut.o_view.ready, 1)
            await ctx.tick()
            ctx.set(dut.o_view.ready, 0)
        else:
            await bench.look_up(1)
            await bench.write(**write(0))  # another context's entry is no reason
            await bench.write(**item)
        await bench.lengthen(1, 99)
        assert await bench.shown_length(1) == ((1, 5) if valid else (0, 0))
        # It holds for that lookup only.
        await bench.write(**item)
        await bench.look_up(1)
        await bench.lengthen(1, 7)
        assert await bench.shown_length(1) == ((1, 7) if valid else (0, 0))

    run(operations)


def test_a_length_goes_before_a_write():
    async def operations(bench):
        ctx, dut = bench.ctx, bench.dut
        await bench.write(**write(2))
        await bench.look_up(2)
        ctx.set(dut.i_write.payload, write(1, length=4))
        ctx.set(dut.i_write.valid, 1)
        await ctx.tick()
        ctx.set(dut.i_length.payload, {"index": 2, "length": 50})
        ctx.set(dut.i_length.valid, 1)
        assert not ctx.get(dut.i_write.ready)
        await ctx.tick()
        ctx.set(dut.i_length.valid, 0)
        assert ctx.get(dut.i_write.ready)
        await ctx.tick()
        ctx.set(dut.i_write.valid, 0)
        assert await bench.shown_length(1) == (1, 4)
        assert await bench.shown_length(2) == (1, 50)

    run(operations)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_lookups_under_stalls_and_their_throughput(stall):
    rng = random.Random(7)
    writes = [write(index, length=rng.randrange(257)) for index in range(CONFIG.contexts)]
    lookups = [rng.choice([0, 1, 2, 3, 4, 7, 0xFFFF]) for _ in range(60)]
    started = []

    async def enter(ctx):
        bench = Bench(ctx, dut)
        for item in writes:
            await bench.write(**item)
        started.append(True)

    dut = ContextTable(CONFIG)
    # Lookups of an empty table first, which cover the cycles of the writes.
    empty = [0xFFFF] * 40
    result = run_stream_test(dut, feeds={"i_lookup": empty + lookups}, sinks={"o_view": 100},
                             seed=3, stall_probability=stall, testbenches=[enter])
    assert started
    for index, view in zip(lookups, result.outputs["o_view"][40:], strict=True):
        assert view["valid"] == (index < CONFIG.contexts)
        if view["valid"]:
            entry = writes[index]["entry"]
            assert {name: view["entry"][name] for name in entry} == entry
    if not stall:
        assert result.input_cycles["i_lookup"] == list(range(0, 200, 2))
        assert result.output_cycles["o_view"] == list(range(1, 201, 2))


def test_bad_config():
    with pytest.raises(TypeError, match="ContextTable config must be an AttentionConfig, not 4"):
        ContextTable(4)
