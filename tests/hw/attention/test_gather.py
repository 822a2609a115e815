import random

import pytest

from hw.attention.gather import Gather, GatherMode, max_record_beats, record_count_bits
from tests.hw.attention.rows import make_config
from tests.hw.harness import run_stream_test

CONFIG = make_config(memory_bytes=4)


class Command:
    """The data of one command, and the records that should come of it.

    ``shapes``: beats of each record that the command should have, none when it is refused;
    ``length``: beats that it has.
    """

    def __init__(self, rng, shapes, length=None, width=32):
        self.shapes = shapes
        length = sum(shapes) if length is None else length
        words = [rng.getrandbits(width) for _ in range(length)]
        self.beats = [{"data": word, "last": int(place == length - 1)}
                      for place, word in enumerate(words)]
        self.records = []
        start = 0
        for index, size in enumerate(shapes):
            part = words[start:start + size]
            is_final = index == len(shapes) - 1
            is_bad = len(part) < size or (start + size == length) != is_final
            value = sum(word << (width * place) for place, word in enumerate(part))
            self.records.append((index, value, len(part), int(is_final), int(is_bad)))
            if is_bad:
                break
            start += size


async def work(ctx, dut, rng, commands, log, busy=0.0):
    """Gather what each command should have, then drain the rest as the front end does."""
    for command in commands:
        ctx.set(dut.mode, GatherMode.HOLD)
        await ctx.tick()
        ctx.set(dut.records, len(command.shapes))
        if command.shapes:
            ctx.set(dut.mode, GatherMode.GATHER)
        while command.shapes:
            ctx.set(dut.beats, command.shapes[min(ctx.get(dut.index), len(command.shapes) - 1)])
            ready = rng.random() >= busy
            ctx.set(dut.o.ready, ready)
            _, _, valid, index, record = await ctx.tick().sample(
                dut.o.valid, dut.index, dut.o.payload)
            if valid and ready:
                log.append((index, record))
                if record.final or record.bad:
                    break
        ctx.set(dut.o.ready, 0)
        ctx.set(dut.mode, GatherMode.DRAIN)
        while not ctx.get(dut.ended):
            await ctx.tick()
            assert not ctx.get(dut.o.valid)


def run(commands, *, config=CONFIG, seed=0, stall_probability=0.0):
    log = []

    async def testbench(ctx):
        await work(ctx, dut, random.Random(seed), commands, log, busy=stall_probability)

    dut = Gather(config)
    result = run_stream_test(
        dut, feeds={"i": [beat for command in commands for beat in command.beats]}, sinks={},
        seed=seed, stall_probability=stall_probability, testbenches=[testbench])
    expected = [record for command in commands for record in command.records]
    assert len(log) == len(expected)
    for (index, record), wanted in zip(log, expected, strict=True):
        number, value, beats, is_final, is_bad = wanted
        mask = (1 << (beats * config.memory_bytes * 8)) - 1
        assert (index, record.data & mask) == (number, value)
        assert (record.final, record.bad) == (is_final, is_bad)
    return result


@pytest.mark.parametrize("memory_bytes", [4, 8, 16, 32])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_records_of_commands_whole_short_and_long(memory_bytes, stall):
    config = make_config(memory_bytes=memory_bytes)
    rng = random.Random(memory_bytes)
    top = max_record_beats(config)
    commands = []
    for _ in range(40):
        shapes = [rng.randint(1, top) for _ in range(rng.randint(0, 4))]
        whole = sum(shapes) or 1
        length = rng.choice([whole, whole, rng.randint(1, whole), whole + rng.randint(1, 5)])
        commands.append(Command(rng, shapes, length, width=memory_bytes * 8))
    assert not all(command.shapes for command in commands)
    assert any(command.records[-1][-1] for command in commands if command.shapes)
    run(commands, config=config, seed=5, stall_probability=stall)


def test_latency_and_throughput():
    rng = random.Random(1)
    commands = [Command(rng, [3, 1, 2]), Command(rng, [2], length=7)]
    result = run(commands)
    # A cycle of HOLD; then one for each beat, and one for each record.
    assert result.input_cycles["i"][:6] == [1, 2, 3, 5, 7, 8]
    # The record in cycle 9, HOLD, two beats and their record; what is drained, a beat per cycle.
    assert result.input_cycles["i"][6:] == [11, 12, 14, 15, 16, 17, 18]


def test_nothing_is_taken_in_hold():
    result_cycles = []

    async def testbench(ctx):
        ctx.set(dut.mode, GatherMode.HOLD)
        for _ in range(10):
            assert not ctx.get(dut.i.ready)
            await ctx.tick()
        result_cycles.append(10)
        ctx.set(dut.mode, GatherMode.DRAIN)

    dut = Gather(CONFIG)
    result = run_stream_test(dut, feeds={"i": [{"data": 1, "last": 1}]}, sinks={}, seed=0,
                             testbenches=[testbench])
    assert result.input_cycles["i"] == result_cycles


def test_sizes():
    # K, V, one exponent of each and 64 bits of code.
    assert max_record_beats(make_config(memory_bytes=16)) == 5
    # Eight heads of 256 bits of code.
    assert max_record_beats(make_config(group=8, code_bits=256, memory_bytes=16)) == 16
    assert record_count_bits(make_config()) == 11
    assert record_count_bits(make_config(code_bits=256, encoder_sets=64)) == 16


def test_bad_config():
    with pytest.raises(TypeError, match="Gather config must be an AttentionConfig, not None"):
        Gather(None)
