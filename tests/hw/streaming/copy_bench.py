"""A copy engine on a memory, compared with golden."""

import random

from hw.streaming.copy import CopyEngine
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import Fault, MemoryModel
from tests.hw.streaming.copies import Scene, fields, window_fields

SIZE = 1 << 15


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


async def ticks(ctx, count):
    for _ in range(count):
        await ctx.tick()
