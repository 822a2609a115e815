import numpy as np
import pytest

from golden import mxint
from golden.streaming.layout import Format, side_bytes
from hw.config import StreamingConfig
from hw.streaming.fixed import FixedDecoder
from hw.streaming.layouts import Reason
from tests.hw.harness import run_stream_test
from tests.hw.streaming.payloads import (
    FIXED,
    begin_of,
    cut_beats,
    golden_elements,
    make_payload,
    payload_beats,
)


def config_of(head_dim=32, bus_bytes=16, *, block=32, formats=FIXED):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block,
                           chunk_tokens=64, chunks=16, formats=formats)


def expected_rows(config, name, payload, tokens):
    """The reason, and beats of elements or of stored rows."""
    reason, p, e = golden_elements(config, name, payload, tokens)
    if reason != Reason.NONE:
        return reason, None
    lanes = config.bus_bytes
    if name == "MXINT8":
        data = mxint.pack_row(p.astype(np.int8)).reshape(-1, lanes)
        exponents = e[..., ::config.exponent_block] + 133
        exponents = exponents.reshape(-1, config.blocks).repeat(config.row_beats, axis=0)
        return reason, [(int.from_bytes(beat.tobytes(), "little"), list(row))
                        for beat, row in zip(data, exponents, strict=True)]
    return reason, [list(zip(*beat, strict=True)) for beat in zip(
        p.reshape(-1, lanes).tolist(), e.reshape(-1, lanes).tolist(), strict=True)]


def decode(config, frames, *, seed=1, stall=0.0, **counts):
    """Run (name, payload beats, tokens) through a decoder; ``counts``: items of the outputs."""
    begins = [begin_of(config, name, b"", tokens) for name, _, tokens in frames]
    beats = [beat for _, payload, _ in frames for beat in payload]
    # `i_payload` may run ahead of `i_begin`: the decoder is to wait.
    return run_stream_test(
        FixedDecoder(config), feeds={"i_begin": begins, "i_payload": beats},
        sinks={"o_element": None, "o_stored": None, "o_fault": len(frames), **counts},
        seed=seed, stall_probability=stall, timeout_cycles=100_000)


def elements_of(result):
    return [[(element["p"], element["e"]) for element in beat["elements"]]
            for beat in result.outputs["o_element"]]


def stored_of(result):
    return [(beat["data"], beat["exponents"]) for beat in result.outputs["o_stored"]]


@pytest.mark.parametrize("head_dim, bus_bytes, block", [
    (32, 8, 32), (32, 32, 32), (64, 16, 64), (64, 64, 32), (128, 64, 32), (256, 8, 32)])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_every_format(head_dim, bus_bytes, block, stall):
    config = config_of(head_dim, bus_bytes, block=block)
    rng = np.random.default_rng(head_dim + bus_bytes)
    frames, elements, stored = [], [], []
    for tokens in (17, 1) if head_dim < 128 else (2,):
        for name in FIXED:
            payload = make_payload(config, name, tokens, rng)
            reason, rows = expected_rows(config, name, payload, tokens)
            assert reason == Reason.NONE
            (stored if name == "MXINT8" else elements).extend(rows)
            frames.append((name, payload_beats(config, payload), tokens))
    result = decode(config, frames, stall=stall)
    assert elements_of(result) == elements
    assert stored_of(result) == stored
    assert [fault["reason"] for fault in result.outputs["o_fault"]] == [Reason.NONE] * len(frames)


@pytest.mark.parametrize("name", FIXED)
def test_a_single_format(name):
    config = config_of(formats=(name,))
    payload = make_payload(config, name, 5, np.random.default_rng(3))
    _, rows = expected_rows(config, name, payload, 5)
    result = decode(config, [(name, payload_beats(config, payload), 5)], stall=0.2)
    assert (stored_of(result) if name == "MXINT8" else elements_of(result)) == rows


@pytest.mark.parametrize("name", FIXED)
def test_nonfinite(name):
    """So rare that frames of both kinds come; unused entries of the side block are hit too."""
    config = config_of()
    rng = np.random.default_rng(7)
    frames, reasons = [], []
    for _ in range(30):
        payload = bytearray(make_payload(config, name, 2, rng))
        for at in rng.integers(0, rng.choice([12, len(payload)]), rng.integers(0, 3)):
            payload[at] = 0xFF
            payload[at | 1] = 0x7F
        reasons.append(expected_rows(config, name, bytes(payload), 2)[0])
        frames.append((name, payload_beats(config, payload), 2))
    assert set(reasons) == {Reason.NONE, Reason.NONFINITE}
    result = decode(config, frames)
    assert [fault["reason"] for fault in result.outputs["o_fault"]] == reasons


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("bus_bytes", [8, 32])
def test_payloads_cut_at_every_beat(name, bus_bytes):
    """Whole rows come out, right as far as they came, then one fault; the next frame is right."""
    config = config_of(32, bus_bytes, formats=(name,))
    payload = make_payload(config, name, 2, np.random.default_rng(5))
    _, whole = expected_rows(config, name, payload, 2)
    beats = payload_beats(config, payload)
    side = side_bytes(Format[name], 32, 32) // bus_bytes
    frames, rows = [], []
    for place in range(len(beats)):
        frames += [(name, cut_beats(beats, place), 2), (name, beats, 2)]
        complete = min(max(0, place - side) * 8 // Format[name].element_bits, len(whole))
        rows += whole[:complete] + [None] * (-complete % config.row_beats) + whole
    result = decode(config, frames, stall=0.2)
    given = stored_of(result) if name == "MXINT8" else elements_of(result)
    assert len(given) == len(rows)
    assert [None if right is None else beat
            for beat, right in zip(given, rows, strict=True)] == rows
    assert [fault["reason"] for fault in result.outputs["o_fault"]][1::2] == (
        [Reason.NONE] * len(beats))


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("bus_bytes", [8, 32])
def test_latency_and_throughput(name, bus_bytes):
    config = config_of(32, bus_bytes)
    payload = make_payload(config, name, 32, np.random.default_rng(2))
    beats = payload_beats(config, payload)
    result = decode(config, [(name, beats, 32)] * 3)
    port = "o_stored" if name == "MXINT8" else "o_element"
    taken, given = result.input_cycles["i_payload"], result.output_cycles[port]
    side = side_bytes(Format[name], 32, 32) // bus_bytes
    of_piece = 2 if name in ("FP16", "BF16") else 1
    assert given[0] - taken[side + of_piece - 1] == FixedDecoder.LATENCY
    rows = 64 * config.row_beats
    busy = rows if name == "INT4" else len(beats)  # the wider of output and input
    assert [given[at + rows] - given[at] for at in range(2 * rows)] == [busy + 1] * 2 * rows
    if name == "INT4":
        assert given[:rows] == list(range(given[0], given[0] + rows))
    else:
        assert taken[:len(beats)] == list(range(taken[0], taken[0] + len(beats)))
    faults = result.output_cycles["o_fault"]
    assert [fault - given[rows * (index + 1) - 1] for index, fault in enumerate(faults)] == [1] * 3
