"""Traces against adding up tick by tick."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.streaming.traces import RATE_ONE, Trace, constant, fading, outage, step, walk


@st.composite
def traces(draw):
    lengths = draw(st.lists(st.integers(1, 6), max_size=5))
    rates = draw(st.lists(st.integers(0, 3 * RATE_ONE), min_size=len(lengths) + 1,
                          max_size=len(lengths) + 1))
    return Trace(np.concatenate(([0], np.cumsum(lengths))).astype(int), rates)


@given(traces(), st.integers(0, 40), st.integers(1, 20))
def test_finish_is_the_first_tick_by_which_the_amount_has_passed(trace, start, amount):
    def rate(tick):
        return [r for s, r in zip(trace.starts, trace.rates, strict=True) if s <= tick][-1]

    finish = trace.finish(start, amount)
    done, tick = 0, start
    while done < amount * RATE_ONE:
        if tick > 40 and rate(tick) == 0:
            assert finish is None
            return
        if tick > 40:
            tick += -(-(amount * RATE_ONE - done) // rate(tick))
            break
        done += rate(tick)
        tick += 1
    assert finish == tick


def test_constant_step_and_outage():
    assert constant(0.5).finish(10, 4) == 18
    assert constant(0).finish(0, 1) is None
    assert step(1, at=10, factor=0.25).finish(0, 12) == 18
    assert outage(2, at=10, length=100).finish(5, 12) == 111
    assert outage(2, at=10, length=100).finish(50, 2) == 111


@pytest.mark.parametrize("trace", [
    fading(12.5, 3, step_ticks=100, depth=0.5), walk(12.5, 3, step_ticks=100),
])
def test_random_traces_keep_the_mean_and_repeat(trace):
    assert np.mean(trace.rates) == pytest.approx(12.5 * RATE_ONE, rel=0.05)
    assert len(set(trace.rates)) > 100
    assert min(trace.rates) > 0


def test_bad_traces_are_refused():
    for starts in ([], [1], [0, 5, 5], [0, 5, 4]):
        with pytest.raises(ValueError, match="starts must"):
            Trace(starts, [1] * len(starts))
    with pytest.raises(ValueError, match="rates must be in"):
        Trace([0], [-1])
    with pytest.raises(ValueError, match="amount must be in"):
        constant(1).finish(0, 0)
