"""The whole attention unit against its golden model, in every bit."""

from dataclasses import replace

import numpy as np
import pytest

from hw.presets import PRESETS
from sim.attention import Counters, Memory, Session
from sim.attention.layout import place
from sim.attention.random_work import random_append, random_query, weights
from sim.attention.twin import compare, expected_results

TINY = replace(PRESETS["tiny"], max_tokens=256, resident_tokens=512, table_pages=64)


def random_session(config, *, seed, commands=30, capacities=(100, 160, 64), shuffle=True,
                   stalls=0.3):
    """Contexts filled in pieces with queries in between, on a memory that is late at random."""
    rng = np.random.default_rng(seed)
    placement = place(config, list(capacities), seed=seed, row_gap=int(rng.integers(0, 2)),
                      page_gap=int(rng.integers(0, 3)))
    session = Session(config, memory_size=placement.memory_size,
                      idle_probability=stalls, stall_probability=stalls)
    session.add(Memory(controls={"read_latency": 7, "write_latency": 5, "shuffle": int(shuffle)}))
    session.add(*placement.operations, *weights(config))
    lengths = [0] * len(capacities)
    for _ in range(commands):
        context = int(rng.integers(0, len(capacities)))
        room = capacities[context] - lengths[context]
        if room and (not lengths[context] or rng.random() < 0.4):
            count = int(rng.integers(1, min(room, 40) + 1))
            session.add(random_append(config, rng, context, count,
                                      with_codes=bool(rng.random() < 0.3)))
            lengths[context] += count
        else:
            session.add(random_query(config, rng, context, lengths[context]))
    session.add(Counters())
    return session


def check(session, seed):
    results = session.run(seed=seed)
    compared = compare(session.operations, results,
                       expected_results(session.config, session.operations))
    print(f"{compared} values agreed")
    counters = results[-1]
    assert counters["commands"] > 0
    return results


@pytest.mark.parametrize("seed", [1, 2])
def test_random_sessions(seed):
    check(random_session(TINY, seed=seed), seed)


def test_without_stalls():
    check(random_session(TINY, seed=3, shuffle=False, stalls=0.0), 3)


