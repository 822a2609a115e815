"""Resets at random points of every kind of work, and correct work after each."""

from dataclasses import replace

import pytest

from golden.selection import Select
from sim.attention import Counters, Reset, Wait
from sim.attention.random_work import random_append
from tests.rtl.attention.scenes import Scene

ROUNDS = 5


def check_as_new(scene):
    """Contexts are entered anew, and are empty; the encoder's weights are still there."""
    scene.set_up()
    scene.query(0)
    scene.append(0, 21)
    scene.append(1, 16)
    scene.query(0, Select.BUDGET, 6, 7, summaries=True)
    scene.query(1, Select.BUDGET, 3, 3)
    scene.query(0, want_state=False)
    scene.add(Counters())


@pytest.mark.parametrize("name", [
    "tiny", "streamed", pytest.param("wide", marks=pytest.mark.regress)])
def test_reset(name):
    """In the middle of an append, of queries in flight, of output, and of weights."""
    scene = Scene(name, seed=1)
    rng = scene.rng

    def cut_append():
        scene.append(0, 5)
        scene.append(1, 60)
        scene.add(Reset(after=int(rng.integers(20, 2500))))

    def cut_queries():
        scene.append(0, 50)
        scene.add(Wait())
        scene.random_queries(0, 4)
        scene.add(Reset(after=int(rng.integers(1, 1200))))

    def cut_output():
        scene.append(1, 9)
        scene.add(Wait())
        scene.query(1)
        scene.query(1, Select.BUDGET, 3, 3, logits_only=True)
        # All but the last beat of all could be the one before the reset.
        scene.add(Reset(beats=int(rng.integers(1, 30)), after=int(rng.integers(0, 3))))

    def cut_weights():
        scene.append(1, 9)
        scene.add(Wait(), scene.weights[0])
        scene.query(1)
        scene.add(Reset(after=int(rng.integers(1, 200))))

    for cut in (cut_append, cut_queries, cut_output, cut_weights):
        for _ in range(ROUNDS):
            check_as_new(scene)
            cut()
            scene.set_up()
    check_as_new(scene)
    scene.append(0, 60)
    scene.random_queries(0, 10)
    scene.add(Counters())
    results = scene.run()
    resets = [index for index, operation in enumerate(scene.session.operations)
              if isinstance(operation, Reset)]
    assert len(resets) == 1 + 4 * ROUNDS  # one at the very start
    # Most met a command that had not ended.
    assert sum(results[index - 1] is None for index in resets) > 2 * ROUNDS


def test_contexts_do_not_survive():
    """Commands right after a reset, before any context is entered."""
    scene = Scene("tiny", seed=2)
    append = random_append(scene.config, scene.rng, 0, 3)
    for context in range(3):
        scene.append(context, 3)
    scene.add(Wait(), Reset())
    for context in range(4):
        scene.query(context)
        scene.add(replace(append, context=context))
    check_as_new(scene)
    results = scene.run()
    assert results[-1]["errors_context"] == 8
