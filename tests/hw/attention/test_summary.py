import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from golden.mxint import canonical, pack_row
from golden.summary import page_summaries
from hw.attention.row_packer import RowPacker
from hw.attention.summary import PageSummary
from hw.config import PAGE_TOKENS, AttentionConfig
from tests.hw.harness import run_stream_test


def config_of(head_dim=32, memory_bytes=16, **options):
    return AttentionConfig(head_dim=head_dim, code_bits=32, lanes=4, max_tokens=256,
                           memory_bytes=memory_bytes, contexts=3, **options)


def random_rows(config, rng, count, *, spread):
    """Mantissas [count, 2, d] and canonical exponents [count, 2, blocks], K and V."""
    mantissas = rng.integers(-128, 128, (count, 2, config.head_dim))
    mantissas[rng.random(count) < 0.1] = 0
    centre = rng.integers(0, 255 - spread)
    exponents = rng.integers(centre, centre + spread + 1, (count, 2, config.blocks))
    return mantissas, canonical(mantissas, exponents)


def row_bits(mantissas):
    return int.from_bytes(pack_row(mantissas).tobytes(), "little")


@dataclass
class Page:
    """The unfinished page of a context, and the tokens to feed for it."""

    mantissas: list = field(default_factory=list)
    exponents: list = field(default_factory=list)


class Expected:
    """Feeds of `PageSummary`, and what must come out, from interleaved commands."""

    def __init__(self, config, seed):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.pages = [Page() for _ in range(config.contexts)]
        self.feed, self.peaks, self.beats = [], [], []

    def command(self, context, count, *, spread=12, fails=False, wants_summary=True):
        """Append tokens to a context; a command that fails is never closed, and has no effect."""
        mantissas, exponents = random_rows(self.config, self.rng, count, spread=spread)
        page = self.pages[context]
        saved = Page(list(page.mantissas), list(page.exponents))
        for index in range(count):
            slot = len(page.mantissas) % PAGE_TOKENS
            if slot == 0:
                page.mantissas.clear()
                page.exponents.clear()
            page.mantissas.append(mantissas[index])
            page.exponents.append(exponents[index])
            has_summary = wants_summary and slot == PAGE_TOKENS - 1
            self.feed.append({
                "context": context, "slot": slot, "first": int(index == 0),
                "last": int(index == count - 1 and not fails), "has_summary": int(has_summary),
                "key": row_bits(mantissas[index, 0]), "value": row_bits(mantissas[index, 1]),
                "keys": exponents[index, 0].tolist(), "values": exponents[index, 1].tolist()})
            largest = np.max(page.exponents, axis=0)
            self.peaks.append({"keys": largest[0].tolist(), "values": largest[1].tolist()})
            if has_summary:
                self.expect_summary(page)
        if fails:
            self.pages[context] = saved

    def expect_summary(self, page):
        for side in range(2):
            mean, exponent = page_summaries(np.array(page.mantissas)[:, side],
                                            np.array(page.exponents)[:, side])
            assert (exponent[0] == np.max(page.exponents, axis=0)[side]).all()
            stored = pack_row(mean[0]).tobytes()
            width = self.config.memory_bytes
            self.beats += [{"data": int.from_bytes(stored[low:low + width], "little"),
                            "last": int(low + width == len(stored))}
                           for low in range(0, len(stored), width)]

    def run(self, **options):
        lanes = options.pop("lanes", 8)
        result = run_stream_test(
            PageSummary(self.config, lanes=lanes), feeds={"i": self.feed},
            sinks={"o_exponents": len(self.peaks), "o": len(self.beats)}, **options)
        assert result.outputs["o_exponents"] == self.peaks
        assert result.outputs["o"] == self.beats
        return result


@pytest.mark.parametrize("config, lanes, stall", [
    (config_of(), 8, 0.0), (config_of(), 8, 0.4), (config_of(), 1, 0.4),
    (config_of(64, 64), 16, 0.0), (config_of(64, 8), 4, 0.4),
    (config_of(64, 32, exponent_block=64), 8, 0.4),
], ids=["tiny", "tiny-stalls", "one-lane", "whole-row", "narrow", "one-exponent"])
def test_pages_of_several_contexts_fill_up_in_turn(config, lanes, stall):
    scene = Expected(config, seed=config.head_dim + lanes)
    rng = random.Random(config.memory_bytes)
    for command in range(8):
        scene.command(rng.randrange(3), rng.choice([1, 2, 7, 16]) if lanes > 1 else 6,
                      spread=rng.choice([0, 3, 40]))
        if command == 0:
            scene.command(0, 20)
    scene.run(seed=1, stall_probability=stall, lanes=lanes, timeout_cycles=40_000)
    assert scene.beats


def test_extreme_exponents_and_elements():
    scene = Expected(config_of(), seed=1)
    scene.command(0, 32, spread=254)
    for token in scene.feed:
        assert max(token["keys"] + token["values"]) <= 254
    scene.run(seed=0)


def test_every_element_at_its_limit():
    config = config_of()
    for element in (-128, 127):
        scene = Expected(config, seed=1)
        scene.command(0, 16)
        row = np.full(32, element)
        for token in scene.feed:
            token.update({"key": row_bits(row), "value": row_bits(row), "keys": [9], "values": [9]})
        scene.peaks = [{"keys": [9], "values": [9]}] * 16
        mean = pack_row(row).tobytes()
        scene.beats = [{"data": int.from_bytes(mean[low:low + 16], "little"), "last": low // 16}
                       for low in (0, 16)] * 2
        scene.run(seed=0)


def test_a_command_without_its_last_row_leaves_no_trace():
    scene = Expected(config_of(), seed=3)
    scene.command(1, 5)
    scene.command(1, 6, fails=True)
    scene.command(0, 4, fails=True)
    scene.command(1, 11)
    scene.command(0, 16)
    scene.run(seed=0)
    assert len(scene.beats) == 2 * 2 * 2


def test_summaries_that_nobody_wants_are_not_given():
    scene = Expected(config_of(), seed=4)
    scene.command(0, 16, wants_summary=False)
    scene.run(seed=0)
    assert scene.beats == []


def test_latency_and_throughput():
    scene = Expected(config_of(), seed=5)
    scene.command(0, 18)
    result = scene.run(seed=0)
    taken, peaks, beats = (result.input_cycles["i"], result.output_cycles["o_exponents"],
                           result.output_cycles["o"])
    # Two cycles for the exponents, then eight elements of K and V per cycle.
    assert taken[:15] == [9 + 10 * n for n in range(15)]
    assert peaks[:15] == [2 + 10 * n for n in range(15)]
    # The key summary: 4 chunks are read, the last is written 4 cycles on, and packed.
    first = peaks[15] + 4
    assert beats[:2] == [first + 4, first + 5]
    # The value summary begins when it has left.
    assert beats[2:] == [beats[1] + 1 + 8, beats[1] + 1 + 9]
    assert taken[16:] == [taken[15] + 10, taken[15] + 20]


def test_row_packer():
    config = config_of(64, 8)
    rng = np.random.default_rng(0)
    rows = rng.integers(-128, 128, (5, 64))
    chunks = [row[low:low + 16].tolist() for row in rows for low in range(0, 64, 16)]
    stored = pack_row(rows).tobytes()
    beats = [{"data": int.from_bytes(stored[low:low + 8], "little"),
              "last": int(low % 64 == 56)} for low in range(0, len(stored), 8)]
    for stall in (0.0, 0.5):
        result = run_stream_test(RowPacker(config, lanes=16), feeds={"i": chunks},
                                 sinks={"o": len(beats)}, seed=1, stall_probability=stall)
        assert result.outputs["o"] == beats


@pytest.mark.parametrize("make, error, message", [
    (lambda: PageSummary(8), TypeError, "PageSummary config must be an AttentionConfig, not 8"),
    (lambda: PageSummary(config_of(), lanes=16), ValueError,
     "PageSummary lanes must be at most 8, not 16"),
    (lambda: PageSummary(config_of(), lanes=3), ValueError,
     "PageSummary lanes must be a power of two, not 3"),
    (lambda: RowPacker(config_of(), lanes=32), ValueError,
     "RowPacker lanes must be at most 16, not 32"),
])
def test_refuses(make, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        make()
