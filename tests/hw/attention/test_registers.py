import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.attention.contexts import ContextFault, ContextTable
from hw.attention.layouts import Error, context_entry
from hw.attention.register_map import COUNTERS, ENTRY_FIELDS, REGISTERS, address_of
from hw.attention.registers import Registers
from tests.hw.attention.rows import make_config
from tests.hw.harness import run_stream_test
from tests.hw.register_bus import OKAY, SLVERR, Bus

CONFIG = make_config(contexts=5, table_pages=300, address_bits=40)
HOLES = [address for address in range(0, 0x1000, 4)
         if address not in {register.address for register in REGISTERS}]


def run(operations, *, unit=Registers, seed=None):
    """Run a coroutine function on a `Bus` to its end; with a seed, the bus pauses at random."""
    finished = []

    async def testbench(ctx):
        for port in (dut.o_table, dut.o_context):
            ctx.set(port.ready, 1)
        await operations(Bus(
            ctx, dut, address_of, random.Random(seed) if seed is not None else None))
        finished.append(True)

    dut = unit(CONFIG)
    run_stream_test(dut, feeds={}, sinks={}, seed=seed or 0, quiet_cycles=3_000,
                    testbenches=[testbench])
    assert finished == [True]


def test_identity_and_sizes():
    async def operations(bus):
        expected = {"id": 0x4B565341, "version": 0x10000, "head_dim": 32, "code_bits": 64,
                    "lanes": 16, "max_tokens": 1024, "group": 1, "contexts": 5}
        for name, value in expected.items():
            assert await bus.read(name) == value

    run(operations, seed=1)


@pytest.mark.parametrize("seed", [None, 2])
def test_what_was_written_is_read(seed):
    rng = random.Random(3)
    words = {r.name: rng.getrandbits(32) for r in REGISTERS if r.access == "rw"}

    async def operations(bus):
        for name in words:
            assert await bus.read(name) == 0
        for name, word in words.items():
            await bus.write(name, word)
        for name, word in words.items():
            assert await bus.read(name) == word

    run(operations, seed=seed)


def test_refused_accesses_change_nothing():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        await bus.write("table_index", 300)
        await bus.write("context_index", 0x1234)
        ctx.set(dut.o_table.ready, 0)
        ctx.set(dut.o_context.ready, 0)
        for register in REGISTERS:
            if register.access == "ro":
                assert await bus.write_at(register.address, 1) == SLVERR
            if register.access == "wo":
                assert await bus.read_at(register.address) == (SLVERR, 0)
        for address in HOLES[::37]:
            assert await bus.write_at(address, 1) == SLVERR
            assert await bus.read_at(address) == (SLVERR, 0)
        for name in ("context_index", "context_enter", "table_page", "counter_clear"):
            for strobes in (0, 0x1, 0x7, 0xE):
                assert await bus.write_at(address_of(name), 1, strobes) == SLVERR
            for step in (1, 2, 3):
                assert await bus.write_at(address_of(name) + step, 1) == SLVERR
        assert (await bus.read_at(address_of("context_index") + 2))[0] == SLVERR
        # An entry above the block table; then a page number that its field cannot hold.
        assert await bus.write_at(address_of("table_page"), 5) == SLVERR
        await bus.write("table_index", 299)
        assert await bus.write_at(address_of("table_page"), 1 << 24) == SLVERR
        assert await bus.read("table_index") == 299
        assert await bus.read("context_index") == 0x1234
        assert not ctx.get(dut.o_table.valid)
        assert not ctx.get(dut.o_context.valid)

    run(operations)


def test_no_counter_is_cleared_by_a_refused_write():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        cleared = []

        async def write(word, strobes):
            """A write, with ``counter_clear`` watched in the cycle in which it is accepted."""
            ctx.set(dut.bus.aw.payload, {"addr": address_of("counter_clear")})
            ctx.set(dut.bus.w.payload, {"data": word, "strb": strobes})
            ctx.set(dut.bus.aw.valid, 1)
            ctx.set(dut.bus.w.valid, 1)
            cleared.append(ctx.get(dut.counter_clear))
            await ctx.tick()
            ctx.set(dut.bus.aw.valid, 0)
            ctx.set(dut.bus.w.valid, 0)
            assert not ctx.get(dut.counter_clear)
            await bus.receive(dut.bus.b)

        for word, strobes in [(1, 0xF), (0, 0xF), (1, 0x1), (3, 0xF)]:
            await write(word, strobes)
        assert cleared == [1, 0, 0, 1]

    run(operations)


@pytest.mark.parametrize("late", ["aw", "w"])
def test_a_write_waits_for_its_other_channel(late):
    async def operations(bus):
        assert await bus.write_at(address_of("context_index"), 77, late=late) == OKAY
        assert await bus.read("context_index") == 77

    run(operations)


def test_cycles_of_accesses():
    async def operations(bus):
        ctx, port = bus.ctx, bus.dut.bus
        ctx.set(port.aw.payload, {"addr": address_of("context_index")})
        ctx.set(port.w.payload, {"data": 9, "strb": 0xF})
        ctx.set(port.ar.payload, {"addr": address_of("context_index")})
        for channel in (port.aw, port.w, port.ar):
            ctx.set(channel.valid, 1)
        ctx.set(port.b.ready, 1)
        ctx.set(port.r.ready, 1)
        taken = []
        for _ in range(12):
            _, _, *values = await ctx.tick().sample(
                port.w.ready, port.b.valid, port.ar.ready, port.r.valid, port.r.payload.data)
            taken.append(values)
        write_cycles, answers, reads, words = (
            [cycle for cycle, row in enumerate(taken) if row[place]] for place in range(4))
        # Both directions at once: a write per 2 cycles, a read per 3.
        assert write_cycles == [0, 2, 4, 6, 8, 10]
        assert answers == [1, 3, 5, 7, 9, 11]
        assert reads == [0, 3, 6, 9]
        assert words == [2, 5, 8, 11]
        assert taken[2][4] == 9  # the write of cycle 0 is seen by the read of that cycle

    run(operations)


def test_reads_and_writes_at_once_do_not_disturb_each_other():
    rng = random.Random(11)
    names = [r.name for r in REGISTERS if r.access == "rw"]

    async def operations(bus):
        port = bus.dut.bus
        contents = dict.fromkeys(names, 0)
        for _ in range(60):
            written, read = rng.sample(names, 2)
            word = rng.getrandbits(32)
            await bus.pause()
            bus.ctx.set(port.ar.payload, {"addr": address_of(read)})
            bus.ctx.set(port.ar.valid, 1)
            assert bus.ctx.get(port.ar.ready)
            # The read is taken in the first cycle of the write, and answered in its own time.
            bus.ctx.set(port.aw.payload, {"addr": address_of(written)})
            bus.ctx.set(port.w.payload, {"data": word, "strb": 0xF})
            bus.ctx.set(port.aw.valid, 1)
            bus.ctx.set(port.w.valid, 1)
            await bus.ctx.tick()
            for channel in (port.ar, port.aw, port.w):
                bus.ctx.set(channel.valid, 0)
            first, second = rng.sample([port.b, port.r], 2)
            await bus.receive(first)
            answer, _ = await bus.receive(second)
            if second is port.r:
                assert (answer.resp.value, answer.data) == (OKAY, contents[read])
            contents[written] = word

    run(operations, seed=5)


def test_table_entries_in_a_row():
    pages = [random.Random(1).getrandbits(24) for _ in range(8)]

    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        seen = []

        async def take(count):
            """Writes of pages; the table takes each late, and the answer comes behind it."""
            for page in pages[:count]:
                ctx.set(dut.o_table.ready, 0)
                ctx.set(dut.bus.aw.payload, {"addr": address_of("table_page")})
                ctx.set(dut.bus.w.payload, {"data": page, "strb": 0xF})
                ctx.set(dut.bus.aw.valid, 1)
                ctx.set(dut.bus.w.valid, 1)
                await ctx.tick()
                for _ in range(3):
                    assert ctx.get(dut.o_table.valid)
                    assert not ctx.get(dut.bus.b.valid)
                    assert not ctx.get(dut.bus.aw.ready)
                    await ctx.tick()
                ctx.set(dut.bus.aw.valid, 0)
                ctx.set(dut.bus.w.valid, 0)
                ctx.set(dut.o_table.ready, 1)
                seen.append((ctx.get(dut.o_table.payload.index), ctx.get(dut.o_table.payload.page)))
                await ctx.tick()
                assert not ctx.get(dut.o_table.valid)
                answer, cycles = await bus.receive(dut.bus.b)
                assert (answer.resp.value, cycles) == (OKAY, 0)

        await bus.write("table_index", 292)
        await take(8)
        assert seen == list(enumerate(pages, start=292))
        assert await bus.read("table_index") == 300
        assert await bus.write_at(address_of("table_page"), 1) == SLVERR

    run(operations)


def stage(rng):
    """Random values of an entry that fit their fields."""
    layout = context_entry(CONFIG)
    return {name: rng.getrandbits(min(64, layout[name].width)) for name, _ in ENTRY_FIELDS}


async def write_entry(bus, values):
    for name, is_address in ENTRY_FIELDS:
        await bus.write(f"entry_{name}", values[name] & 0xFFFFFFFF)
        if is_address:
            await bus.write(f"entry_{name}_high", values[name] >> 32)


async def offered(bus, valid):
    """Write ``context_enter`` and look at what is offered to the context table."""
    ctx, port = bus.ctx, bus.dut.o_context
    ctx.set(port.ready, 0)
    ctx.set(bus.dut.bus.aw.payload, {"addr": address_of("context_enter")})
    ctx.set(bus.dut.bus.w.payload, {"data": valid, "strb": 0xF})
    ctx.set(bus.dut.bus.aw.valid, 1)
    ctx.set(bus.dut.bus.w.valid, 1)
    await ctx.tick()
    ctx.set(bus.dut.bus.aw.valid, 0)
    ctx.set(bus.dut.bus.w.valid, 0)
    for _ in range(4):
        assert ctx.get(port.valid)
        assert not ctx.get(bus.dut.bus.b.valid)
        await ctx.tick()
    item = ctx.get(port.payload)
    ctx.set(port.ready, 1)
    await bus.receive(bus.dut.bus.b)
    assert not ctx.get(port.valid)
    return item


def test_a_staged_entry_is_offered_as_written():
    async def operations(bus):
        values = stage(random.Random(4))
        await write_entry(bus, values)
        await bus.write("context_index", 3)
        for valid in (1, 0):
            item = await offered(bus, valid)
            assert (item.index, item.valid, item.truncated) == (3, valid, 0)
            assert {name: item.entry[name] for name in values} == values
        assert bus.ctx.get(bus.dut.length_index) == 3

    run(operations)


def test_values_too_wide_are_told():
    layout = context_entry(CONFIG)

    async def operations(bus):
        for name, is_address in ENTRY_FIELDS:
            width = layout[name].width
            top = 63 if is_address else 31
            # The highest bit that fits, the lowest that does not, the highest there is.
            for bit in sorted({width - 1, min(width, top), top}):
                suffix = "_high" if bit >= 32 else ""
                await bus.write(f"entry_{name}{suffix}", 1 << (bit % 32))
                assert (await offered(bus, 1)).truncated == (bit >= width), (name, bit)
                await bus.write(f"entry_{name}{suffix}", 0)

    run(operations)


@pytest.mark.parametrize("index", [0x10000, 0x10001, 0xFFFFFFFF])
def test_an_index_too_wide_names_no_context(index):
    async def operations(bus):
        await bus.write("context_index", index)
        assert (await offered(bus, 0)).index == 0xFFFF
        assert bus.ctx.get(bus.dut.length_index) == 0xFFFF

    run(operations)


def test_interrupts():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut

        async def close(error):
            ctx.set(dut.closed, 1)
            ctx.set(dut.error, error)
            await ctx.tick()
            ctx.set(dut.closed, 0)

        ctx.set(dut.error, Error.BUS)  # without a command it means nothing
        await ctx.tick()
        assert await bus.read("interrupt_pending") == 0
        await close(Error.NONE)
        assert await bus.read("interrupt_pending") == 1
        assert not ctx.get(dut.interrupt)
        for enable, level in [(2, 0), (1, 1), (3, 1), (0, 0), (0xFFFFFFFC, 0), (2, 0)]:
            await bus.write("interrupt_enable", enable)
            assert ctx.get(dut.interrupt) == level
        await close(Error.WINDOW)
        assert ctx.get(dut.interrupt)
        assert await bus.read("interrupt_pending") == 3
        await bus.write("interrupt_pending", 1)
        assert await bus.read("interrupt_pending") == 2
        await bus.write("interrupt_pending", 2)
        assert await bus.read("interrupt_pending") == 0
        assert not ctx.get(dut.interrupt)

    run(operations)


def test_a_cause_that_comes_while_it_is_cleared_stays():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.bus.aw.payload, {"addr": address_of("interrupt_pending")})
        ctx.set(dut.bus.w.payload, {"data": 3, "strb": 0xF})
        ctx.set(dut.bus.aw.valid, 1)
        ctx.set(dut.bus.w.valid, 1)
        ctx.set(dut.closed, 1)
        assert ctx.get(dut.bus.w.ready)
        await ctx.tick()
        for signal in (dut.closed, dut.bus.aw.valid, dut.bus.w.valid):
            ctx.set(signal, 0)
        await bus.receive(dut.bus.b)
        assert await bus.read("interrupt_pending") == 1

    run(operations)


def test_what_other_units_show():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.counters, [7 * place + (place << 28) for place in range(len(COUNTERS))])
        ctx.set(dut.busy, 1)
        ctx.set(dut.context_fault, ContextFault.TABLE)
        ctx.set(dut.length, 1024)
        for valid in (0, 1):
            ctx.set(dut.length_valid, valid)
            assert await bus.read("context_length") == (valid << 31 | 1024)
        assert await bus.read("busy") == 1
        assert await bus.read("context_fault") == ContextFault.TABLE.value
        for place, (name, _) in enumerate(COUNTERS):
            assert await bus.read(name) == (7 * place + (place << 28)) % (1 << 32)

    run(operations)


class WithTable(Registers):
    """Registers with the context table that they enter contexts into."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.registers = registers = Registers(self.config)
        m.submodules.contexts = contexts = ContextTable(self.config)
        wiring.connect(m, wiring.flipped(self.bus), registers.bus)
        wiring.connect(m, registers.o_context, contexts.i_write)
        m.d.comb += [
            registers.context_fault.eq(contexts.fault),
            contexts.length_index.eq(registers.length_index),
            registers.length_valid.eq(contexts.length_valid),
            registers.length.eq(contexts.length),
        ]
        return m


def test_the_answer_to_an_entry_comes_with_its_fault():
    async def operations(bus):
        for name, is_address in ENTRY_FIELDS:
            if not is_address:
                await bus.write(f"entry_{name}", 0)
        await bus.write("context_index", 2)
        for capacity, fault in [(16, 0), (0, 3), (17, 0), (2000, 3), (1 << 20, 3)]:
            await bus.write("entry_capacity", capacity)
            await bus.write("context_enter", 1)
            assert await bus.read("context_fault") == fault
            assert await bus.read("context_length") == (0 if fault else 1 << 31)
        await bus.write("context_index", 0x10002)
        await bus.write("entry_capacity", 16)
        await bus.write("context_enter", 1)
        assert await bus.read("context_fault") == ContextFault.INDEX.value

    run(operations, unit=WithTable)


def test_bad_config():
    with pytest.raises(TypeError, match="Registers config must be an AttentionConfig, not 3"):
        Registers(3)
