import numpy as np
import pytest

from golden.streaming.layout import Format, side_bytes
from hw.config import StreamingConfig
from hw.streaming.decoder import Decoder
from hw.streaming.fixed import FixedDecoder
from hw.streaming.layouts import Reason
from hw.streaming.planes import Planes
from tests.hw.harness import run_stream_test
from tests.hw.streaming.coded import make_coded
from tests.hw.streaming.payloads import (
    FIXED,
    begin_of,
    cut_beats,
    golden_stored,
    make_payload,
    payload_beats,
)


def config_of(head_dim=32, bus_bytes=16, *, block=32, formats=FIXED):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block,
                           chunk_tokens=64, chunks=16, formats=formats)


def decode(config, frames, *, seed=1, stall=0.0):
    """Run (name, payload beats, tokens) through a decoder."""
    return run_stream_test(
        Decoder(config),
        feeds={"i_begin": [begin_of(config, name, b"", tokens) for name, _, tokens in frames],
               "i_payload": [beat for _, payload, _ in frames for beat in payload]},
        sinks={"o_stored": None, "o_fault": len(frames)},
        seed=seed, stall_probability=stall, timeout_cycles=100_000)


def check_order(result, rows, row_beats):
    """Rows of a frame, its fault, rows of the next; ``rows``: of each frame."""
    beats, faults = result.output_cycles["o_stored"], result.output_cycles["o_fault"]
    at = 0
    for count, fault in zip(rows, faults, strict=True):
        at += count * row_beats
        assert beats[at - 1] < fault
        assert at == len(beats) or fault < beats[at]


@pytest.mark.parametrize("head_dim, bus_bytes, block", [
    (32, 8, 32), (32, 32, 32), (64, 16, 64), (64, 64, 32)])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_formats_in_any_order(head_dim, bus_bytes, block, stall):
    config = config_of(head_dim, bus_bytes, block=block)
    rng = np.random.default_rng(head_dim + bus_bytes)
    names = [*FIXED, *rng.choice(FIXED, 8)]
    frames, expected, rows = [], [], []
    for name in names:
        tokens = int(rng.choice([1, 2, 3, 17]))
        payload = make_payload(config, name, tokens, rng)
        reason, stored = golden_stored(config, name, payload, tokens)
        assert reason == Reason.NONE
        expected += stored
        rows.append(2 * tokens)
        frames.append((name, payload_beats(config, payload), tokens))
    result = decode(config, frames, stall=stall)
    assert result.outputs["o_stored"] == expected
    assert [fault["reason"] for fault in result.outputs["o_fault"]] == [Reason.NONE] * len(frames)
    check_order(result, rows, config.row_beats)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_frames_cut_and_not(stall):
    """More than may be under way, some without any row; what is whole is right."""
    config = config_of()
    rng = np.random.default_rng(4)
    frames, expected, rows = [], [], []
    for _ in range(60):
        name = str(rng.choice(["FP8_E4M3", "INT4", "MXINT8", "BF16"], p=[0.7, 0.1, 0.1, 0.1]))
        payload = make_payload(config, name, 2, rng)
        beats = payload_beats(config, payload)
        _, stored = golden_stored(config, name, payload, 2)
        if rng.random() < 0.6:
            place = int(rng.integers(0, 6)) if rng.random() < 0.7 else 0
            beats = cut_beats(beats, place)
            side = side_bytes(Format[name], 32, 32) // config.bus_bytes
            pieces = max(0, place - side) * 8 // Format[name].element_bits
            complete, begun = pieces // config.row_beats, -(-pieces // config.row_beats)
            stored = [*stored[:complete * config.row_beats],
                      *[None] * (begun - complete) * config.row_beats]
        frames.append((name, beats, 2))
        expected += stored
        rows.append(len(stored) // config.row_beats)
    assert rows.count(0) > 10
    result = decode(config, frames, stall=stall)
    given = result.outputs["o_stored"]
    assert len(given) == len(expected)
    assert [right and beat for beat, right in zip(given, expected, strict=True)] == expected
    check_order(result, rows, config.row_beats)


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("head_dim, bus_bytes, block", [(32, 8, 32), (64, 64, 32)])
def test_latency_and_throughput(name, head_dim, bus_bytes, block):
    config = config_of(head_dim, bus_bytes, block=block, formats=(name,))
    payload = make_payload(config, name, 32, np.random.default_rng(2))
    beats = payload_beats(config, payload)
    result = decode(config, [(name, beats, 32)] * 3)
    taken, given = result.input_cycles["i_payload"], result.output_cycles["o_stored"]
    side = side_bytes(Format[name], head_dim, block) // bus_bytes
    row = head_dim * Format[name].element_bits // 8 // bus_bytes
    dut = Decoder(config)
    latency = FixedDecoder.LATENCY + Planes.LATENCY if name == "MXINT8" else dut.latency
    if name != "INT4":  # whose beats are taken ahead
        assert given[0] - taken[side + row - 1] == latency
    rows = 64 * config.row_beats
    period = 1 + (rows if name == "INT4" else len(beats))
    assert [given[at + rows] - given[at] for at in range(2 * rows)] == [period] * 2 * rows
    faults = result.output_cycles["o_fault"]
    assert [fault - given[rows * (index + 1) - 1] for index, fault in enumerate(faults)] == [1] * 3


@pytest.mark.parametrize("formats, names", [
    (("BF16", "MXINT8", "HUFFMAN2", "HUFFMAN4"),
     ["HUFFMAN4", "BF16", "MXINT8", "HUFFMAN2", "HUFFMAN4", "MXINT8", "BF16", "HUFFMAN2"]),
    (("HUFFMAN3",), ["HUFFMAN3"] * 3)])
def test_coded_formats_among_others(formats, names):
    config = config_of(32, 16, formats=formats)
    rng = np.random.default_rng(len(names))
    frames, expected, rows = [], [], []
    for name in names:
        tokens = int(rng.choice([1, 2, 3]))
        make = make_coded if name.startswith("HUFFMAN") else make_payload
        payload = make(config, name, tokens, rng)
        reason, stored = golden_stored(config, name, payload, tokens)
        assert reason == Reason.NONE
        expected += stored
        rows.append(2 * tokens)
        frames.append((name, payload, tokens))
    result = run_stream_test(
        Decoder(config),
        feeds={"i_begin": [begin_of(config, *frame) for frame in frames],
               "i_payload": [beat for _, payload, _ in frames
                             for beat in payload_beats(config, payload)]},
        sinks={"o_stored": None, "o_fault": len(frames)},
        seed=2, stall_probability=0.3, timeout_cycles=100_000)
    assert result.outputs["o_stored"] == expected
    assert [fault["reason"] for fault in result.outputs["o_fault"]] == [Reason.NONE] * len(frames)
    check_order(result, rows, config.row_beats)
