import random

import pytest

from hw.config import StreamingConfig
from hw.streaming.layouts import schedule_policy
from hw.streaming.register_map import COUNTERS, JOB_FIELDS, REGISTERS, SIZES, WIDTHS, address_of
from hw.streaming.registers import Registers
from hw.streaming.reports import Cause
from tests.hw.harness import run_testbench
from tests.hw.register_bus import OKAY, SLVERR, Bus

CONFIG = StreamingConfig(head_dim=64, bus_bytes=16, chunks=64, table_pages=300, windows=3,
                         outstanding=5, address_bits=40)
HOLES = [address for address in range(0, 0x1000, 4)
         if address not in {register.address for register in REGISTERS}]
ORDERS = ("job_start", "job_abort", "copy_abort", "counter_clear")


def run(operations, *, config=CONFIG, seed=None):
    """Run a coroutine function on a `Bus`, and return the orders given."""
    dut = Registers(config)
    orders = []

    async def testbench(ctx):
        ctx.set(dut.o_table.ready, 1)
        ctx.set(dut.o_chain.ready, 1)
        await operations(Bus(
            ctx, dut, address_of, random.Random(seed) if seed is not None else None))

    async def watch(ctx):
        while True:
            _, _, *given = await ctx.tick().sample(*(getattr(dut, name) for name in ORDERS))
            orders.extend(name for name, is_given in zip(ORDERS, given, strict=True) if is_given)

    run_testbench(dut, testbench, beside=[watch])
    return orders


def highest(field, config=CONFIG):
    return getattr(config, field.high) if isinstance(field.high, str) else field.high


def job_word(rng, field, config=CONFIG):
    """A word that the register takes."""
    if field.name in ("records", "schedule"):
        return rng.getrandbits(26) << 6
    if field.name.endswith("_high"):
        return rng.getrandbits(config.address_bits - 32)
    return rng.randint(field.low, highest(field, config))


async def push(bus, name, word):
    """Begin a write; the answer is left for `Bus.receive`."""
    ctx, port = bus.ctx, bus.dut.bus
    ctx.set(port.aw.payload, {"addr": address_of(name)})
    ctx.set(port.w.payload, {"data": word, "strb": 0xF})
    ctx.set(port.aw.valid, 1)
    ctx.set(port.w.valid, 1)
    assert ctx.get(port.w.ready)
    await ctx.tick()
    ctx.set(port.aw.valid, 0)
    ctx.set(port.w.valid, 0)


def test_identity_and_sizes():
    async def operations(bus):
        assert await bus.read("id") == 0x4B565353
        assert await bus.read("version") == 0x10000
        for name in SIZES:
            assert await bus.read(name) == getattr(CONFIG, name)

    run(operations, seed=1)


@pytest.mark.parametrize("seed", [None, 2])
def test_what_was_written_is_read(seed):
    rng = random.Random(3)
    fields = {field.name: field for field in JOB_FIELDS}
    words = {r.name: job_word(rng, fields[r.name]) if r.name in fields
             else rng.getrandbits(WIDTHS.get(r.name, 32))
             for r in REGISTERS if r.access == "rw"}

    async def operations(bus):
        for name in words:
            assert await bus.read(name) == (fields[name].initial if name in fields else 0)
        for name, word in words.items():
            await bus.write(name, word)
        for name, word in words.items():
            assert await bus.read(name) == word
        ctx, dut = bus.ctx, bus.dut
        for name, _ in schedule_policy(CONFIG):
            assert ctx.get(dut.policy[name]) == words[name]
        for name in ("first_id", "job_chunks", "tick_log2"):
            assert ctx.get(getattr(dut, name)) == words[name]
        for name in ("records", "schedule"):
            assert ctx.get(getattr(dut, name)) == words[f"{name}_high"] << 32 | words[name]
        for name in ("report_mask", "event_index"):
            assert ctx.get(getattr(dut, name)) == words[name]
        for name, width in WIDTHS.items():
            assert await bus.write_at(address_of(name), 1 << width) == SLVERR
            assert await bus.write_at(address_of(name), 1 << 31) == SLVERR
            assert await bus.read(name) == words[name]

    assert run(operations, seed=seed) == []


def test_refused_accesses_change_nothing():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.o_table.ready, 0)
        ctx.set(dut.o_chain.ready, 0)
        for register in REGISTERS:
            if register.access == "ro":
                assert await bus.write_at(register.address, 1) == SLVERR
            if register.access == "wo":
                assert await bus.read_at(register.address) == (SLVERR, 0)
                assert await bus.write_at(register.address, 1, 0x7) == SLVERR
                assert await bus.write_at(register.address + 1, 1) == SLVERR
        for address in HOLES[::37]:
            assert await bus.write_at(address, 1) == SLVERR
            assert await bus.read_at(address) == (SLVERR, 0)
        # An entry above the block table; then a page number that its field cannot hold.
        for index in (300, 0xFFFFFFFF, 1 << 16):
            await bus.write("table_index", index)
            assert await bus.write_at(address_of("table_page"), 5) == SLVERR
        await bus.write("table_index", 299)
        assert await bus.write_at(address_of("table_page"), 1 << 24) == SLVERR
        assert await bus.read("table_index") == 299
        assert not ctx.get(dut.o_table.valid)
        assert not ctx.get(dut.o_chain.valid)

    assert run(operations) == []


def test_registers_of_a_job_take_what_is_in_range():
    async def operations(bus):
        for field in JOB_FIELDS:
            address = address_of(field.name)
            high = highest(field)
            words = {field.low, min(high, 0xFFFFFFC0), field.low - 1, high + 1, 0xFFFFFFFF, 1 << 31}
            if "records" in field.name or "schedule" in field.name:
                words |= {0x40, 0x20, 0x41, 0xFF, 0x100}
            before = await bus.read(field.name)
            for word in sorted(words):
                if not 0 <= word < 1 << 32:
                    continue
                is_good = field.low <= word <= high
                if field.name in ("records", "schedule"):
                    is_good &= word % 64 == 0
                elif field.name in ("records_high", "schedule_high"):
                    is_good &= word < 1 << CONFIG.address_bits - 32
                response = await bus.write_at(address, word)
                assert response == (OKAY if is_good else SLVERR), (field.name, word)
                before = word if is_good else before
                assert await bus.read(field.name) == before

    run(operations)


@pytest.mark.parametrize("address_bits", [28, 32, 33, 64])
def test_addresses_too_wide_are_refused(address_bits):
    config = StreamingConfig(head_dim=64, bus_bytes=16, address_bits=address_bits)

    async def operations(bus):
        for name in ("records", "schedule"):
            for bit in range(6, 64):
                suffix = "_high" if bit >= 32 else ""
                response = await bus.write_at(address_of(f"{name}{suffix}"), 1 << bit % 32)
                assert response == (OKAY if bit < address_bits else SLVERR)
        for bit in (address_bits - 1, address_bits):
            if bit < 64:
                await bus.write("chain_address", 1 << bit if bit < 32 else 0)
                await bus.write("chain_address_high", 1 << (bit - 32) if bit >= 32 else 0)
                assert await bus.write_at(address_of("chain_start"), 1) == (
                    OKAY if bit < address_bits else SLVERR)

    run(operations, config=config)


def test_registers_of_a_job_hold_still_while_it_runs():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.job_busy, 1)
        for field in JOB_FIELDS:
            assert await bus.write_at(address_of(field.name), field.initial) == SLVERR
        assert await bus.write_at(address_of("job_start"), 1) == SLVERR
        # What has nothing to do with the job is not held.
        for name in ("table_index", "report_mask", "event_index", "chain_limit", "job_abort"):
            assert await bus.write_at(address_of(name), 1) == OKAY
        ctx.set(dut.job_busy, 0)
        await bus.write("job_start", 0)
        await bus.write("job_start", 1)
        await bus.write("retries", 3)
        assert await bus.read("retries") == 3

    assert run(operations) == ["job_abort", "job_start"]


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_given_for_one_cycle_by_a_one(name):
    async def operations(bus):
        for word, strobes in [(0, 0xF), (1, 0x1), (2, 0xF), (3, 0xF)]:
            await bus.write_at(address_of(name), word, strobes)

    assert run(operations, seed=6) == [name]


def test_table_entries_in_a_row():
    pages = [random.Random(1).getrandbits(24) for _ in range(8)]

    async def operations(bus):
        """Writes of pages; the table takes each late, and the answer comes behind it."""
        ctx, dut = bus.ctx, bus.dut
        await bus.write("table_index", 292)
        for index, page in enumerate(pages, start=292):
            ctx.set(dut.o_table.ready, 0)
            await push(bus, "table_page", page)
            for _ in range(3):
                assert ctx.get(dut.o_table.valid)
                assert not ctx.get(dut.bus.b.valid)
                assert not ctx.get(dut.bus.aw.ready)
                await ctx.tick()
            ctx.set(dut.o_table.ready, 1)
            item = ctx.get(dut.o_table.payload)
            assert (item.index, item.page) == (index, page)
            await ctx.tick()
            assert not ctx.get(dut.o_table.valid)
            answer, cycles = await bus.receive(dut.bus.b)
            assert (answer.resp.value, cycles) == (OKAY, 0)
        assert await bus.read("table_index") == 300
        assert await bus.write_at(address_of("table_page"), 1) == SLVERR

    run(operations)


async def stage_window(bus, index, base, last):
    await bus.write("window_index", index)
    for name, value in (("base", base), ("last", last)):
        await bus.write(f"window_{name}", value & 0xFFFFFFFF)
        await bus.write(f"window_{name}_high", value >> 32)


def test_windows_are_granted_and_withdrawn():
    async def operations(bus):
        granted = [(0, 0, 0)] * 3

        def shown():
            return [(w.valid, w.base, w.last) for w in
                    (bus.ctx.get(bus.dut.windows[number]) for number in range(3))]

        top = (1 << 40) - 1
        for index, base, last, valid, response in [
                (0, 0, top, 1, OKAY), (2, 5, 5, 1, OKAY), (1, 1 << 39, (1 << 39) + 4095, 1, OKAY),
                (1, 6, 5, 1, SLVERR), (1, 0, 1 << 40, 1, SLVERR), (1, 1 << 63, top, 1, SLVERR),
                (1, 1 << 40, 1 << 41, 1, SLVERR), (3, 0, 1, 1, SLVERR), (1 << 16, 0, 1, 1, SLVERR),
                (0x80000001, 0, 1, 1, SLVERR), (0, 7, 8, 0, OKAY), (2, 9, 9, 1, OKAY)]:
            await stage_window(bus, index, base, last)
            # Staged, it grants nothing yet.
            assert shown() == granted
            assert await bus.write_at(address_of("window_enter"), valid) == response
            if response == OKAY:
                granted[index] = (valid, base, last)
            assert shown() == granted

    run(operations)


@pytest.mark.parametrize("busy", ["job_busy", "copy_busy"])
def test_windows_stand_still_while_something_may_write(busy):
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        await stage_window(bus, 1, 4, 10)
        await bus.write("window_enter", 1)
        await stage_window(bus, 1, 4, 99)
        ctx.set(getattr(dut, busy), 1)
        for word in (0, 1):
            assert await bus.write_at(address_of("window_enter"), word) == SLVERR
        assert (ctx.get(dut.windows[1].valid), ctx.get(dut.windows[1].last)) == (1, 10)
        ctx.set(getattr(dut, busy), 0)
        await bus.write("window_enter", 0)
        assert not ctx.get(dut.windows[1].valid)

    assert run(operations) == []


@pytest.mark.parametrize("name, word", [
    ("window_base", 11), ("window_last", 3), ("window_index", 3), ("window_last_high", 1 << 8)])
def test_a_window_is_entered_by_what_was_written_just_before(name, word):
    async def operations(bus):
        await stage_window(bus, 1, 4, 10)
        await bus.write(name, word)
        assert await bus.write_at(address_of("window_enter"), 1) == SLVERR
        await stage_window(bus, 1, 4, 10)
        await bus.write("window_enter", 1)

    run(operations)


def test_a_chain_is_started_and_answered_when_it_was_taken():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        await bus.write("chain_address", 0x12345678)
        await bus.write("chain_address_high", 0x9A)
        await bus.write("chain_limit", 0xFFFF)
        await bus.write("chain_tag", 0x1234)
        ctx.set(dut.o_chain.ready, 0)
        await bus.write("chain_start", 0)   # nothing to wait for
        assert not ctx.get(dut.o_chain.valid)
        await push(bus, "chain_start", 1)
        for _ in range(5):
            assert ctx.get(dut.o_chain.valid)
            assert not ctx.get(dut.bus.b.valid)
            item = ctx.get(dut.o_chain.payload)
            assert (item.address, item.limit, item.tag) == (0x9A12345678, 0xFFFF, 0x1234)
            await ctx.tick()
        ctx.set(dut.o_chain.ready, 1)
        await ctx.tick()
        assert not ctx.get(dut.o_chain.valid)
        answer, cycles = await bus.receive(dut.bus.b)
        assert (answer.resp.value, cycles) == (OKAY, 0)

    run(operations)


def test_interrupts():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut

        async def cause(causes):
            ctx.set(dut.causes, causes)
            await ctx.tick()
            ctx.set(dut.causes, Cause(0))

        for number, bit in enumerate(Cause):
            assert bit == 1 << number
            await bus.write("interrupt_enable", 0)
            await cause(bit)
            assert await bus.read("interrupt_pending") == bit
            assert not ctx.get(dut.interrupt)
            for enable in (63 ^ bit, 0xFFFFFFC0, bit, 63):
                await bus.write("interrupt_enable", enable)
                assert ctx.get(dut.interrupt) == bool(enable & bit)
            await bus.write("interrupt_pending", 0xFFFFFFFF ^ bit)
            assert await bus.read("interrupt_pending") == bit
            await bus.write("interrupt_pending", bit)
            assert await bus.read("interrupt_pending") == 0
            assert not ctx.get(dut.interrupt)
        await cause(Cause.JOB | Cause.CHUNK)
        await cause(Cause.COPY)
        assert await bus.read("interrupt_pending") == Cause.JOB | Cause.CHUNK | Cause.COPY

    run(operations)


def test_a_cause_that_comes_while_it_is_cleared_stays():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.causes, Cause.LOST | Cause.FRAME)
        await ctx.tick()
        ctx.set(dut.causes, Cause.LOST)
        await push(bus, "interrupt_pending", 63)
        ctx.set(dut.causes, Cause(0))
        await bus.receive(dut.bus.b)
        assert await bus.read("interrupt_pending") == Cause.LOST

    run(operations)


def test_what_other_units_show():
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.counters, [7 * place + (place << 28) for place in range(len(COUNTERS))])
        for name, value in {"event_count": 0xFFFFFFFE, "present": 64, "lost": 3, "stage": 255,
                            "now": 0x80000001}.items():
            ctx.set(getattr(dut, name), value)
        for job, copy in ((0, 1), (1, 0)):
            ctx.set(dut.job_busy, job)
            ctx.set(dut.copy_busy, copy)
            assert await bus.read("busy") == copy << 1 | job
        for name, value in {"event_count": 0xFFFFFFFE, "job_present": 64, "job_lost": 3,
                            "job_stage": 255, "now": 0x80000001}.items():
            assert await bus.read(name) == value
        for place, (name, _) in enumerate(COUNTERS):
            assert await bus.read(name) == (7 * place + (place << 28)) % (1 << 32)

    run(operations, seed=5)


def test_bad_config():
    with pytest.raises(TypeError, match="Registers config must be a StreamingConfig, not 3"):
        Registers(3)
