"""Cycles and refusals of the parts of append; what they do is tested with the whole."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.attention.admission import Admission
from hw.attention.append_sequence import AppendSequence
from hw.attention.code_beats import CodeBeats
from hw.attention.layouts import Error
from hw.attention.paging import Paging
from hw.attention.row_beats import RowBeats
from hw.attention.row_writer import RowWriter
from hw.config import AttentionConfig
from hw.presets import PRESETS
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel

TINY = PRESETS["tiny"].attention
STREAMED = AttentionConfig(head_dim=32, code_bits=64, lanes=16, max_tokens=256, memory_bytes=16,
                           code_source="streamed")


def burst(address, beats):
    return [{"address": address, "length": beats - 1, "data": address + n, "strobe": 0xFFFF,
             "last": int(n == beats - 1)} for n in range(beats)]


def test_row_writer_latency_and_throughput():
    memory = MemoryModel(size=1024, latency=7)
    dut = RowWriter(TINY)
    beats = [beat for n in range(12) for beat in burst(32 * n, 1 + n % 3)]
    seen = []

    async def watch(ctx):
        cycle = 0
        while True:
            _, _, valid, ready = await ctx.tick().sample(dut.axi.w.valid, dut.axi.w.ready)
            if valid and ready:
                seen.append(cycle)
            cycle += 1

    result = run_stream_test(dut, feeds={"i": beats}, sinks={}, seed=0,
                             testbenches=[memory.serve_axi_writes(dut.axi), watch])
    assert result.input_cycles["i"] == list(range(len(beats)))
    assert seen == list(range(1, len(beats) + 1))
    assert memory.writes == [(32 * n, 1 + n % 3) for n in range(12)]


def test_row_writer_closes_after_the_last_response():
    memory = MemoryModel(size=1024, latency=7)
    dut = RowWriter(TINY)

    async def close(ctx):
        await ctx.tick().repeat(6)
        ctx.set(dut.i_close.payload, {"error": Error.NONE})
        ctx.set(dut.i_close.valid, 1)
        await ctx.tick().until(dut.i_close.ready)
        ctx.set(dut.i_close.valid, 0)

    result = run_stream_test(dut, feeds={"i": burst(0, 2) + burst(32, 2)}, sinks={"o_done": 1},
                             seed=0, testbenches=[memory.serve_axi_writes(dut.axi), close])
    # The last beat is on the bus in cycle 4, its response in cycle 11.
    assert result.output_cycles["o_done"] == [12]


class Admitted(wiring.Component):
    """`Admission` beside its block table."""

    def __init__(self, config):
        self.config = config
        members = Admission(config).signature.members
        super().__init__({"i": members["i"], "o": members["o"]})

    def elaborate(self, platform):
        m = Module()
        m.submodules.paging = paging = Paging(self.config)
        m.submodules.admission = admission = Admission(self.config)
        wiring.connect(m, wiring.flipped(self.i), admission.i)
        wiring.connect(m, admission.paging, paging.append)
        wiring.connect(m, admission.o, wiring.flipped(self.o))
        return m


def test_admission_latency_and_throughput():
    entry = {"key_limit": 1 << 16, "value_limit": 1 << 16, "summary_limit": 1 << 16}
    # The table is zero before it is written: every page lies at the regions' bases.
    rows = [{"position": position, "entry": entry} for position in (13, 14, 15, 16)]
    result = run_stream_test(Admitted(TINY), feeds={"i": rows}, sinks={"o": 4}, seed=0)
    assert result.output_cycles["o"] == [7, 15, 25, 33]
    assert [row["store"] for row in result.outputs["o"]] == [1, 1, 1, 1]
    assert [row["has_summary"] for row in result.outputs["o"]] == [0, 0, 1, 0]


def test_code_beats_latency_and_throughput():
    tokens = [{"position": 17 + n, "code_address": 4096, "code": n + 1, "keys": [5], "values": [6]}
              for n in range(3)]
    result = run_stream_test(CodeBeats(STREAMED), feeds={"i": tokens}, sinks={"o": 6}, seed=0)
    assert result.output_cycles["o"] == [2, 3, 6, 7, 10, 11]
    beats = result.outputs["o"]
    line = 4096 + STREAMED.code_line_bytes
    assert [beat["address"] for beat in beats] == [
        line, line + 128, line + 16, line + 128, line + 16, line + 128]
    assert [beat["strobe"] for beat in beats] == [
        0xFF00, 0x000C, 0x00FF, 0x0030, 0xFF00, 0x00C0]


def test_row_beats_pass_at_once():
    pair = {"key": 1, "value": 2, "key_address": 64, "value_address": 128}
    result = run_stream_test(RowBeats(TINY), feeds={"i": [pair] * 2}, sinks={"o": 8}, seed=0)
    assert result.output_cycles["o"] == list(range(8))
    assert [beat["address"] for beat in result.outputs["o"]] == [64, 64, 128, 128] * 2


@pytest.mark.parametrize("make, error, message", [
    (lambda: Admission(1), TypeError, "Admission config must be an AttentionConfig, not 1"),
    (lambda: AppendSequence(1), TypeError,
     "AppendSequence config must be an AttentionConfig, not 1"),
    (lambda: RowBeats(1), TypeError, "RowBeats config must be an AttentionConfig, not 1"),
    (lambda: RowWriter(1), TypeError, "RowWriter config must be an AttentionConfig, not 1"),
    (lambda: RowWriter(TINY, outstanding=1), ValueError,
     "RowWriter outstanding must be at least 2, not 1"),
    (lambda: CodeBeats(TINY), ValueError,
     "CodeBeats config.code_source must be 'streamed', not 'resident'"),
])
def test_refuses(make, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        make()
