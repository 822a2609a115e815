import random
from collections import deque

import numpy as np
import pytest

from golden.streaming.errors import Reason as Golden
from golden.streaming.errors import Rejected
from golden.streaming.mutations import mutate, truncations
from golden.streaming.wire import HEADER_BYTES, TRAILER_BYTES
from hw.config import StreamingConfig
from hw.streaming.layouts import Reason
from hw.streaming.receiver import FrameReceiver
from tests.hw.harness import run_stream_test
from tests.hw.streaming.frames import Awaited, header_of, link_beats, make_chunk, make_frame


def config_of(bus_bytes=8, **options):
    return StreamingConfig(head_dim=64, bus_bytes=bus_bytes, chunk_tokens=64, chunks=16, **options)


def header_passes(reason):
    return not Golden.MAGIC <= reason <= Golden.LENGTH


class Stubs:
    """The chunk table and the decoder around a receiver."""

    def __init__(self, dut, awaited, faults, *, answer_cycles=1, fault_cycles=0):
        self.dut = dut
        self.awaited = awaited
        self.faults = deque(faults)
        self.answer_cycles = answer_cycles
        self.fault_cycles = fault_cycles
        self.lookups = []

    async def answer(self, ctx):
        """Answer each lookup ``answer_cycles`` after it, at least one."""
        lookup, expected = self.dut.o_lookup, self.dut.i_expected
        due, cycle = deque(), 0
        while True:
            ready = cycle >= due[0][0] if due else False
            ctx.set(expected.valid, ready)
            if ready:
                ctx.set(expected.payload, due[0][1])
            ctx.set(lookup.ready, 1)
            _, _, asked, chunk_id, taken = await ctx.tick().sample(
                lookup.valid, lookup.payload, expected.ready)
            if ready and taken:
                due.popleft()
            if asked:
                self.lookups.append(chunk_id)
                due.append((cycle + self.answer_cycles, self.awaited.answer(chunk_id)))
            cycle += 1

    async def decode(self, ctx):
        """Give a fault for each payload, ``fault_cycles`` after its last beat."""
        payload, fault = self.dut.o_payload, self.dut.i_fault
        due, cycle = deque(), 0
        while True:
            ready = cycle > due[0] + self.fault_cycles if due else False
            ctx.set(fault.valid, ready)
            if ready:
                ctx.set(fault.payload, {"reason": self.faults[0]})
            _, _, valid, take, last, taken = await ctx.tick().sample(
                payload.valid, payload.ready, payload.payload.last, fault.ready)
            if ready and taken:
                due.popleft()
                self.faults.popleft()
            if valid and take and last:
                due.append(cycle)
            cycle += 1


def receive(config, packets, awaited, *, seed, stall=0.0, beats=None, **delays):
    """Run packets through a receiver and compare everything that comes out."""
    rng = random.Random(seed)
    reasons, faults, begins, payload, lookups = [], [], [], [], []
    for packet in packets:
        outcome = awaited.decode(packet)
        reason = outcome.reason if isinstance(outcome, Rejected) else Golden.NONE
        reasons.append(reason)
        if len(packet) < HEADER_BYTES:
            continue
        header = header_of(packet)
        if not Golden.MAGIC <= reason <= Golden.HEADER_CRC:
            lookups.append(header.chunk_id)
        if not header_passes(reason):
            continue
        # What the decoder finds counts only in a packet that is whole.
        late = [Golden.NONE, Golden.TABLE, Golden.OVERRUN, Golden.NONFINITE]
        fault = reason if reason >= Golden.TABLE or not reason else rng.choice(late)
        faults.append(Reason(fault.value))
        begins.append({"index": awaited.chunks[header.chunk_id][0], "format": header.format,
                       "tokens": header.tokens,
                       "payload_beats": header.payload_bytes // config.bus_bytes})
        end = HEADER_BYTES + header.payload_bytes
        parts = link_beats(packet[HEADER_BYTES:end], config.bus_bytes)
        payload += [(None if part["last"] and len(packet) < end else part["data"], part["last"])
                    for part in parts]
    dut = FrameReceiver(config)
    stubs = Stubs(dut, awaited, faults, **delays)
    if beats is None:
        beats = [beat for packet in packets for beat in link_beats(packet, config.bus_bytes)]
    result = run_stream_test(
        dut, feeds={"i_link": beats}, seed=seed, stall_probability=stall,
        sinks={"o_begin": len(begins), "o_payload": len(payload), "o_verdict": len(packets)},
        testbenches=[stubs.answer, stubs.decode], timeout_cycles=40 * len(beats) + 1000)
    verdicts = result.outputs["o_verdict"]
    assert [verdict["reason"].value for verdict in verdicts] == reasons
    for verdict, reason, packet in zip(verdicts, reasons, packets, strict=True):
        header = header_of(packet)
        known = (header is not None and header.chunk_id in awaited.chunks
                 and not Golden.MAGIC <= reason <= Golden.CHUNK)
        assert verdict["known"] == known
        if known:
            assert verdict["index"] == awaited.chunks[header.chunk_id][0]
            assert verdict["chunk_id"] == header.chunk_id
    assert result.outputs["o_begin"] == begins
    assert [(None if beat["cut"] else beat["data"], beat["last"])
            for beat in result.outputs["o_payload"]] == payload
    assert stubs.lookups == lookups
    assert not stubs.faults
    return result


def scene(config, names, seed, *, tokens=3):
    """A frame of each format, and the chunks awaited."""
    rng = np.random.default_rng(seed)
    chunks = [make_chunk(config, rng, tokens=tokens) for _ in names]
    frames = [make_frame(chunk, name, rng) for chunk, name in zip(chunks, names, strict=True)]
    return frames, Awaited(config, chunks)


@pytest.mark.parametrize("bus_bytes", [8, 16, 32, 64])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_right_frames_of_every_format(bus_bytes, stall):
    config = config_of(bus_bytes)
    frames, awaited = scene(config, config.formats, seed=bus_bytes)
    receive(config, frames, awaited, seed=1, stall=stall, answer_cycles=3, fault_cycles=2)


@pytest.mark.parametrize("bus_bytes", [8, 64])
@pytest.mark.parametrize("name", ["INT4", "HUFFMAN3"])
def test_damaged_frames(bus_bytes, name):
    config = config_of(bus_bytes, formats=("INT4", "HUFFMAN3", "FP16"))
    (frame,), awaited = scene(config, [name], seed=3, tokens=2)
    packets = [mutation.frame for mutation in mutate(frame, 64, 7, beat_bytes=bus_bytes)]
    receive(config, packets, awaited, seed=5, stall=0.2, answer_cycles=2, fault_cycles=9)


@pytest.mark.parametrize("bus_bytes", [8, 32])
def test_frames_cut_at_every_byte(bus_bytes):
    config = config_of(bus_bytes, formats=("INT4",))
    (frame,), awaited = scene(config, ["INT4"], seed=4, tokens=1)
    packets = [mutation.frame for mutation in truncations(frame)] + [frame]
    receive(config, packets, awaited, seed=6, answer_cycles=1)


def test_only_formats_built_in():
    config = config_of(formats=("FP16", "HUFFMAN5"))
    frames, awaited = scene(config, config_of().formats, seed=8)
    receive(config, frames, awaited, seed=2)


def test_lengths_of_every_number_of_tokens():
    config = StreamingConfig(head_dim=32, bus_bytes=32, chunk_tokens=64, chunks=128)
    rng = np.random.default_rng(5)
    for name in ("INT4", "MXINT8", "FP8_E4M3"):
        chunks = [make_chunk(config, rng, tokens=tokens) for tokens in (1, 2, 15, 16, 17, 31, 33)]
        frames = [make_frame(chunk, name, rng) for chunk in chunks]
        receive(config, frames, Awaited(config, chunks), seed=9)


@pytest.mark.parametrize("keep", [0b1011_1111, 0b0111_1111, 0b1111_1110, 0])
@pytest.mark.parametrize("place", [3, 12, -3])
def test_beats_with_holes_count_as_truncated(keep, place):
    config = config_of(formats=("INT4",))
    (frame,), awaited = scene(config, ["INT4"], seed=2)
    beats = link_beats(frame, 8)
    beats[place]["keep"] = keep
    dut = FrameReceiver(config)
    stubs = Stubs(dut, awaited, [Reason.NONE] * 2)
    result = run_stream_test(
        dut, feeds={"i_link": beats + link_beats(frame, 8)}, seed=1,
        sinks={"o_begin": None, "o_payload": None, "o_verdict": 2},
        testbenches=[stubs.answer, stubs.decode])
    assert [verdict["reason"] for verdict in result.outputs["o_verdict"]] == [
        Reason.TRUNCATED, Reason.NONE]


def test_a_last_beat_without_bytes_only_ends_the_packet():
    config = config_of(formats=("INT4",))
    (frame,), awaited = scene(config, ["INT4"], seed=2)
    beats = link_beats(frame, 8)
    beats[-1]["last"] = 0
    empty = {"data": 0, "keep": 0, "last": 1}
    receive(config, [frame, b"", frame], awaited, seed=1,
            beats=[*beats, empty, empty, *beats, empty])


@pytest.mark.parametrize("bus_bytes", [8, 16, 32, 64])
@pytest.mark.parametrize("answer_cycles", [1, 9])
def test_latency_and_throughput(bus_bytes, answer_cycles):
    config = config_of(bus_bytes, formats=("FP16", "INT8"))
    frames, awaited = scene(config, ["INT8"] * 6, seed=1, tokens=16)
    result = receive(config, frames, awaited, seed=1, answer_cycles=answer_cycles)
    links, beats = result.input_cycles["i_link"], len(frames[0]) // bus_bytes
    assert links == list(range(links[0], links[0] + 6 * beats))  # never waits
    unit = HEADER_BYTES // bus_bytes
    begins, verdicts = result.output_cycles["o_begin"], result.output_cycles["o_verdict"]
    payload = result.output_cycles["o_payload"]
    for index in range(6):
        header_end, end = links[beats * index + unit - 1], links[beats * (index + 1) - 1]
        assert begins[index] - header_end == 6 + answer_cycles
        first = payload[(beats - 2 * unit) * index]
        assert first - header_end == 7 + answer_cycles
        assert verdicts[index] - end == max(4, 7 + answer_cycles - unit)


def test_smallest_frames_back_to_back():
    config = StreamingConfig(head_dim=64, bus_bytes=64, chunk_tokens=16, chunks=16,
                             formats=("INT4",))
    frames, awaited = scene(config, ["INT4"] * 12, seed=1, tokens=1)
    assert len(frames[0]) == HEADER_BYTES + 128 + TRAILER_BYTES
    result = receive(config, frames, awaited, seed=1, answer_cycles=4)
    links = result.input_cycles["i_link"]
    assert links == list(range(links[0], links[0] + len(links)))
