"""The copy engine against golden, in Amaranth's simulator."""

import random

import pytest

from golden.streaming import copy as golden
from golden.streaming.copy import Copy
from hw.streaming.copy import CopyEngine
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

    def run(self, *, seed=0, stall=0.0, timeout=40_000, testbenches=()):
        engine, scene = CopyEngine(self.config), self.scene
        result = run_stream_test(
            engine,
            feeds={"i": [{"command": fields(command)} for command in scene.commands]},
            sinks={"o_done": len(scene.commands), "o_feed": None},
            inputs={"windows": window_fields(scene.windows)},
            seed=seed, stall_probability=stall, timeout_cycles=timeout,
            testbenches=[self.model.serve_read_port(engine.bus),
                         self.model.serve_axi_writes(engine.axi), *testbenches])
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
