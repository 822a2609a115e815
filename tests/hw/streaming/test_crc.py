import random

import pytest
from amaranth.sim import Simulator

from golden.streaming.crc import crc32
from hw.streaming.crc import Crc32, crc_register
from hw.streaming.wire import CRC_ONES


def test_the_standard_check_value():
    assert crc_register(b"123456789") ^ CRC_ONES == 0xCBF43926 == crc32(b"123456789")


@pytest.mark.parametrize("beat_bytes", [4, 8, 16, 32, 64])
def test_messages_one_after_another(beat_bytes):
    rng = random.Random(beat_bytes)
    messages = [[rng.randbytes(beat_bytes) for _ in range(rng.randint(1, 9))] for _ in range(20)]
    dut = Crc32(beat_bytes=beat_bytes)
    expected = [(cycle, crc32(b"".join(message[: place + 1])))
                for cycle, (message, place) in enumerate(
                    (message, place) for message in messages for place in range(len(message)))]
    seen = []

    async def testbench(ctx):
        for message in messages:
            for place, beat in enumerate(message):
                ctx.set(dut.data, int.from_bytes(beat, "little"))
                ctx.set(dut.first, place == 0)
                ctx.set(dut.enable, 1)
                seen.append(ctx.get(dut.crc))
                await ctx.tick()
        ctx.set(dut.enable, 0)
        for _ in range(Crc32.LATENCY + 3):
            seen.append(ctx.get(dut.crc))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    for cycle, crc in expected:
        assert seen[cycle + Crc32.LATENCY] == crc
    assert seen[-1] == expected[-1][1]  # holds while no beat comes


@pytest.mark.parametrize("beat_bytes", [3, 0, -1])
def test_beats_must_hold_the_register(beat_bytes):
    with pytest.raises(ValueError, match=f"beat_bytes must be at least 4, not {beat_bytes}"):
        Crc32(beat_bytes=beat_bytes)
