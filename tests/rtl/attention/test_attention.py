"""The whole attention unit against its golden model, in every bit: random work on every config."""

import pytest

from golden.selection import Select
from hw.config import PAGE_TOKENS
from sim.attention import Counters
from tests.rtl.attention.scenes import CONFIGS, Scene

LONG_BUILDS = ("group8", "blocks", "streamed_wide")
ALL_CONFIGS = [pytest.param(name, marks=pytest.mark.regress if name in LONG_BUILDS else ())
               for name in CONFIGS]


def random_work(scene, commands):
    """Contexts filled in pieces, with queries in between."""
    rng = scene.rng
    for _ in range(commands):
        context = int(rng.integers(0, len(scene.entries)))
        room = scene.entries[context]["capacity"] - scene.lengths[context]
        if room and (not scene.lengths[context] or rng.random() < 0.4):
            count = int(rng.integers(1, min(room, 40) + 1))
            bits = scene.config.code_bits
            codes = rng.integers(0, 2, (count, bits)) if rng.random() < 0.3 else None
            scene.append(context, count, codes=codes)
        else:
            scene.random_queries(context)
    scene.add(Counters())


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_random_work(name):
    scene = Scene(name, seed=1)
    random_work(scene, 40)
    scene.run()


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(2, 12))
def test_more_random_work(seed):
    scene = Scene("tiny", seed=seed)
    random_work(scene, 120)
    scene.run()


def test_without_stalls():
    scene = Scene("tiny", seed=3, shuffle=False, stalls=0.0)
    random_work(scene, 40)
    scene.run()


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_every_length(name):
    """A context that grows past each boundary, and each boundary as visible length of the whole."""
    lanes, full = CONFIGS[name].lanes, CONFIGS[name].max_tokens
    lengths = sorted({1, lanes - 1, lanes, lanes + 1, PAGE_TOKENS - 1, PAGE_TOKENS,
                      PAGE_TOKENS + 1, full - 1, full})
    scene = Scene(name, [full], seed=4, stalls=0.1)
    for length in lengths:
        scene.append(0, length - scene.lengths[0])
        query_all_ways(scene)
    for visible in lengths[:-1]:
        query_all_ways(scene, visible=visible)
    scene.add(Counters())
    scene.run()


def query_all_ways(scene, visible=0):
    """A query of each select mode, with summaries and without."""
    count = visible or scene.lengths[0]
    middle = scene.config.distance_bins // 2
    for summaries in (False, True):
        fields = {"visible": visible, "summaries": summaries, "want_state": False}
        scene.query(0, **fields)
        scene.query(0, Select.BUDGET, count // 3, count // 3, **fields)
        scene.query(0, Select.PERCENTILE, 6000, 9000, **fields)
        scene.query(0, Select.DISTANCE, middle - 2, middle + 1, **fields)


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_every_mode(name):
    """What is delivered follows from the flags, in every combination; codes given or encoded."""
    scene = Scene(name, seed=5)
    rng, config = scene.rng, scene.config
    codes = rng.integers(0, 2, (45, config.code_bits))
    scene.append(0, 45, codes=codes)
    scene.append(1, 70)
    for context in (0, 1):
        for given in (None, rng.integers(0, 2, (config.group, config.code_bits))):
            for select, full, coarse in ((Select.DENSE, 0, 0), (Select.BUDGET, 6, 12)):
                for flags in range(8):
                    scene.query(context, select, full, coarse, codes=given,
                                summaries=bool(flags & 4), want_output=bool(flags & 1),
                                want_state=bool(flags & 2))
                    if flags % 3 == 0:
                        scene.query(context, select, full, coarse, codes=given,
                                    summaries=bool(flags & 4), logits_only=True)
    scene.add(Counters())
    scene.run()
