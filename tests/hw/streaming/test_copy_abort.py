"""Copies that are ended early."""

import pytest

from golden.streaming import copy as golden
from golden.streaming.copy import Copy
from hw.streaming.copy import CopyEngine
from hw.streaming.layouts import CopyError
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel
from tests.hw.streaming.copies import fields, make_config, window_fields
from tests.hw.streaming.copy_bench import SIZE, Bench, frames_of, ticks


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
