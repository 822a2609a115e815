from collections import deque

import numpy as np
import pytest

from golden.streaming.writer import Outcome as Golden
from hw.config import StreamingConfig
from hw.streaming.burst_writer import BurstWriter
from hw.streaming.layouts import Outcome
from hw.streaming.page_finder import PageFinder
from hw.streaming.row_plan import RowPlan
from hw.streaming.write_tracker import WriteTracker
from hw.streaming.writer import PageWriter, PlacementQueue
from tests.hw.harness import plain as unwrapped
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import SLVERR, Fault, MemoryModel
from tests.writer_system import WriterScene, WriterSystem

SIZE = 1 << 17


def make_config(bus_bytes, *, head_dim=32, block=32, bursts=16, **sizes):
    return StreamingConfig(
        head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block, chunk_tokens=64, chunks=4,
        table_pages=20, bursts=bursts, formats=("MXINT8",), outstanding=2,
        **{"address_bits": 24, **sizes})


CONFIGS = {
    "narrow": make_config(8, head_dim=64),
    "middle": make_config(16, head_dim=128, bursts=4),
    "wide": make_config(64, head_dim=64, windows=5),
    "whole_row": make_config(32, head_dim=32, bursts=8),
    "blocks": make_config(64, head_dim=256, bursts=2, address_bits=40),
}


def numbers(items):
    return [{**item, "outcome": Outcome(item["outcome"]).value} for item in map(unwrapped, items)]


def run_scene(scene, *, seed=0, stall=0.0, memory=None, watch=(), **options):
    """Run a scene on the system and compare all of it."""
    config = scene.config
    system = WriterSystem(config, entries=len(scene.table))
    result = run_stream_test(
        system, seed=seed, stall_probability=stall, timeout_cycles=50_000, quiet_cycles=40,
        inputs={"windows": scene.window_values},
        feeds={"i_entry": scene.table_writes, "i_placement": scene.placements, "i": scene.items,
               "other.aw": scene.other_requests, "other.w": scene.other_beats},
        sinks={"o_done": len(scene.done), "other.b": len(scene.other_requests)},
        testbenches=[memory.serve_axi_writes(system.m_axi), *(one(system) for one in watch)],
        **options)
    assert numbers(result.outputs["o_done"]) == scene.done
    assert memory.data == scene.expected
    ours = [burst for burst in memory.writes if burst[0] < 3 * scene.quarter]
    assert ours == [(burst.address, burst.beats(config.bus_bytes)) for burst in scene.bursts]
    assert all(address % 4096 + beats * config.bus_bytes <= 4096
               for address, beats in memory.writes)
    return result


def make_scene(config, *, seed=0, **memory):
    model = MemoryModel(size=SIZE, seed=seed, **memory)
    return WriterScene(config, model.data, seed=seed), model


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [pytest.param(0.0, marks=pytest.mark.regress), 0.4])
def test_chunks_of_every_kind(name, stall):
    scene, memory = make_scene(CONFIGS[name], seed=len(name), shuffle=stall > 0)
    for _ in range(6):
        scene.random_chunk()
        scene.other_burst()
    run_scene(scene, seed=1, stall=stall, memory=memory)


def test_a_chunk_is_cut_at_every_row():
    """Also with no row at all, and refused when all had come; the chunk behind it is right."""
    config = CONFIGS["whole_row"]
    scene, memory = make_scene(config, seed=4)
    for rows in range(35):
        scene.chunk(17, rows=rows, refused=True, has_exponents=True)
        if rows % 4 == 0:
            scene.chunk(2)
    scene.chunk(17, rows=33, refused=False)
    assert scene.outcomes() == {Golden.DONE, Golden.REFUSED}
    run_scene(scene, memory=memory)


def test_chunks_without_rows_in_a_row():
    scene, memory = make_scene(CONFIGS["narrow"])
    for tokens in (64, 1, 17, 33):
        scene.chunk(tokens, rows=0, refused=True)
    scene.chunk(3)
    assert [done["beats"] for done in scene.done][:4] == [0] * 4
    run_scene(scene, memory=memory)


def test_bursts_at_4_kib():
    """Each number of beats before the boundary; a row that ends there leaves no stray burst."""
    config = CONFIGS["middle"]
    scene, memory = make_scene(config)
    cuts = []
    for beats in range(10):
        before = 16 * beats
        plan = scene.chunk(
            16, key_base=4096 - before, value_base=scene.quarter + 4096 + before, row_stride=2176,
            page_stride=0, exponent_base=2 * scene.quarter + 4096 - before, exponent_stride=0,
            has_exponents=True)
        cuts.append(len(plan.bursts) - 33)
    assert min(cuts) == 0 and max(cuts) > 2
    run_scene(scene, memory=memory)


@pytest.mark.parametrize("fields", [
    {"window_mask": 0}, {"window_mask": 4}, {"table_index": 20}, {"table_index": 19},
    {"key_base": 1}, {"value_base": (1 << 24) - 32}, {"exponent_base": (1 << 24) - 32},
    {"page_stride": (1 << 32) - 32}, {"exponent_stride": (1 << 32) - 32}, {"window_mask": 2},
    {"key_base": (1 << 24) - 32, "page_stride": 0, "row_stride": (1 << 16) - 32}])
def test_nothing_is_written_outside_the_windows(fields):
    scene, memory = make_scene(CONFIGS["whole_row"])
    scene.table[:] = [scene.pages - 1] * 20
    plan = scene.chunk(18, has_exponents=True, **fields)
    assert scene.outcomes() == {Golden.WINDOW}
    assert plan.refused or plan.refused_pages
    scene.chunk(2)
    run_scene(scene, memory=memory)


@pytest.mark.parametrize("low, high, is_granted", [
    (0, 0, True), (1, 0, False), (0, -1, False), (32, 0, False), (0, -32, False)])
def test_a_window_to_the_byte(low, high, is_granted):
    """A window that is just what a row takes, or less."""
    scene, memory = make_scene(CONFIGS["whole_row"])
    scene.windows[0] = scene.windows[0]._replace(base=64 + low, last=95 + high)
    scene.windows[3] = scene.windows[3]._replace(base=scene.quarter, last=scene.quarter + 31)
    plan = scene.chunk(1, key_base=64, value_base=scene.quarter, page_stride=0, window_mask=9,
                       has_exponents=False)
    assert plan.refused == (() if is_granted else (0,))
    run_scene(scene, memory=memory)


def test_two_windows_are_not_one():
    """A row that lies half in one window and half in the next is in neither."""
    scene, memory = make_scene(CONFIGS["middle"])
    scene.windows[0] = scene.windows[0]._replace(last=63)
    scene.windows[1] = scene.windows[1]._replace(base=64)
    plan = scene.chunk(1, key_base=0, value_base=scene.quarter, page_stride=0, window_mask=3,
                       has_exponents=False)
    assert plan.refused == (0,)
    run_scene(scene, memory=memory)


@pytest.mark.parametrize("place", ["key", "value", "exponents", "second half"])
def test_an_error_is_told_of_its_chunk_only(place):
    config = CONFIGS["middle"]
    scene, memory = make_scene(config, latency=30)
    quarter = scene.quarter
    low, size = {"key": (0, 128), "value": (quarter, 128), "exponents": (2 * quarter, 128),
                 "second half": (4096, 64)}[place]
    scene.faults.append((low, low + size))
    memory.write_faults.append(Fault(low, low + size, SLVERR))
    fields = {"page_stride": 0, "exponent_stride": 0, "row_stride": 128, "has_exponents": True}
    spots = {"key_base": 128, "value_base": quarter + 128, "exponent_base": 2 * quarter + 128}
    hit = {"key": {"key_base": 0}, "value": {"value_base": quarter},
           "exponents": {"exponent_base": 2 * quarter}, "second half": {"key_base": 4032}}[place]
    scene.chunk(3, **fields, **spots)
    scene.chunk(3, **fields, **{**spots, **hit})
    scene.chunk(3, **fields, **spots)
    scene.chunk(3, **fields, **{**spots, **hit}, refused=True)
    assert [done["outcome"] for done in scene.done] == [
        Golden.DONE, Golden.WRITE, Golden.DONE, Golden.REFUSED]
    run_scene(scene, memory=memory)


def watch_beats(cycles):
    """Note the cycle of each data beat on the bus."""
    def make(system):
        async def watch(ctx):
            now = 0
            while True:
                _, _, valid, ready = await ctx.tick().sample(system.m_axi.w.valid,
                                                             system.m_axi.w.ready)
                if valid and ready:
                    cycles.append(now)
                now += 1
        return watch
    return make


@pytest.mark.parametrize("bus, dim", [
    (8, 32), (16, 256), (64, 64), *(pytest.param(*sizes, marks=pytest.mark.regress)
                                    for sizes in [(8, 256), (32, 64), (64, 128)])])
@pytest.mark.parametrize("has_exponents", [False, True])
def test_a_beat_in_every_cycle(bus, dim, has_exponents):
    """Rows of 1 to 32 beats; between chunks, a cycle for the close and none else."""
    config = make_config(bus, head_dim=dim)
    scene, memory = make_scene(config, latency=4)
    for _ in range(3):
        scene.chunk(64 if bus == 64 else 17, has_exponents=has_exponents)
    cycles = []
    run_scene(scene, memory=memory, watch=[watch_beats(cycles)])
    beats = sum(done["beats"] for done in scene.done)
    assert len(cycles) == beats
    assert cycles[-1] - cycles[0] + 1 == beats + 2


@pytest.mark.parametrize("bursts", [2, 8])
def test_no_more_bursts_are_open_than_allowed(bursts):
    """Answers that take long let ``bursts`` rows pass per round trip, whatever the rows' number."""
    config = make_config(32, head_dim=32, bursts=bursts)
    scene, memory = make_scene(config, latency=50)
    scene.chunk(16, has_exponents=False)
    cycles = []
    run_scene(scene, memory=memory, watch=[watch_beats(cycles)])
    groups = np.reshape(cycles, (-1, bursts))
    assert (np.diff(groups) == 1).all()
    # From a row to its answer, back to the counter, and to the next row.
    assert (np.diff(groups[:, 0]) == 50 + 5).all()


def test_latencies():
    config = CONFIGS["wide"]
    scene, _ = make_scene(config)
    scene.chunk(1, has_exponents=False)
    entry = scene.table_writes[scene.placements[0]["table_index"]]
    result = run_stream_test(
        PageWriter(config), seed=0, inputs={"windows": scene.window_values},
        feeds={"i_entry": [entry], "i_placement": scene.placements,
               "i_stored": [item["beat"] for item in scene.items if "beat" in item]},
        sinks={"bus.aw": 2, "bus.w": 2})
    assert result.input_cycles["i_placement"] == [0]
    assert result.input_cycles["i_stored"] == [13, 14]
    assert result.output_cycles["bus.aw"] == result.output_cycles["bus.w"] == [14, 15]


def test_a_report_waits_for_the_last_answer():
    config = CONFIGS["wide"]
    scene, _ = make_scene(config)
    scene.chunk(2, has_exponents=False)
    system = WriterSystem(config, entries=len(scene.table))
    answers = deque([90, 95, 99, 120])

    async def answer(ctx):
        now = 0
        while True:
            ctx.set(system.m_axi.b.valid, bool(answers) and answers[0] == now)
            await ctx.tick()
            if answers and answers[0] == now:
                answers.popleft()
            now += 1
    result = run_stream_test(
        system, seed=0, inputs={"windows": scene.window_values}, testbenches=[answer],
        feeds={"i_entry": scene.table_writes, "i_placement": scene.placements, "i": scene.items},
        sinks={"m_axi.aw": 4, "m_axi.w": 4, "o_done": 1})
    assert result.output_cycles["o_done"] == [122]


def test_outcomes_not_taken_do_not_hold_up_answers():
    """Chunks are written while there is room, and each has its own outcome, one without a burst
    among those whose answers all wait."""
    config = make_config(32, head_dim=32, bursts=8)
    scene, memory = make_scene(config)
    scene.faults.append((0, 32))
    memory.write_faults.append(Fault(0, 32, SLVERR))
    for base, rows in ((0, 2), (64, 0), (64, 2), (0, 2), (64, 0), (64, 0), (0, 2), (64, 2)):
        scene.chunk(1, rows=rows, key_base=base, page_stride=0, has_exponents=False)
    outcomes = [Golden.WRITE, Golden.REFUSED, Golden.DONE, Golden.WRITE, Golden.REFUSED,
                Golden.REFUSED, Golden.WRITE, Golden.DONE]
    assert [done["outcome"] for done in scene.done] == outcomes
    system = WriterSystem(config, entries=len(scene.table))
    found = []

    async def hold(ctx):
        while len(found) < len(outcomes):
            ctx.set(system.o_done.ready, 0)
            for _ in range(60):
                _, _, valid, ready = await ctx.tick().sample(
                    system.m_axi.b.valid, system.m_axi.b.ready)
                assert ready or not valid
            ctx.set(system.o_done.ready, 1)
            # All of one at a time would hide what one leaves behind for the next.
            for _ in range(2 * len(found) + 1):
                _, _, valid, outcome = await ctx.tick().sample(
                    system.o_done.valid, system.o_done.payload.outcome)
                if valid:
                    found.append(outcome.value)

    run_stream_test(
        system, seed=0, inputs={"windows": scene.window_values}, quiet_cycles=300,
        testbenches=[memory.serve_axi_writes(system.m_axi), hold],
        feeds={"i_entry": scene.table_writes, "i_placement": scene.placements, "i": scene.items},
        sinks={})
    assert found == outcomes


def test_a_close_waits_for_its_placement():
    config = CONFIGS["wide"]
    result = run_stream_test(PageWriter(config), seed=0, feeds={}, sinks={"o_done": 0},
                             inputs={"i_close.valid": 1})
    assert result.outputs["o_done"] == []


def test_outcomes_are_those_of_golden():
    assert {outcome.name: outcome.value for outcome in Golden} == {
        outcome.name: outcome.value for outcome in Outcome}


def test_a_config_is_asked_for():
    for unit in (PageWriter, PlacementQueue, PageFinder, RowPlan, BurstWriter, WriteTracker):
        with pytest.raises(TypeError, match=f"^{unit.__name__} config must be a StreamingConfig"):
            unit(3)
