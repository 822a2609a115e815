"""The copy engine against golden, in Amaranth's simulator."""

import random

import pytest

from golden.streaming import copy as golden
from golden.streaming.copy import Copy
from hw.streaming.copy import CopyEngine
from hw.streaming.copy_align import CopyAlign
from hw.streaming.copy_check import CopyCheck
from hw.streaming.copy_feed import CopyFeed
from hw.streaming.copy_reader import CopyReader
from hw.streaming.copy_rows import CopyRows
from hw.streaming.copy_writer import CopyWriter
from hw.streaming.layouts import CopyError, CopyKind
from tests.hw.harness import run_stream_test
from tests.hw.memory import Fault, MemoryModel
from tests.hw.streaming.copies import Scene, fields, make_config, window_fields

SIZE = 1 << 15


def test_errors_and_kinds_are_those_of_golden():
    for hardware, model in ((CopyError, golden.CopyError), (CopyKind, golden.CopyKind)):
        assert {each.name: each.value for each in hardware} == {
            each.name: each.value for each in model}


def frames_of(beats):
    frames, current = [], bytearray()
    for beat in beats:
        size = beat["keep"].bit_count()
        assert beat["keep"] == (1 << size) - 1
        current += beat["data"].to_bytes(64, "little")[:size]
        if beat["last"]:
            frames.append(bytes(current))
            current.clear()
    assert not current
    return frames


class Bench:
    """An engine, a memory, and a scene on it."""

    def __init__(self, config, seed, *, latency=4, shuffle=False, faults=(0, 0), fault_kind="read"):
        self.config = config
        self.model = MemoryModel(size=SIZE, latency=latency, shuffle=shuffle, seed=seed)
        kinds = {"read": {"read_faults": faults}, "write": {"write_faults": faults}}
        self.scene = Scene(config, random.Random(seed), self.model.data, **kinds[fault_kind])
        into = {"read": self.model.faults, "write": self.model.write_faults}[fault_kind]
        into.append(Fault(*faults, response=2))
        self.reads = None   # another memory that answers reads

    def run(self, *, seed=0, stall=0.0, timeout=40_000, watch=None):
        """Run the scene, and compare all that comes out with golden."""
        engine, scene = CopyEngine(self.config), self.scene
        memory = self.reads or self.model
        result = run_stream_test(
            engine,
            feeds={"i": [{"command": fields(command)} for command in scene.commands]},
            sinks={"o_done": len(scene.commands), "o_feed": None},
            inputs={"windows": window_fields(scene.windows)},
            seed=seed, stall_probability=stall, timeout_cycles=timeout,
            testbenches=[memory.serve_read_port(engine.read),
                         self.model.serve_write_port(engine.write),
                         *([watch(engine)] if watch else [])])
        assert [{**done, "error": done["error"].value} for done in result.outputs["o_done"]] == (
            scene.done())
        assert frames_of(result.outputs["o_feed"]) == scene.frames()
        assert self.model.data == scene.memory
        assert not self.model.held_cycles
        return result


@pytest.mark.parametrize("bus_bytes", [8, 16, 32, 64])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_random_commands(bus_bytes, stall):
    seed = bus_bytes + int(10 * stall)
    bench = Bench(make_config(bus_bytes), seed, shuffle=stall > 0)
    for _ in range(40):
        (bench.scene.bad if bench.scene.rng.random() < 0.2 else bench.scene.random)()
    bench.run(seed=seed, stall=stall)
    reads = [(address - address % bus_bytes, (address % bus_bytes + size - 1) // bus_bytes + 1)
             for result in bench.scene.results for address, size in result.reads]
    assert bench.model.reads == reads
    assert bench.model.writes == [
        (address, (address % bus_bytes + size - 1) // bus_bytes + 1)
        for result in bench.scene.results for address, size in result.writes]


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("bus_bytes", [8, 32])
def test_faults_do_not_reach_the_next_command(bus_bytes, kind):
    source = SIZE // 4
    low = source if kind == "read" else SIZE // 2 + 1000
    bench = Bench(make_config(bus_bytes), bus_bytes, shuffle=True, faults=(low, low + 2500),
                  fault_kind=kind)
    scene = bench.scene
    for index in range(20):
        rows = scene.rng.randrange(1, 4)
        scene.copy(row_bytes=scene.rng.randrange(1, 500), rows=rows, source_stride=600,
                   source=source - 1500 + scene.rng.randrange(3000),
                   feed=rows == 1 and index % 3 == 0)
    assert {result.error for result in scene.results} == {
        golden.CopyError.NONE, golden.CopyError[kind.upper()]}
    bench.run(seed=1, stall=0.3)


async def ticks(ctx, count):
    for _ in range(count):
        await ctx.tick()


def watch(events, **signals):
    """A testbench that notes the cycles in which a signal is high."""
    async def run(ctx):
        cycle = 0
        while True:
            _, _, *values = await ctx.tick().sample(*signals.values())
            for name, value in zip(signals, values, strict=True):
                if value:
                    events.setdefault(name, []).append(cycle)
            cycle += 1
    return run


@pytest.mark.parametrize("address_bits, largest", [(20, 16), (40, 32), (64, 32)])
def test_what_is_refused(address_bits, largest):
    """Commands of any size, of which many just fit, and the others just do not."""
    rng, top = random.Random(address_bits), 1 << address_bits
    config = make_config(8, address_bits=address_bits)
    granted = [golden.Window(top // 4, top - 1), golden.Window(top // 8, top // 4 + 10)]

    def command():
        rows = rng.choice([0, 1, 1, 2, rng.randrange(1 << 16)])
        row_bytes = rng.getrandbits(rng.randrange(1, largest + 1))
        strides = [min(0xFFFF_FFFF, rng.choice([
            row_bytes, row_bytes - 1 & 0xFFFF_FFFF, rng.getrandbits(largest)])) for _ in range(2)]
        span = (rows - 1) * strides[1] + row_bytes
        destination = rng.choice([top // 4, top // 4 - 1, top - span, top - span + 1,
                                  top // 4 + 11 - span, top // 4 + 12 - span]) % top
        reach = (rows - 1) * strides[0] + row_bytes
        source = rng.choice([0, destination + span, destination + span - 1, destination - reach,
                             destination - reach + 1, top - reach, top - reach + 1]) % top
        return Copy(kind=rng.choice([0, 0, 0, 1]), source=source, destination=destination,
                    row_bytes=row_bytes, rows=rows, source_stride=strides[0],
                    destination_stride=strides[1], window_mask=rng.choice([3, 3, 1, 2, 0]))

    commands = [command() for _ in range(400)]
    want = [golden.find_fault(each, address_bits=address_bits, windows=granted)
            for each in commands]
    assert len(set(want)) == 6
    result = run_stream_test(
        CopyCheck(config), feeds={"i": [{"command": fields(each)} for each in commands]},
        sinks={"o": len(commands)}, inputs={"windows": window_fields(granted)}, seed=1,
        stall_probability=0.1)
    assert [task["fault"].value for task in result.outputs["o"]] == want


# What DMA engines have been shipped with.


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


@pytest.mark.parametrize("begin, cycles", [(3, 1), (20, 1), (60, 40), (61, 400), (90, 1)])
def test_abort(begin, cycles):
    """What is aborted has written a part, or nothing; what comes later is right."""
    config = make_config(16)
    bench, engine = Bench(config, begin, latency=20), CopyEngine(config)
    scene = bench.scene
    for _ in range(6):
        scene.copy(row_bytes=400, rows=3)
        scene.copy(row_bytes=300, feed=True)
    scene.copy(row_bytes=5000)

    async def abort(ctx):
        await ticks(ctx, begin)
        ctx.set(engine.abort, 1)
        await ticks(ctx, cycles)
        ctx.set(engine.abort, 0)

    result = run_stream_test(
        engine, feeds={"i": [{"command": fields(command)} for command in scene.commands]},
        sinks={"o_done": len(scene.commands), "o_feed": None}, seed=begin,
        inputs={"windows": window_fields(scene.windows)},
        testbenches=[abort, bench.model.serve_read_port(engine.read),
                     bench.model.serve_write_port(engine.write)])
    done = result.outputs["o_done"]
    assert [item["tag"] for item in done] == [command.tag for command in scene.commands]
    errors = [item["error"] for item in done]
    assert set(errors) <= {CopyError.NONE, CopyError.ABORTED}
    assert CopyError.ABORTED in errors
    frames = frames_of(result.outputs["o_feed"])
    before, after = scene.initial, bytearray(scene.initial)
    for command, error in zip(scene.commands, errors, strict=True):
        if command.kind == golden.CopyKind.FEED:
            want = before[command.source:command.source + command.row_bytes]
            if error == CopyError.NONE:
                assert frames.pop(0) == want
            elif frames and want.startswith(frames[0]) and len(frames[0]) < len(want):
                frames.pop(0)
            continue
        for row in range(command.rows):
            source = command.source + row * command.source_stride
            target = command.destination + row * command.destination_stride
            piece = before[source:source + command.row_bytes]
            found = bench.model.data[target:target + command.row_bytes]
            if error == CopyError.ABORTED:   # a part from the beginning
                count = next((index for index, pair in enumerate(zip(found, piece, strict=True))
                              if pair[0] != pair[1]), len(piece))
                piece = piece[:count] + before[target + count:target + command.row_bytes]
            after[target:target + command.row_bytes] = piece
    assert not frames
    assert bench.model.data == after


class Sponge(MemoryModel):
    """Takes writes to any address, and keeps nothing."""

    def _write_burst(self, address, beats, width):
        self.writes.append((address, len(beats)))
        return 0


def test_drained_by_abort():
    """Held while the engine is busy, abort ends a copy of a week within the latency."""
    config = make_config(16, address_bits=60)
    engine, model, held = CopyEngine(config), Sponge(size=SIZE, latency=10), []

    async def abort(ctx):
        assert not ctx.get(engine.busy)
        await ticks(ctx, 100)
        ctx.set(engine.abort, 1)
        while ctx.get(engine.busy):
            held.append(1)
            await ctx.tick()
        ctx.set(engine.abort, 0)

    small = Copy(source=0, row_bytes=10, destination=1 << 50, tag=1)
    large = Copy(source=0, row_bytes=SIZE, destination=1 << 51, rows=65535,
                 destination_stride=(1 << 32) - 1, tag=2)
    result = run_stream_test(
        engine, feeds={"i": [{"command": fields(command)} for command in (small, large, small)]},
        sinks={"o_done": 3, "o_feed": None}, seed=1,
        inputs={"windows": [{"valid": 1, "base": 1 << 50, "last": (1 << 60) - 1}, {}]},
        testbenches=[abort, model.serve_read_port(engine.read),
                     model.serve_write_port(engine.write)])
    assert [done["error"] for done in result.outputs["o_done"]] == [
        CopyError.NONE, CopyError.ABORTED, CopyError.ABORTED]
    assert len(model.writes) > 1
    assert len(held) < 250


# Cycles.


def test_latency():
    """From a command to its read, from there to its write, and from the response to the message."""
    bench, events, latency = Bench(make_config(16), 8, latency=10), {}, 10
    bench.scene.copy(row_bytes=16, source=32, offset=0)
    bench.scene.bad()
    result = bench.run(watch=lambda engine: watch(
        events, ar=engine.read.ar.valid, aw=engine.write.aw.valid, w=engine.write.w.valid,
        b=engine.write.b.valid))
    start, refused = result.input_cycles["i"]
    done, answered = result.output_cycles["o_done"]
    assert events["ar"] == [start + 6]
    assert events["aw"] == [start + 6 + latency + 5]
    assert events["w"] == [start + 6 + latency + 6]
    assert done - events["b"][0] == 1
    # The answer to the refused command waited for the copy before it.
    assert answered == done + 1
    bench = Bench(make_config(16), 8)
    bench.scene.bad()
    result = bench.run()
    assert result.output_cycles["o_done"][0] - result.input_cycles["i"][0] == 12


@pytest.mark.parametrize("bus_bytes", [8, 16, 32, 64])
@pytest.mark.parametrize("shift", [0, 3, -3])
def test_throughput(bus_bytes, shift):
    """64 bytes at a time: beats follow each other, also across commands. Where the destination is
    ``shift`` bytes later in its beat than the source, or earlier, a beat more is written, or read.
    """
    config = make_config(bus_bytes, bursts=32, burst_bytes=512)
    bench, events = Bench(config, 9, latency=5), {}
    for _ in range(32):
        bench.scene.copy(row_bytes=64, source=64 + max(0, -shift),
                         offset=max(0, shift) - bench.scene.free % 64 + 64)
    bench.run(watch=lambda engine: watch(
        events, w=engine.write.w.valid & engine.write.w.ready))
    beats = events["w"]
    row_beats = 64 // bus_bytes + (shift > 0)
    assert len(beats) == 32 * row_beats
    gaps = beats[-1] - beats[0] + 1 - len(beats)
    assert gaps == (31 if shift < 0 else 0)


def test_configuration_is_checked():
    for part in (CopyEngine, CopyAlign, CopyCheck, CopyFeed, CopyReader, CopyRows, CopyWriter):
        with pytest.raises(TypeError, match=f"{part.__name__} config must be a StreamingConfig"):
            part(None)
