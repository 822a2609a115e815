"""Frames over AXI-Stream, right and damaged: accept, reason, bytes and exponents equal golden's."""

import random
from collections import Counter

import cocotb
import numpy as np

from golden.streaming.errors import Reason
from golden.streaming.layout import Format
from golden.streaming.mutations import KINDS, mutate, truncations
from sim.testbench import arguments, cycles, start
from tests.hw.streaming.frames import Awaited, make_chunk, make_frame
from tests.rtl.streaming.link import Link
from tests.rtl.streaming.scenes import CONFIGS


def make_frames(config, names, *, tokens):
    """A frame for each of ``names``, and the chunks awaited."""
    rng = np.random.default_rng(random.getrandbits(32))
    chunks = [make_chunk(config, rng, tokens=random.choice(tokens)) for _ in names]
    frames = [make_frame(chunk, name, rng) for chunk, name in zip(chunks, names, strict=True)]
    return frames, Awaited(config, chunks)


@cocotb.test(timeout_time=2, timeout_unit="sec")
async def damaged_frames(dut):
    """Between damaged frames come right ones: damage does not last."""
    config = CONFIGS[arguments()["config"]]
    count = arguments()["mutations"]
    frames, awaited = make_frames(config, config.formats, tokens=[1, 2, 3])
    packets = []
    for frame in frames:
        damaged = mutate(frame, -(-count // len(frames)), random.getrandbits(32),
                         beat_bytes=config.bus_bytes)
        packets += [mutation.frame for mutation in damaged if mutation.frame]
    random.shuffle(packets)
    packets = [packet for damaged in packets
               for packet in (damaged, *([random.choice(frames)] * (random.random() < 0.1)))]
    await start(dut)
    link = Link(dut, config, awaited, idle=arguments()["stall"], stall=arguments()["stall"])
    for at in range(0, len(packets), 100):
        link.send(packets[at:at + 100])
        await link.judge.judged(min(len(packets), at + 100))
    await cycles(dut, 50)
    reasons = Counter(link.judge.reasons)
    cocotb.log.info("%d packets: %s", len(packets),
                    {reason.name: count for reason, count in sorted(reasons.items())})
    assert len(link.judge.reasons) == len(packets)
    assert reasons[Reason.NONE] > 0
    assert len(reasons) > 8 or count < 20 * len(KINDS)


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def cut_at_every_byte(dut):
    """One frame of each format, cut short at every byte, and then whole."""
    config = CONFIGS[arguments()["config"]]
    frames, awaited = make_frames(config, config.formats, tokens=[1])
    await start(dut)
    link = Link(dut, config, awaited)
    for frame in frames:
        packets = [*(mutation.frame for mutation in truncations(frame) if mutation.frame), frame]
        link.judge.reasons.clear()
        link.judge.packets.clear()
        link.send(packets)
        await link.judge.judged(len(packets))
        assert link.judge.reasons == [Reason.TRUNCATED] * (len(packets) - 1) + [Reason.NONE]


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def resets_in_mid_frame(dut):
    """What was under way is gone; the rest of the packet is refused; then all is right."""
    config = CONFIGS[arguments()["config"]]
    frames, awaited = make_frames(config, config.formats * 2, tokens=[2, 17])
    await start(dut)
    link = Link(dut, config, awaited, idle=0.2, stall=0.2)
    for _ in range(arguments()["resets"]):
        link.send(random.sample(frames, 3))
        await cycles(dut, random.randrange(1, 400))
        await link.reset()
        tail = random.choice(frames)[config.bus_bytes * random.randrange(1, 5):]
        link.send([tail, *random.sample(frames, 2)])
        await link.judge.judged(3)
        assert link.judge.reasons[1:] == [Reason.NONE] * 2
        await link.reset()


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def every_format_at_full_rate(dut):
    """Stored beats per cycle over whole frames back to back, against what the link brings."""
    config = CONFIGS[arguments()["config"]]
    frames, awaited = make_frames(config, config.formats * 3, tokens=[64])
    await start(dut)
    link = Link(dut, config, awaited)
    for index, name in enumerate(config.formats):
        link.send(frames[index::len(config.formats)])
        await link.judge.judged(3)
        assert link.judge.reasons == [Reason.NONE] * 3
        times, bus, fmt = link.stored.times, config.bus_bytes, Format[name]
        rows = 2 * 64 * config.row_beats
        period = times[rows] - times[0]
        cocotb.log.info("%s: %.4f of the output beats within a frame, %.4f with header and trailer",
                        name, rows / (times[rows - 1] - times[0] + 1), rows / period)
        if not fmt.is_coded:
            expected = max(len(frames[index]) // bus, rows + 1)
        elif fmt.element_bits <= 5:
            expected = rows * (bus // 8) + 3  # eight elements per cycle
        else:
            expected = None  # the link of 8 bytes per cycle may be the limit: it is not constant
        if expected is not None:
            assert (period, times[2 * rows] - times[rows]) == (expected, expected)
        await link.reset()
