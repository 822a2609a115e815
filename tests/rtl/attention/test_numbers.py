"""Numbers at their edges, through the whole unit: clipping, extreme scales, zeros, rescaling."""

import numpy as np
import pytest

from golden.mxint import quantise
from golden.selection import Select
from sim.attention import Append, Counters
from sim.attention.random_work import random_append, random_query
from tests.rtl.attention.scenes import Scene

LARGEST = 0x7F7FFFFF  # of float32


def append_real(scene, context, keys, values):
    """Append rows of real numbers."""
    key_rows, value_rows = (quantise(rows, scene.config.exponent_block) for rows in (keys, values))
    return scene.append_rows(Append(
        context=context, keys=key_rows[0], key_exponents=key_rows[1], values=value_rows[0],
        value_exponents=value_rows[1]))


def unit_query(scene, context, exponent=127):
    """A query of 1 (by default) along element 0."""
    config = scene.config
    query = random_query(config, scene.rng, context, 1)
    query.mantissas[:] = 0
    query.mantissas[:, 0] = 1 << config.query_bits - 2
    query.exponents[:] = exponent
    return query


def query_both(scene, context, like):
    return [scene.query(context, like=like),
            scene.query(context, Select.BUDGET, 7, 13, like=like, summaries=True),
            scene.query(context, like=like, logits_only=True)]


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_logits_that_clip(name):
    """At both ends of the range, just inside and far beyond; the status tells."""
    scene = Scene(name, seed=1, stalls=0.1)
    levels = np.array([32767, 32767.99, 32768, 33000, -32768, -32769, 1e9, -1e9, 1e30, -1e30, 3, 0])
    keys = np.zeros((len(levels), scene.config.head_dim))
    keys[:, 0] = levels
    for context, rows in ((0, keys), (1, keys[10:])):
        append_real(scene, context, rows, scene.rng.normal(0, 1, rows.shape))
    like = unit_query(scene, 0)
    clipped = [scene.query(0, visible=visible, like=like) for visible in (0, 7, 10)]
    clipped.append(scene.query(0, like=like, logits_only=True))
    inside = query_both(scene, 1, like) if name == "tiny" else [scene.query(1, like=like)]
    scene.add(Counters())
    results = scene.run()
    assert all(results[index].saturated for index in clipped)
    assert not any(results[index].saturated for index in inside)


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_extreme_exponents(name):
    """The largest and smallest scales of E8M0, in queries, keys and values, alone and mixed."""
    scene = Scene(name, seed=2, stalls=0.1)
    rng, config = scene.rng, scene.config
    ends = np.array([0, 1, 2, 127, 252, 253, 254], np.uint8)
    for context, key_ends, value_ends in ((0, [254], [254]), (1, [0], [0]), (2, ends, ends)):
        append = random_append(config, rng, context, 37)
        append.key_exponents[:] = rng.choice(key_ends, append.key_exponents.shape)
        append.value_exponents[:] = rng.choice(value_ends, append.value_exponents.shape)
        append.values[0] = -128  # alone, with the largest exponent, above all float32
        scene.append_rows(append)
        scene.query(context, visible=1)
    for context in range(3):
        for exponent in (0, 1, 100, 127, 154, 254):
            like = random_query(config, rng, context, 37)
            like.exponents[:] = exponent
            query_both(scene, context, like)
            like = unit_query(scene, context, exponent)
            query_both(scene, context, like)
    scene.add(Counters())
    results = scene.run()
    outputs = np.concatenate([result.outputs.ravel() for result in results
                              if getattr(result, "outputs", None) is not None]) & 0x7FFFFFFF
    assert (outputs == LARGEST).any(), "no output met the end of the range"
    assert ((outputs > 0) & (outputs < 1 << 23)).any(), "no output was subnormal"


def test_rows_of_zeros():
    """Zero keys weigh alike; zero values count in the weight only; a zero row sets no scale."""
    scene = Scene("tiny", seed=3, stalls=0.1)
    rng, dim = scene.rng, scene.config.head_dim
    zeros = np.zeros((21, dim))
    append_real(scene, 0, zeros, rng.normal(0, 1, zeros.shape))
    append_real(scene, 1, rng.normal(0, 1, zeros.shape), zeros)
    for context in (0, 2):
        append = random_append(scene.config, rng, context, 20)
        append.keys[::2], append.values[::3] = 0, 0
        append.key_exponents[::2], append.value_exponents[::3] = 254, 200
        scene.append_rows(append)
    silent = []
    for context in range(3):
        for exponent in (0, 127, 130):
            dense, *_ = query_both(scene, context, unit_query(scene, context, exponent))
            silent += [dense] if context == 1 else []
        query = unit_query(scene, context)
        query.mantissas[:] = 0
        query_both(scene, context, query)
    scene.add(Counters())
    results = scene.run()
    # Exactly zero, and positive; only a coarse row of zeros stands for a little more.
    assert not any(results[index].outputs.any() for index in silent)


@pytest.mark.parametrize("step", [1.3, -1.3, 40.0, -0.01])
def test_rescaling(step):
    """Logits and scales of values that rise, or fall, from token to token: sums shift at each."""
    scene = Scene("tiny", [96], seed=4, stalls=0.0)
    keys = np.zeros((96, scene.config.head_dim))
    keys[:, 0] = step * np.arange(96)
    octaves = np.clip(step * np.arange(96), -120, 120)
    append_real(scene, 0, keys, scene.rng.normal(0, 1, keys.shape) * np.exp2(octaves)[:, None])
    for visible in (0, 1, 2, 17, 95):
        scene.query(0, visible=visible, like=unit_query(scene, 0))
    query_both(scene, 0, unit_query(scene, 0))
    scene.add(Counters())
    scene.run()
