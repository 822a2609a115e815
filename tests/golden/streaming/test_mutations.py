"""The fuzzer reaches every reason, repeats itself, and never breaks the decoder."""

from collections import Counter

import numpy as np
import pytest

from golden.streaming import mutations, wire
from golden.streaming.errors import Reason, Rejected
from golden.streaming.layout import Format

CHUNK = wire.Chunk(chunk_id=9, layer=1, kv_head=2, token_block=3, tokens=19, head_dim=32,
                   exponent_block=32)


def frame_of(fmt):
    rng = np.random.default_rng(fmt)
    return wire.encode_frame(CHUNK, fmt, *rng.standard_normal((2, 19, 32)))


def reasons(fmt, count, seed):
    """Frames by kind of damage and reason."""
    seen = Counter()
    for mutation in mutations.mutate(frame_of(fmt), count, seed):
        result = wire.decode_frame(mutation.frame, CHUNK)
        refused = isinstance(result, Rejected)
        seen[mutation.kind, result.reason if refused else Reason.NONE] += 1
    return seen


@pytest.mark.parametrize("fmt", Format)
def test_the_decoder_answers_for_every_frame(fmt):
    seen = reasons(fmt, 16 * len(mutations.KINDS), seed=1)
    assert sum(seen.values()) == 16 * len(mutations.KINDS)
    assert {kind for kind, _ in seen} == set(mutations.KINDS)
    assert seen["sealed_reserved", Reason.NONE] == 16
    assert seen["truncate", Reason.TRUNCATED] == 16


def test_every_reason_is_reached():
    seen = reasons(Format.HUFFMAN4, 2000, seed=2)
    assert {reason for _, reason in seen} == set(Reason)


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(4))
def test_every_reason_is_reached_again(seed):
    seen = Counter()
    for fmt in (Format.HUFFMAN2, Format.HUFFMAN5, Format.HUFFMAN8):
        seen += reasons(fmt, 2000, [seed, fmt])
    assert {reason for _, reason in seen} == set(Reason)


def test_the_same_seed_gives_the_same_frames():
    frame = frame_of(Format.INT4)
    first, again, other = (list(mutations.mutate(frame, 50, seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_beats_are_those_of_the_bus():
    frame = frame_of(Format.FP8_E4M3)
    for bus in (8, 64):
        sizes = {m.kind: len(m.frame) for m in mutations.mutate(frame, 16, 0, beat_bytes=bus)}
        assert sizes["drop_beat"] == len(frame) - bus
        assert sizes["repeat_beat"] == len(frame) + bus
        assert sizes["swap_beats"] == len(frame)


def test_truncations_cut_at_every_byte():
    frame = frame_of(Format.INT4)
    cut = [mutation.frame for mutation in mutations.truncations(frame)]
    assert [len(part) for part in cut] == list(range(len(frame)))
    assert all(frame.startswith(part) for part in cut)
