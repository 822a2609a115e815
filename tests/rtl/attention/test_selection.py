"""Selection through the whole unit: ties, forced tokens, minima, and queries that select nobody."""

import numpy as np
import pytest

from golden.selection import Select
from hw.config import EMPTY_MAXIMUM, PERCENT_FRACTION_BITS
from sim.attention import Counters
from tests.rtl.attention.scenes import Scene

ALL = 1 << PERCENT_FRACTION_BITS
TOKENS = 83


def coded_scene(*distances, seed):
    """A context for each list of distances, in which its tokens lie from a query of zeros."""
    scene = Scene("tiny", [TOKENS] * len(distances), seed=seed, stalls=0.1)
    for context, choices in enumerate(distances):
        codes = np.zeros((TOKENS, scene.config.code_bits), np.uint8)
        for code, ones in zip(codes, scene.rng.choice(choices, TOKENS), strict=True):
            code[:ones] = 1
        scene.append(context, TOKENS, codes=codes)
    return scene


def query(scene, context, *selection, **fields):
    zeros = np.zeros((scene.config.group, scene.config.code_bits), np.uint8)
    return scene.query(context, *selection, codes=zeros, want_state=False, **fields)


def test_ties_at_the_thresholds():
    """Codes all equal, as near or as far as can be; and of two distances."""
    distances = [0], [64], [20, 21], [7, 50]
    scene = coded_scene(*distances, seed=1)
    for context, choices in enumerate(distances):
        for summaries in (False, True):
            for counts in ((0, 0), (0, 1), (1, 0), (1, 1), (40, 0), (0, 41), (17, 20),
                           (TOKENS - 1, 1), (TOKENS, 0), (0, TOKENS)):
                query(scene, context, Select.BUDGET, *counts, summaries=summaries)
            for share in (0, 1, ALL // TOKENS + 1, ALL // 2, ALL):
                query(scene, context, Select.PERCENTILE, share, ALL - share, summaries=summaries)
            for limit in range(min(choices), max(choices) + 2):
                for limits in ((limit, limit + 1), (limit + 1, limit)):
                    query(scene, context, Select.DISTANCE, *limits, summaries=summaries)
    scene.add(Counters())
    scene.run()


def test_forced_tokens_and_minimum():
    scene = coded_scene([10, 11, 12, 40], seed=2)
    for visible in (0, 1, 16, 33):
        count = visible or TOKENS
        for sink, recent in ((0, count), (count, 0), (count, count), (count // 2, count - 1),
                             (255, 255), (1, 1), (3, 20), (0, 17)):
            for minimum in (0, count // 2 + 1, 255):
                for select, full, coarse in (
                        (Select.BUDGET, count // 4, count // 2), (Select.DISTANCE, 0, 11),
                        (Select.PERCENTILE, ALL // 10, ALL // 5)):
                    query(scene, 0, select, full, coarse, visible=visible, sink=sink, recent=recent,
                          minimum=minimum, summaries=bool((sink + minimum) % 2))
    scene.add(Counters())
    scene.run()


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_nobody_selected(name):
    """The empty set is a state like any other: no weight, no maximum, outputs of +0.0."""
    scene = Scene(name, seed=3)
    scene.append(0, 40)
    nobody = [scene.query(0, select, visible=visible)
              for select in (Select.DISTANCE, Select.BUDGET, Select.PERCENTILE)
              for visible in (0, 1, 16, 39)]
    silent = scene.query(0, Select.DISTANCE, logits_only=True)
    scene.query(0, Select.DISTANCE, summaries=True)
    scene.query(0)
    scene.add(Counters())
    results = scene.run()
    for index in nobody:
        assert (results[index].outputs == 0).all()
        assert results[index].beats == 0
        assert len(results[index].states) == scene.config.group
        for maximum, exponent, weight_sum, values in results[index].states:
            assert (maximum, exponent, weight_sum) == (EMPTY_MAXIMUM, 0, 0)
            assert not values.any()
    assert not any(results[silent].logits)
