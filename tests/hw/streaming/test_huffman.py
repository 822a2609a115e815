from collections import Counter

import numpy as np
import pytest

from golden.streaming.layout import Format, payload_bounds, table_bytes
from golden.streaming.payload import encode_payload, encode_symbols
from hw.config import WIRE_FORMATS, StreamingConfig
from hw.streaming.huffman.decoder import HuffmanDecoder
from hw.streaming.layouts import Reason
from tests.hw.harness import run_stream_test
from tests.hw.streaming.coded import KINDS, complete_lengths, damage, make_coded
from tests.hw.streaming.payloads import begin_of, cut_beats, golden_elements, payload_beats

CODED = tuple(name for name in WIRE_FORMATS if name.startswith("HUFFMAN"))


def config_of(head_dim=32, bus_bytes=8, formats=CODED):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, chunk_tokens=160, chunks=16,
                           formats=formats)


def expected_beats(config, name, payload, tokens):
    """Reason, and beats of (p, e) if it is `NONE`."""
    reason, p, e = golden_elements(config, name, payload, tokens)
    if reason != Reason.NONE:
        return reason, []
    pairs = zip(p.reshape(-1, config.bus_bytes).tolist(),
                e.reshape(-1, config.bus_bytes).tolist(), strict=True)
    return reason, [list(zip(*pair, strict=True)) for pair in pairs]


def decode(config, frames, *, seed=1, stall=0.0, beats=None):
    """Run (name, payload, beats of it, tokens) through a decoder."""
    return run_stream_test(
        HuffmanDecoder(config),
        feeds={"i_begin": [begin_of(config, name, payload, tokens)
                           for name, payload, _, tokens in frames],
               "i_payload": [beat for _, _, given, _ in frames for beat in given]},
        sinks={"o_element": beats, "o_fault": len(frames)},
        seed=seed, stall_probability=stall, timeout_cycles=100_000)


def by_frame(result):
    """Beats of (p, e) of each frame: those that came before its fault and after the one before."""
    times, faults = result.output_cycles["o_element"], result.output_cycles["o_fault"]
    beats = [[(element["p"], element["e"]) for element in beat["elements"]]
             for beat in result.outputs["o_element"]]
    owners = np.searchsorted(faults, times)
    return [[beat for beat, owner in zip(beats, owners, strict=True) if owner == index]
            for index in range(len(faults))]


def reasons_of(result):
    return [fault["reason"] for fault in result.outputs["o_fault"]]


@pytest.mark.parametrize("head_dim, bus_bytes, names, stall", [
    (32, 8, ["HUFFMAN8", "HUFFMAN2", "HUFFMAN6"], 0.3),
    (32, 32, ["HUFFMAN4", "HUFFMAN7", "HUFFMAN3"], 0.0),
    (64, 64, ["HUFFMAN5"], 0.0)])
def test_formats_in_any_order(head_dim, bus_bytes, names, stall):
    config = config_of(head_dim, bus_bytes)
    rng = np.random.default_rng(head_dim + bus_bytes)
    frames, expected = [], []
    for name, tokens in zip(names, [17, 1, 15], strict=False):
        payload = make_coded(config, name, tokens, rng)
        frames.append((name, payload, payload_beats(config, payload), tokens))
        expected.append(expected_beats(config, name, payload, tokens))
    result = decode(config, frames, stall=stall)
    assert reasons_of(result) == [Reason.NONE] * len(frames)
    assert by_frame(result) == [beats for _, beats in expected]
    row_ends = [beat["last"] for beat in result.outputs["o_element"]]
    assert row_ends == ([0] * (config.row_beats - 1) + [1]) * (len(row_ends) // config.row_beats)


@pytest.mark.regress
def test_widest_rows():
    """Memories of two pages only, and pages near the bound: most symbols have the longest code."""
    config = config_of(256, 64, formats=("HUFFMAN8",))
    rng = np.random.default_rng(3)
    lengths = [np.zeros(256, np.int64), complete_lengths(8, rng, used=256)]
    lengths[0][:13] = [*range(1, 12), 12, 12]
    symbols = rng.integers(10, 13, (49, 2, 256))
    scales = np.full((49, 2), 0x3F80, np.uint16)
    payload = encode_symbols(Format.HUFFMAN8, scales, symbols, lengths=lengths)
    reason, beats = expected_beats(config, "HUFFMAN8", payload, 49)
    assert reason == Reason.NONE
    result = decode(config, [("HUFFMAN8", payload, payload_beats(config, payload), 49)])
    assert (reasons_of(result), by_frame(result)) == ([Reason.NONE], [beats])


@pytest.mark.parametrize("bus_bytes, stall, count, seed", [
    (32, 0.2, 24, 18), pytest.param(8, 0.0, 150, 1, marks=pytest.mark.regress)])
def test_damaged_payloads(bus_bytes, stall, count, seed):
    """The reason is golden's, and the next frame is right."""
    config = config_of(32, bus_bytes, formats=CODED[:4])
    rng = np.random.default_rng(seed)
    frames, expected = [], []
    while len(frames) < count:
        name = str(rng.choice(config.formats))
        tokens = int(rng.choice([1, 3, 17], p=[0.5, 0.4, 0.1]))
        payload = make_coded(config, name, tokens, rng)
        if len(frames) % 4:
            payload = damage(name, payload, rng, KINDS[len(frames) % len(KINDS)])
        frames.append((name, payload, payload_beats(config, payload), tokens))
        expected.append(expected_beats(config, name, payload, tokens))
    # The first directory is refused before the table is, which counts more.
    both = bytearray(make_coded(config, "HUFFMAN5", 1, rng))
    both[0] = both[2 * 64 + 64 + 1] = 0xFF
    frames.append(("HUFFMAN5", bytes(both), payload_beats(config, both), 1))
    expected.append((Reason.TABLE, []))
    counts = Counter(reason for reason, _ in expected)
    assert all(counts[reason] for reason in (
        Reason.NONE, Reason.TABLE, Reason.DIRECTORY, Reason.OVERRUN, Reason.UNDERRUN,
        Reason.NONFINITE)), counts
    result = decode(config, frames, stall=stall)
    assert reasons_of(result) == [reason for reason, _ in expected]
    for (_, _, _, tokens), (reason, beats), given in zip(
            frames, expected, by_frame(result), strict=True):
        assert len(given) % config.row_beats == 0
        assert len(given) <= 2 * tokens * config.row_beats
        assert reason != Reason.NONE or given == beats


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.regress)])
def test_cut_payloads(step):
    """Pages that were complete come, and the next frame is right."""
    config = config_of(32, 16, formats=("HUFFMAN2", "HUFFMAN3"))
    rng = np.random.default_rng(7)
    cut = make_coded(config, "HUFFMAN3", 17, rng)
    next_one = make_coded(config, "HUFFMAN2", 2, rng)
    beats = payload_beats(config, cut)
    frames = []
    for place in range(0, len(beats), step):
        frames.append(("HUFFMAN3", cut, cut_beats(beats, place), 17))
        frames.append(("HUFFMAN2", next_one, payload_beats(config, next_one), 2))
    result = decode(config, frames)
    given = by_frame(result)
    _, right = expected_beats(config, "HUFFMAN2", next_one, 2)
    assert all(rows == right for rows in given[1::2])
    assert reasons_of(result)[1::2] == [Reason.NONE] * (len(frames) // 2)
    _, full = expected_beats(config, "HUFFMAN3", cut, 17)
    assert {len(rows) for rows in given[::2]} == {0, 32 * config.row_beats}
    assert all(rows == full[:len(rows)] for rows in given[::2])


@pytest.mark.parametrize("head_dim, bus_bytes", [
    (32, 8), pytest.param(64, 8, marks=pytest.mark.regress),
    pytest.param(64, 32, marks=pytest.mark.regress)])
def test_eight_elements_per_cycle(head_dim, bus_bytes):
    """No cycle is lost between the first element of a chunk and its last."""
    config = config_of(head_dim, bus_bytes, formats=("HUFFMAN5",))
    rng = np.random.default_rng(5)
    tokens = 80
    k, v = rng.normal(size=(2, tokens, head_dim))
    payload = encode_payload(Format.HUFFMAN5, k, v, exponent_block=32)
    result = decode(config, [("HUFFMAN5", payload, payload_beats(config, payload), tokens)] * 2)
    beats, cycles = 2 * tokens * config.row_beats, bus_bytes // 8
    times = result.output_cycles["o_element"]
    for frame in (times[:beats], times[beats:]):
        assert np.diff(frame).tolist() == [cycles] * (beats - 1)
    # The second frame's tables and first pages arrived meanwhile.
    assert times[beats] - times[beats - 1] == cycles + 3


def test_latency():
    """From a page's last word to its first elements; before, the tables must be built."""
    config = config_of(formats=("HUFFMAN3",))
    rng = np.random.default_rng(8)
    payload = make_coded(config, "HUFFMAN3", 16, rng)
    beats = payload_beats(config, payload)
    result = decode(config, [("HUFFMAN3", payload, beats, 16)])
    first = result.output_cycles["o_element"][0]
    assert first - result.input_cycles["i_payload"][-1] == HuffmanDecoder.LATENCY


def test_smallest_pages():
    """A page without a bit is one that is too short, and else no special case."""
    config = config_of(32, 8, formats=("HUFFMAN2",))
    rng = np.random.default_rng(9)
    tables = 2 * table_bytes(Format.HUFFMAN2)
    low, _ = payload_bounds(Format.HUFFMAN2, 17, 32, 32)
    payload = make_coded(config, "HUFFMAN2", 17, rng)
    empty = payload[:tables] + bytes(low - tables)
    frames = [("HUFFMAN2", data, payload_beats(config, data), 17) for data in (empty, payload) * 2]
    result = decode(config, frames)
    assert reasons_of(result) == [Reason.OVERRUN, Reason.NONE] * 2
    _, right = expected_beats(config, "HUFFMAN2", payload, 17)
    assert by_frame(result)[1::2] == [right] * 2


def test_bounds_of_directories():
    """The longest sub-streams and the least that may be left, and one more or less."""
    config = config_of(32, 32, formats=("HUFFMAN4",))
    tables = 2 * table_bytes(Format.HUFFMAN4)
    lengths = [np.array([*range(1, 12), 12, 12, 0, 0, 0])] * 2
    symbols = np.full((16, 2, 32), 12)
    scales = np.full((16, 2), 0x3F80, np.uint16)
    longest = encode_symbols(Format.HUFFMAN4, scales, symbols, lengths=lengths)
    assert longest[tables + 64:tables + 66] == (48 * 32).to_bytes(2, "little")

    def altered(payload, lane, bits):
        at = tables + 64 + 2 * lane
        bits += int.from_bytes(payload[at:at + 2], "little")
        return payload[:at] + bits.to_bytes(2, "little") + payload[at + 2:]

    short = encode_symbols(Format.HUFFMAN4, scales, np.zeros_like(symbols), lengths=lengths)
    followed = short + bytes(128)  # by a page of one token without a bit
    cases = [
        (longest, 16, Reason.NONE), (altered(longest, 7, 1), 16, Reason.DIRECTORY),
        (altered(longest, 0, -1), 16, Reason.OVERRUN),
        (followed, 17, Reason.OVERRUN), (altered(followed, 0, 8 * 64), 17, Reason.DIRECTORY),
        (altered(followed, 3, -1), 17, Reason.OVERRUN),
        (altered(short, 5, 1), 16, Reason.UNDERRUN), (short, 16, Reason.NONE),
    ]
    frames, expected = [], []
    for payload, tokens, reason in cases:
        frames.append(("HUFFMAN4", payload, payload_beats(config, payload), tokens))
        expected.append(expected_beats(config, "HUFFMAN4", payload, tokens))
        assert expected[-1][0] == reason
    result = decode(config, frames)
    assert reasons_of(result) == [reason for reason, _ in expected]
    given = by_frame(result)
    assert (given[0], given[-1]) == (expected[0][1], expected[-1][1])


def test_a_coded_format_is_asked_for():
    with pytest.raises(ValueError, match="HuffmanDecoder config.formats must have an "
                                         r"entropy-coded format, not \('BF16',\)"):
        HuffmanDecoder(config_of(formats=("BF16",)))
    with pytest.raises(TypeError, match="HuffmanDecoder config must be a StreamingConfig, not 3"):
        HuffmanDecoder(3)
