import random

import pytest

from hw.attention.fetch import Fetch
from hw.attention.layouts import Error, Kind
from hw.config import AttentionConfig
from tests.fetch_system import FetchSystem, Scene
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import SLVERR, Fault, MemoryModel

SIZE = 1 << 15


def config_of(memory_bytes, read_rows=16):
    return AttentionConfig(head_dim=32, code_bits=32, lanes=4, max_tokens=256,
                           memory_bytes=memory_bytes, read_rows=read_rows, table_pages=16,
                           address_bits=20)


class Run:
    """Run a scene's queries and compare; keeps the cycles of what happened."""

    def __init__(self, scene, *, latency=6, shuffle=False, faults=(), seed=0, stall=0.0):
        self.memory = MemoryModel(size=SIZE, latency=latency, shuffle=shuffle, seed=seed)
        self.memory.data[:] = scene.memory
        self.memory.faults = list(faults)
        self.requests = []
        dut = FetchSystem(scene.config, entries=len(scene.table))
        self.result = run_stream_test(
            dut,
            feeds={"i_entry": scene.table_writes, "i_job": scene.jobs, "i_token": scene.tokens},
            sinks={"o_key": len(scene.keys), "o_value": len(scene.values),
                   "o_status": len(scene.statuses)},
            seed=seed, stall_probability=stall,
            testbenches=[self.memory.serve_axi_reads(dut.m_axi), self.watch(dut.m_axi.ar)])
        outputs = self.result.outputs
        assert Scene.matches(scene.keys, outputs["o_key"])
        assert Scene.matches(scene.values, outputs["o_value"])
        assert outputs["o_status"] == scene.statuses
        assert self.memory.held_cycles == []

    def watch(self, ar):
        """Note cycle and id of each request as it appears."""
        async def watch_requests(ctx):
            cycle = 0
            while True:
                _, _, valid, ready, request = await ctx.tick().sample(
                    ar.valid, ar.ready, ar.payload)
                if valid and ready:
                    self.requests.append((cycle, request["id"]))
                cycle += 1
        return watch_requests


@pytest.mark.parametrize("memory_bytes", [8, 16, 32])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_rows_of_every_class_and_layout(memory_bytes, stall):
    scene = Scene(config_of(memory_bytes), seed=memory_bytes, size=SIZE)
    rng = random.Random(memory_bytes)
    for query in range(12):
        scene.add_query(rng.randrange(12), slot=query % 4, logits_only=int(rng.random() < 0.3),
                        context=query % 2)
    Run(scene, shuffle=stall > 0, seed=3, stall=stall)


def test_faults_are_told_once_and_the_next_query_is_clean():
    scene = Scene(config_of(16), seed=5, size=SIZE)
    for entry in scene.entries:
        for name in ("key_limit", "value_limit", "summary_limit"):
            entry[name] -= SIZE // 32
    scene.add_fault(0x400, 0xC00, Error.BUS)
    scene.add_fault(0x2800, 0x3400, Error.SHORT)
    for query in range(40):
        scene.add_query(2, context=query % 2)
    Run(scene, seed=4, stall=0.2, faults=[Fault(0x400, 0xC00, SLVERR),
                                          Fault(0x2800, 0x3400, extra_beats=1)])
    assert {status["error"] for status in scene.statuses} == {
        Error.NONE, Error.WINDOW, Error.BUS, Error.SHORT}


def test_a_table_index_beyond_the_table_is_a_fault():
    scene = Scene(config_of(16), seed=6, size=SIZE)
    scene.add_query(3, kinds=[Kind.FULL])
    scene.jobs[0]["entry"] = {**scene.entries[0], "table_base": 16}
    for beat in scene.keys + scene.values:
        beat["data"] = 0
    scene.statuses[0] = {"error": Error.WINDOW, "beats": 0}
    assert Run(scene).requests == []


def test_latency():
    scene = Scene(config_of(16), seed=7, size=SIZE)
    scene.add_query(1, kinds=[Kind.FULL])
    run = Run(scene, latency=10)
    # The token is taken with its second lookup; its first was a cycle earlier.
    token = run.result.input_cycles["i_token"][0] - 1
    # Five cycles through the lookup, and one through the mux.
    assert run.requests == [(token + 6, 0), (token + 7, 1)]
    assert run.memory.beat_cycles == list(range(token + 16, token + 20))
    assert run.result.output_cycles["o_key"] == [token + 18, token + 19, token + 20]
    assert run.result.output_cycles["o_value"] == [token + 20, token + 21, token + 22]
    assert run.result.output_cycles["o_status"] == [token + 23]


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.COARSE])
@pytest.mark.parametrize("memory_bytes", [8, 16, 32])
@pytest.mark.parametrize("logits_only", [0, 1])
def test_the_bus_carries_a_beat_per_cycle_across_queries(kind, memory_bytes, logits_only):
    config = config_of(memory_bytes, read_rows=32)
    scene = Scene(config, seed=8, size=SIZE)
    for query in range(3):
        scene.add_query(30, slot=query, logits_only=logits_only, kinds=[kind])
    run = Run(scene, latency=12)
    cycles = run.memory.beat_cycles
    beats = (config.coarse_beats if kind == Kind.COARSE else config.full_beats) * 30 * 3
    assert len(cycles) == beats * (2 - logits_only)
    # An END takes the place of one row request: a bubble where rows are of one beat.
    bubbles = cycles[-1] - cycles[0] + 1 - len(cycles)
    assert bubbles == (2 if beats == 90 else 0)


def test_refuses_what_is_no_config():
    with pytest.raises(TypeError, match="^Fetch config must be an AttentionConfig, not 32$"):
        Fetch(32)
