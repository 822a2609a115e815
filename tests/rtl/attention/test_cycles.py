"""Queries in flight behind each other, the accounting of cycles, and exact latencies."""

import pytest

from golden.selection import Select
from sim.attention import Counters, Wait
from tests.rtl.attention.scenes import Scene

CAUSES = ("cycles_busy", "cycles_memory", "cycles_output", "cycles_idle")


def total(counters):
    return sum(counters[cause] for cause in CAUSES)


def test_results_that_nobody_takes():
    """More queries than slots, over all contexts, while results leave a beat per 30 cycles."""
    scene = Scene("tiny", seed=1, stalls=0.0)
    scene.session.stall_probability = 0.97
    for context in range(3):
        scene.append(context, 30 + context)
    scene.add(Counters())
    first = scene.random_queries(0, logits_only=False)
    for context in (1, 2, 0, 0, 2, 1, 1, 2, 0):
        last = scene.random_queries(context, logits_only=False)
    scene.query(1, Select.BUDGET, 3, 3, logits_only=True)
    scene.append(1, 20)
    scene.query(1, Select.BUDGET, 3, 3, summaries=True)
    scene.add(Counters())
    results = scene.run()
    # In the order of issue, and four ahead were taken before the first was done.
    ends = [results[index].end_cycle for index in range(first, last + 1)]
    assert ends == sorted(ends)
    starts = [results[index].start_cycle for index in range(first, last + 1)]
    assert starts[4] < ends[0]
    assert results[-1]["cycles_output"] > results[-1]["cycles_busy"]


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_every_cycle_is_counted_once(stalls):
    scene = Scene("tiny", seed=2, stalls=stalls, latency=40)
    readings = [scene.add(Counters(clear=False))]
    scene.append(0, 40)
    readings.append(scene.add(Counters(clear=False)))
    scene.random_queries(0, 5)
    readings.append(scene.add(Counters(clear=True)))
    scene.random_queries(0, 2)
    scene.add(Counters(clear=False))
    results = scene.run()
    start, appended, queried = (results[index] for index in readings)
    assert total(appended) - total(start) == appended["now"] - start["now"]
    assert total(queried) - total(start) == queried["now"] - start["now"]
    # Cleared a few cycles after it was read.
    cleared = results[-1]["now"] - queried["now"] - total(results[-1])
    assert 0 < cleared < 200
    config = scene.config
    rows = 2 * (40 + 40 // 16)
    assert appended["beats_written"] == rows * config.full_beats
    assert queried["beats_written"] == appended["beats_written"]
    for cause in ("cycles_busy", "cycles_memory"):
        assert queried[cause] > appended[cause] > 0
    assert queried["cycles_scanning"] > 0
    assert queried["cycles_matching"] > 0
    assert (queried["cycles_output"] > 0) == (stalls > 0)


def test_latencies():
    """Pinned: whoever makes the unit slower must say so here, and whoever makes it faster may."""
    scene = Scene("tiny", seed=3, stalls=0.0, latency=10, shuffle=False)
    scene.append(0, 96)
    alone = []
    for fields in ({"select": Select.BUDGET, "full": 8, "coarse": 16},
                   {"select": Select.BUDGET, "full": 8, "coarse": 16, "summaries": True},
                   {}):
        scene.add(Wait())
        alone.append(scene.query(0, want_state=False, **fields))
    scene.add(Wait())
    first = scene.query(0, Select.BUDGET, 8, 16, want_state=False)
    for _ in range(6):
        last = scene.query(0, Select.BUDGET, 8, 16, want_state=False)
    results = scene.run()
    latencies = [results[index].output_cycle - results[index].start_cycle for index in alone]
    behind = results[last].end_cycle - results[first].end_cycle
    assert (latencies, behind) == ([258, 287, 475], 473)
