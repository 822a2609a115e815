"""Defects that other DMA engines shipped, one test each."""

import pytest

from golden.streaming import copy as golden
from golden.streaming.copy import Copy
from hw.streaming.copy import CopyEngine
from hw.streaming.copy_reader import CopyReader
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel
from tests.hw.streaming.copies import fields, make_config
from tests.hw.streaming.copy_bench import SIZE, Bench, ticks, watch


@pytest.mark.parametrize("bus_bytes, burst_bytes", [(16, 4096), (8, 2048), (64, 4096), (8, 8)])
def test_4kib_corner(bus_bytes, burst_bytes):
    """Runs that begin and end within a byte of a boundary, of source and destination."""
    bench = Bench(make_config(bus_bytes, burst_bytes=burst_bytes), 1)
    scene = bench.scene
    for _ in range(8):
        rng = scene.rng
        source = 4096 * rng.randrange(1, 3) + rng.choice([-1, 0, 1]) - rng.choice([0, bus_bytes])
        end = 4096 * (scene.free // 4096 + 1) + rng.choice([-1, 0, 1])
        start = end - rng.choice([1, bus_bytes, 2 * bus_bytes + 1])
        scene.copy(row_bytes=rng.choice([end - start, end - start + 1, 2 * bus_bytes]),
                   source=source, offset=start - scene.free)
    for result in scene.results:
        for address, size in result.reads + result.writes:
            assert address // 4096 == (address + size - 1) // 4096
    bench.run()
    for address, beats in bench.model.reads + bench.model.writes:
        assert beats <= 256
        assert address // 4096 == (address - address % bus_bytes + beats * bus_bytes - 1) // 4096


def test_exact_fill_no_stray_burst():
    """Runs that end at the end of a burst, of a beat, of 4 KiB: as many bursts as needed."""
    config = make_config(16)
    bench = Bench(config, 2)
    for size in (16, 256, 512, 4096, 16):
        bench.scene.copy(row_bytes=size, source=4096, offset=-bench.scene.free % 256)
    bench.run()
    for bursts in (bench.model.writes, bench.model.reads):
        assert [beats for _, beats in bursts] == [1, 16, 16, 16, *[16] * 16, 1]


def test_done_after_last_response():
    """Every message comes after as many responses as its command, and those before, have bursts."""
    bench, events = Bench(make_config(16), 3, latency=50), {}
    for _ in range(12):
        bench.scene.random()
    bench.scene.bad()
    result = bench.run(watch=lambda engine: watch(
        events, responses=engine.write.b.valid & engine.write.b.ready))
    bursts = 0
    for command, cycle in zip(bench.scene.results, result.output_cycles["o_done"], strict=True):
        bursts += len(command.writes)
        assert bursts == 0 or cycle > events["responses"][bursts - 1]


def test_response_counter_cannot_overflow():
    """Many more bursts than may be outstanding, and responses that take long."""
    config = make_config(16, bursts=4)
    bench, events = Bench(config, 4, latency=100), {}
    for _ in range(24):
        bench.scene.copy(row_bytes=1)
    bench.run(watch=lambda engine: watch(
        events, issued=engine.write.aw.valid & engine.write.aw.ready,
        answered=engine.write.b.valid & engine.write.b.ready))
    assert len(events["issued"]) == len(events["answered"]) == 24
    outstanding = [issued - sum(cycle < at for cycle in events["answered"])
                   for issued, at in enumerate(events["issued"], 1)]
    assert max(outstanding) == config.bursts


def test_done_that_is_not_taken_holds_up_no_response():
    """Responses are taken while nobody takes the messages; what has no room is not issued."""
    config = make_config(16, bursts=4)
    engine, events = CopyEngine(config), {}
    model = MemoryModel(size=SIZE)

    async def give(ctx):
        ctx.set(engine.windows[0], {"valid": 1, "base": 0, "last": SIZE - 1})
        ctx.set(engine.i.valid, 1)
        ctx.set(engine.i.payload.command, fields(Copy(
            source=0, row_bytes=1, destination=SIZE // 2)))
        await ticks(ctx, 200)

    result = run_stream_test(
        engine, feeds={}, sinks={"o_feed": None}, seed=1, quiet_cycles=150,
        testbenches=[give, model.serve_read_port(engine.read),
                     model.serve_write_port(engine.write),
                     watch(events, answered=engine.write.b.valid & engine.write.b.ready,
                           waits=engine.write.b.valid & ~engine.write.b.ready)])
    assert result.cycles >= 150
    assert len(events["answered"]) == config.bursts
    assert "waits" not in events


@pytest.mark.parametrize("bus_bytes", [8, 64])
def test_aw_w_order(bus_bytes):
    """A burst is issued when all its beats are there: they follow without a gap, in order."""
    bench, events = Bench(make_config(bus_bytes, burst_bytes=512), 5), {}
    for _ in range(12):
        bench.scene.random(most=2000)

    # Reads come late at random, writes are taken at once.
    bench.reads = MemoryModel(size=SIZE, latency=9, shuffle=True, seed=5)
    assert bench.reads.data == bench.model.data
    bench.run(watch=lambda engine: watch(
        events, issued=engine.write.aw.valid & engine.write.aw.ready,
        beat=engine.write.w.valid & engine.write.w.ready,
        last=engine.write.w.valid & engine.write.w.payload.last))
    assert len(events["issued"]) == len(events["last"]) == len(bench.model.writes)
    beats = iter(events["beat"])
    for issued, last, (_, count) in zip(
            events["issued"], events["last"], bench.model.writes, strict=True):
        cycles = [next(beats) for _ in range(count)]
        assert cycles == list(range(last - count + 1, last + 1))
        assert issued < cycles[0]


@pytest.mark.parametrize("bus_bytes", [8, 16])
def test_tiny_unaligned_zero(bus_bytes):
    """Every alignment of source and destination, sizes around a beat, and no bytes at all."""
    bench = Bench(make_config(bus_bytes), 6)
    places = range(bus_bytes) if bus_bytes == 8 else (0, 1, 7, 8, 15)
    for source in places:
        for destination in places:
            for size in (1, 2, bus_bytes - 1, bus_bytes, bus_bytes + 1, 2 * bus_bytes + 1):
                offset = (destination - bench.scene.free) % bus_bytes
                bench.scene.copy(row_bytes=size, source=64 + source, offset=offset)
            bench.scene.run(Copy(source=64 + source, row_bytes=0, tag=source,
                                 destination=bench.scene.free))
    bench.run(timeout=20_000)


@pytest.mark.parametrize("good_beats", [0, 1, 5])
def test_early_end_of_stream(good_beats):
    """A frame that cannot be read to its end ends early, or does not begin."""
    config = make_config(16, burst_bytes=16)
    bench = Bench(config, 7, faults=(1024, 1040))
    result = bench.scene.copy(row_bytes=400, source=1024 - 16 * good_beats + 3, feed=True)
    assert result.error == golden.CopyError.READ
    assert len(result.feed or b"") == max(0, 16 * good_beats - 3) // 16 * 16
    bench.scene.copy(row_bytes=100, source=0, feed=True)
    bench.scene.copy(row_bytes=100, source=0)
    bench.run(seed=7, stall=0.3)


def test_reads_wait_for_room():
    """What is read faster than it is taken stays within the buffer."""
    bench = Bench(make_config(64, bursts=64, burst_bytes=1024), 10)
    assert CopyReader(bench.config).buffer_beats == 256 < 4 * 8000 // 64
    for _ in range(4):
        bench.scene.copy(row_bytes=8000, feed=True)
    bench.run(stall=0.7)


# Abort.
