import pytest

from hw.attention.append import Append
from hw.attention.layouts import Error
from hw.config import AttentionConfig
from tests.append_system import AppendScene, AppendSystem
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import SLVERR, Fault, MemoryModel


def resident(head_dim=32, memory_bytes=16, lanes=4, **options):
    return AttentionConfig(head_dim=head_dim, code_bits=32, lanes=lanes, max_tokens=256,
                           memory_bytes=memory_bytes, contexts=2, table_pages=8, address_bits=20,
                           **options)


def streamed(memory_bytes=16, code_bits=64, **options):
    return AttentionConfig(head_dim=32, code_bits=code_bits, lanes=16, max_tokens=256,
                           memory_bytes=memory_bytes, contexts=2, table_pages=8, address_bits=20,
                           code_source="streamed", **options)


class Run:
    """A scene on the unit; compares everything that comes out, and the memory in the end."""

    def __init__(self, config, *, seed=0, size=1 << 16, **memory_options):
        self.memory = MemoryModel(size=size, seed=seed, **memory_options)
        self.scene = AppendScene(config, self.memory.data, seed=seed)
        self.config = config

    def run(self, *, encoder=None, **options):
        scene = self.scene
        dut = AppendSystem(self.config, entries=len(scene.table))
        feeds = {"i_entry": scene.table_writes, "i": scene.rows}
        sinks = {"o_done": len(scene.done)}
        testbenches = [self.memory.serve_axi_writes(dut.m_axi)]
        if encoder is None:
            feeds["i_encoded"] = scene.encoded
            sinks["o_encode"] = len(scene.requests)
        else:
            testbenches.append(encoder(dut, scene.encoded))
        if self.config.code_source == "resident":
            sinks["o_code"] = len(scene.codes)
        result = run_stream_test(dut, feeds=feeds, sinks=sinks, testbenches=testbenches,
                                 **{"seed": 1, "timeout_cycles": 40_000, **options})
        assert result.outputs["o_done"] == scene.done
        assert result.outputs.get("o_encode", scene.requests) == scene.requests
        assert result.outputs.get("o_code", scene.codes) == scene.codes
        assert self.memory.data == scene.expected
        return result


@pytest.mark.parametrize("config, stall", [
    (resident(), 0.0), (resident(), 0.4), (resident(64, 64), 0.4),
    (resident(64, 8, lanes=32, exponent_block=64, query_bits=8), 0.2),
    (streamed(), 0.3), (streamed(32, 128), 0.0), (streamed(4, 64), 0.0), (streamed(8, 32), 0.3),
], ids=["tiny", "tiny-stalls", "whole-row", "narrow", "streamed", "streamed-32", "streamed-4",
        "streamed-8"])
def test_tokens_of_two_contexts(config, stall):
    run = Run(config, seed=config.memory_bytes, shuffle=stall > 0)
    for context, count in ((0, 17), (1, 5), (0, 1), (1, 11), (1, 1)):
        run.scene.command(context, count, has_code=count == 11)
    run.run(stall_probability=stall)


def test_a_row_outside_its_window_ends_the_command():
    run = Run(resident())
    entry = run.scene.entries[0]
    # Token 5 of the first page does not fit; it does after the host has moved the limit.
    run.scene.command(0, 3)
    first_key = run.scene.addresses(entry, 5)[0]
    run.scene.entries[0] = {**entry, "key_limit": first_key + 31}
    run.scene.command(0, 6)
    run.scene.command(0, 4)
    run.scene.entries[0] = entry
    run.scene.command(0, 20)
    run.run(stall_probability=0.2)
    assert [status["error"] for status in run.scene.done] == [
        Error.NONE, Error.WINDOW, Error.WINDOW, Error.NONE]


def test_a_summary_outside_its_window_ends_the_command():
    run = Run(resident())
    entry = run.scene.entries[1]
    run.scene.entries[1] = {**entry, "summary_limit": run.scene.addresses(entry, 0)[3] + 31}
    run.scene.command(1, 15)
    run.scene.command(1, 2)
    run.scene.command(0, 1)
    run.run()
    assert [status["error"] for status in run.scene.done] == [
        Error.NONE, Error.WINDOW, Error.NONE]


def test_a_context_without_summaries():
    run = Run(resident())
    run.scene.entries[0]["summary_limit"] = 0
    run.scene.command(0, 17)
    run.run()
    assert [status["error"] for status in run.scene.done] == [Error.NONE]


@pytest.mark.parametrize("error_at", [0, 2, 4])
def test_an_error_that_comes_with_a_row_is_passed_on(error_at):
    run = Run(resident())
    run.scene.command(0, 13)
    run.scene.command(0, 5, error=Error.EXPONENT, error_at=error_at)
    run.scene.command(0, 4)
    run.run(stall_probability=0.2)
    assert [status["error"] for status in run.scene.done] == [
        Error.NONE, Error.EXPONENT, Error.NONE]


def test_the_first_error_counts():
    run = Run(resident())
    entry = run.scene.entries[0]
    run.scene.entries[0] = {**entry, "value_limit": run.scene.addresses(entry, 1)[1]}
    run.scene.command(0, 5, error=Error.DATA, error_at=3)
    run.run()
    assert run.scene.done == [{"error": Error.WINDOW}]


def test_write_errors_belong_to_their_command():
    run = Run(resident(), latency=30)
    scene = run.scene
    key = scene.addresses(scene.entries[0], 2)[0]
    scene.write_faults.append((key, key + 32))
    run.memory.write_faults.append(Fault(key, key + 32, response=SLVERR))
    for context, count in ((0, 2), (0, 1), (1, 3), (1, 1)):
        scene.command(context, count)
    run.run()
    assert [status["error"] for status in scene.done] == [
        Error.NONE, Error.WRITE, Error.NONE, Error.NONE]


def test_the_command_is_done_after_its_last_response():
    run = Run(resident(), latency=25)
    run.scene.command(0, 1, has_code=True)
    result = run.run()
    row = result.input_cycles["i"][0]
    # Looked up in 7 cycles, held, noted, and issued; the last beat is the fourth.
    beats = [row + 3 + n for n in range(4)]
    answered = beats[-1] + 25
    assert result.output_cycles["o_done"] == [answered + 1]


def fake_encoder(cycles):
    """An encoder that takes a key every ``cycles`` cycles, and answers with the codes given."""
    def testbench(dut, codes):
        async def encode(ctx):
            for code in codes:
                ctx.set(dut.o_encode.ready, 1)
                await ctx.tick().until(dut.o_encode.valid)
                ctx.set(dut.o_encode.ready, 0)
                await ctx.tick().repeat(cycles - 2)
                ctx.set(dut.i_encoded.payload, code)
                ctx.set(dut.i_encoded.valid, 1)
                await ctx.tick().until(dut.i_encoded.ready)
                ctx.set(dut.i_encoded.valid, 0)
        return encode
    return testbench


@pytest.mark.parametrize("config, encode_cycles, limit", [
    (resident(), 64, 64), (resident(), 4, 10), (streamed(4), 4, 21), (streamed(16), 40, 40),
], ids=["encoder", "summary", "bus", "streamed-encoder"])
def test_tokens_overlap(config, encode_cycles, limit):
    run = Run(config)
    run.scene.command(0, 14)
    result = run.run(encoder=fake_encoder(encode_cycles))
    taken = result.input_cycles["i"]
    steps = [after - before for before, after in zip(taken[3:], taken[4:], strict=False)]
    assert steps == [limit] * len(steps)


def test_refuses():
    with pytest.raises(TypeError, match="^Append config must be an AttentionConfig, not {}$"):
        Append({})
    with pytest.raises(ValueError, match="^Append id_bits must be at least 1, not 0$"):
        Append(resident(), id_bits=0)
