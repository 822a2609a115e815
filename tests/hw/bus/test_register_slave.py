import random

import pytest

from hw.bus.register_map import Register
from hw.bus.register_slave import RegisterSlave
from tests.hw.harness import run_testbench
from tests.hw.register_bus import OKAY, SLVERR, Bus

REGISTERS = (
    Register("fixed", 0x00, "ro", ""),
    Register("stored", 0x04, "rw", ""),
    Register("order", 0x10, "wo", ""),
    Register("flags", 0x14, "w1c", ""),
    Register("far", 0x7C, "rw", ""),
)
ADDRESSES = {register.name: register.address for register in REGISTERS}
SHOWN = {"fixed": 0x12345678, "stored": 0x9ABCDEF0, "flags": 0xFFFFFFFF, "far": 1}


def run(operations, *, seed=None):
    """Run a coroutine function on a `Bus`, and return the strobes seen: name, word."""
    dut = RegisterSlave(REGISTERS, address_bits=7)
    strobes = []

    async def testbench(ctx):
        ctx.set(dut.value, SHOWN)
        await operations(Bus(ctx, dut, ADDRESSES.__getitem__,
                             random.Random(seed) if seed is not None else None))

    async def watch(ctx):
        while True:
            _, _, strobe, word = await ctx.tick().sample(dut.strobe, dut.word)
            strobes.extend((name, word) for name in ("stored", "order", "flags", "far")
                           if strobe[name])

    run_testbench(dut, testbench, beside=[watch])
    return strobes


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_register_answers_by_its_access(seed):
    expected = []

    async def operations(bus):
        rng = random.Random(seed)
        for address in range(0, 128):
            register = next((r for r in REGISTERS if r.address == address), None)
            word = rng.getrandbits(32)
            is_written = register is not None and register.access != "ro"
            if is_written:
                expected.append((register.name, word))
            assert await bus.write_at(address, word) == (OKAY if is_written else SLVERR)
            if register is not None and register.access != "wo":
                assert await bus.read_at(address) == (OKAY, SHOWN[register.name])
            else:
                assert await bus.read_at(address) == (SLVERR, 0)

    assert run(operations, seed=seed) == expected
    assert len(expected) == 4


def test_part_of_a_word_is_not_written():
    async def operations(bus):
        for strobes in range(15):
            assert await bus.write_at(0x04, 1, strobes) == SLVERR
        assert await bus.write_at(0x04, 1) == OKAY

    assert run(operations) == [("stored", 1)]


def test_a_register_that_does_not_accept_is_not_written():
    async def operations(bus):
        bus.ctx.set(bus.dut.accepts, {"stored": 0, "order": 1, "flags": 0, "far": 1})
        for name, response in (
                ("stored", SLVERR), ("order", OKAY), ("flags", SLVERR), ("far", OKAY)):
            assert await bus.write_at(ADDRESSES[name], 5) == response

    assert run(operations) == [("order", 5), ("far", 5)]


@pytest.mark.parametrize("late", ["aw", "w"])
def test_a_write_waits_for_its_other_channel(late):
    async def operations(bus):
        assert await bus.write_at(0x7C, 77, late=late) == OKAY

    assert run(operations) == [("far", 77)]


@pytest.mark.parametrize("wait", [1, 2, 9])
def test_a_slow_write_is_answered_when_it_is_done(wait):
    async def operations(bus):
        ctx, dut = bus.ctx, bus.dut
        ctx.set(dut.slow, 1)
        ctx.set(dut.done, 1)   # before the strobe, and with it, it means nothing
        ctx.set(dut.bus.aw.payload, {"addr": ADDRESSES["order"]})
        ctx.set(dut.bus.w.payload, {"data": 3, "strb": 0xF})
        ctx.set(dut.bus.aw.valid, 1)
        ctx.set(dut.bus.w.valid, 1)
        assert ctx.get(dut.strobe.order)
        await ctx.tick()
        ctx.set(dut.slow, 0)
        ctx.set(dut.done, 0)
        ctx.set(dut.bus.ar.payload, {"addr": ADDRESSES["far"]})
        ctx.set(dut.bus.ar.valid, 1)   # reads go on
        for cycle in range(wait):
            assert not ctx.get(dut.bus.b.valid)
            assert not ctx.get(dut.bus.aw.ready)   # the next write waits
            assert not ctx.get(dut.strobe.as_value())
            assert ctx.get(dut.bus.r.valid) == (cycle == 2)
            await ctx.tick()
            ctx.set(dut.bus.ar.valid, 0)
            ctx.set(dut.bus.r.ready, cycle >= 1)
        ctx.set(dut.done, 1)
        ctx.set(dut.bus.b.ready, 1)
        assert not ctx.get(dut.bus.b.valid)
        await ctx.tick()
        ctx.set(dut.done, 0)
        assert ctx.get(dut.bus.b.valid)
        assert ctx.get(dut.bus.b.payload.resp).value == OKAY
        await ctx.tick()
        # Answered: the write that waited is taken now, and is not slow.
        assert ctx.get(dut.strobe.order)
        await ctx.tick()
        assert ctx.get(dut.bus.b.valid)

    assert run(operations)[:2] == [("order", 3)] * 2


def test_a_slow_write_that_is_refused_is_answered_at_once():
    async def operations(bus):
        bus.ctx.set(bus.dut.slow, 1)
        assert await bus.write_at(0x00, 1) == SLVERR
        assert await bus.write_at(0x04, 1, 0x7) == SLVERR

    assert run(operations) == []


def test_cycles_of_accesses():
    async def operations(bus):
        ctx, port = bus.ctx, bus.dut.bus
        ctx.set(port.aw.payload, {"addr": 0x04})
        ctx.set(port.w.payload, {"data": 9, "strb": 0xF})
        ctx.set(port.ar.payload, {"addr": 0x04})
        for channel in (port.aw, port.w, port.ar):
            ctx.set(channel.valid, 1)
        ctx.set(port.b.ready, 1)
        ctx.set(port.r.ready, 1)
        taken = []
        for _ in range(12):
            _, _, *values = await ctx.tick().sample(
                port.w.ready, port.b.valid, port.ar.ready, port.r.valid)
            taken.append(values)
        assert [[cycle for cycle, row in enumerate(taken) if row[place]] for place in range(4)] == [
            [0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11], [0, 3, 6, 9], [2, 5, 8, 11]]
        for channel in (port.aw, port.w, port.ar):
            ctx.set(channel.valid, 0)

    run(operations)


def test_bad_parameters():
    with pytest.raises(TypeError, match="RegisterSlave address_bits must be an int"):
        RegisterSlave(REGISTERS, address_bits="12")
    with pytest.raises(ValueError, match="RegisterSlave address_bits must be .*, not 2"):
        RegisterSlave(REGISTERS, address_bits=2)
