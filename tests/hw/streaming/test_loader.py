import random
import struct

import pytest

from hw.config import StreamingConfig
from hw.streaming.layouts import Route
from hw.streaming.loader import Loader
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import SLVERR, Fault, MemoryModel

BASE = 0x340
ITEM = struct.Struct("<HBBIII")


def make_config(bus_bytes=16):
    return StreamingConfig(head_dim=64, bus_bytes=bus_bytes, chunks=64, address_bits=32)


def random_item(rng, **fields):
    return {"chunk": rng.choice([0, 63, rng.randrange(64)]), "stage": rng.getrandbits(8),
            "route": rng.getrandbits(1), "stream_ticks": rng.getrandbits(24),
            "compute_ticks": rng.getrandbits(24), "deadline": rng.getrandbits(32), **fields}


def entry_of(item):
    return {**item, "route": Route(item["route"])}


def run(items, *, bus_bytes=16, taken=None, failed=False, stall=0.0, runs=None, faults=(), seed=1,
        latency=4):
    """Load ``items``, in runs of so many, of which ``taken`` come out."""
    config = make_config(bus_bytes)
    runs = runs or [len(items)]
    memory = MemoryModel(size=1 << 13, latency=latency, shuffle=stall > 0, seed=seed)
    memory.faults = [Fault(*fault, response=SLVERR) for fault in faults]
    at, bases = BASE, []
    rest = list(items)
    for count in runs:
        for place, item in enumerate(rest[:count]):
            memory.data[at + 16 * place:at + 16 * place + 16] = ITEM.pack(*item.values())
        bases.append(at)
        at += -(-count * 16 // 64) * 64
        rest = rest[count:]
    dut = Loader(config)
    ends = []
    cycles = {"ar": [], "r": [], "done": []}

    async def drive(ctx):
        for base, count in zip(bases, runs, strict=True):
            ctx.set(dut.base, base)
            ctx.set(dut.count, count)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            done = False
            while not done:
                _, _, done, has_failed = await ctx.tick().sample(dut.done, dut.failed)
            ends.append(bool(has_failed))

    async def watch(ctx):
        cycle = 0
        while True:
            _, _, *values = await ctx.tick().sample(dut.bus.ar.valid, dut.bus.r.valid, dut.done)
            for name, value in zip(cycles, values, strict=True):
                if value:
                    cycles[name].append(cycle)
            cycle += 1

    expected = [entry_of(item) for item in (items if taken is None else items[:taken])]
    result = run_stream_test(
        dut, feeds={}, sinks={"o_entry": len(expected)}, seed=seed, stall_probability=stall,
        quiet_cycles=100, testbenches=[drive, watch, memory.serve_read_port(dut.bus)])
    assert result.outputs["o_entry"] == expected
    assert ends == [False] * (len(runs) - 1) + [failed]
    assert len(cycles["done"]) == len(runs)
    return result, cycles


@pytest.mark.parametrize("bus_bytes", [8, 16, 64])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_items_come_as_entries_in_order(bus_bytes, stall):
    """Also job after job, of every length modulo a line."""
    rng = random.Random(bus_bytes)
    runs = [1, 4, 7, 2, 13]
    items = [random_item(rng) for _ in range(sum(runs))]
    run(items, bus_bytes=bus_bytes, runs=runs, stall=stall)


@pytest.mark.parametrize("bus_bytes, fields", [
    (16, {"chunk": 64}), (64, {"chunk": 0x8000}), (16, {"route": 2}), (8, {"route": 0x80}),
    (16, {"stream_ticks": 1 << 24}), (16, {"stream_ticks": 1 << 31}),
    (64, {"compute_ticks": 1 << 24}), (16, {"compute_ticks": 1 << 31})])
@pytest.mark.parametrize("place", [0, 5, 8])
def test_a_field_that_does_not_fit_ends_the_entries(bus_bytes, fields, place):
    rng = random.Random(place)
    items = [random_item(rng) for _ in range(9)]
    items[place] = random_item(rng, **fields)
    run(items, bus_bytes=bus_bytes, taken=place, failed=True, stall=0.3)


@pytest.mark.parametrize("bus_bytes", [8, 16, 64])
def test_a_read_error_ends_the_entries(bus_bytes):
    items = [random_item(random.Random(2)) for _ in range(11)]
    run(items, bus_bytes=bus_bytes, taken=4, failed=True, faults=[(BASE + 64, BASE + 65)])


def test_a_failure_is_forgotten_by_the_next_start():
    rng = random.Random(3)
    config = make_config()
    memory = MemoryModel(size=1 << 12)
    bad, good = random_item(rng, chunk=64), random_item(rng)
    memory.data[0:16], memory.data[64:80] = ITEM.pack(*bad.values()), ITEM.pack(*good.values())
    dut = Loader(config)
    ends = []

    async def drive(ctx):
        ctx.set(dut.count, 1)
        for base in (0, 64, 0, 64):
            ctx.set(dut.base, base)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            failed, = await ctx.tick().sample(dut.failed).until(dut.done)
            ends.append(failed)

    result = run_stream_test(dut, feeds={}, sinks={"o_entry": 2}, seed=1, quiet_cycles=60,
                             testbenches=[drive, memory.serve_read_port(dut.bus)])
    assert result.outputs["o_entry"] == [entry_of(good)] * 2
    assert ends == [1, 0, 1, 0]


@pytest.mark.parametrize("bus_bytes, delay", [(8, 2), (16, 1), (64, 1)])
def test_cycles(bus_bytes, delay):
    items = [random_item(random.Random(4)) for _ in range(32)]
    result, cycles = run(items, bus_bytes=bus_bytes, latency=1)
    assert cycles["ar"][0] == 2   # started in cycle 0
    beats = max(1, 16 // bus_bytes)
    first = cycles["r"][beats - 1] + delay
    assert result.output_cycles["o_entry"] == [first + beats * place for place in range(32)]
    assert cycles["done"] == [result.output_cycles["o_entry"][-1]]


def test_bad_config():
    with pytest.raises(TypeError, match="Loader config must be a StreamingConfig, not 3"):
        Loader(3)
