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
from tests.hw.streaming.copies import fields, make_config, window_fields
from tests.hw.streaming.copy_bench import SIZE, Bench, watch


def test_errors_and_kinds_are_those_of_golden():
    for hardware, model in ((CopyError, golden.CopyError), (CopyKind, golden.CopyKind)):
        assert {each.name: each.value for each in hardware} == {
            each.name: each.value for each in model}


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
