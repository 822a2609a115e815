"""The baselines by hand, and the scheduler against them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.streaming.baselines import Result, cachegen, cake, static_hybrid
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.schedule import lower_bound
from golden.streaming.simulate import Serial
from golden.streaming.traces import constant
from sim.streaming.scenario import CONDITIONS, Prompt
from sim.streaming.ttft import figures, measure
from tests.golden.streaming.cases import problems

GRID = Grid(blocks=4, layers=1, heads=1)
COSTS = Costs(grid=GRID, stream=[10] * 4, compute=[10] * 4, wire_bytes=[10] * 4)


def test_the_static_hybrid_cuts_where_both_end_together():
    schedule = static_hybrid(COSTS, Rule.PAPER)
    assert (schedule.compute_list, schedule.stream_list) == ((0, 1), (2, 3))


def test_cake_meets_in_the_middle_wherever_that_is():
    def sides(rate):
        return (Serial(constant(rate), COSTS.wire_bytes), Serial(constant(1), COSTS.compute))

    assert cake(COSTS, Rule.PAPER, *sides(1), outstanding=1) == Result(20, 2)
    assert cake(COSTS, Rule.PAPER, *sides(3), outstanding=1) == Result(12, 3)


@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(1, 3))
def test_cake_finishes_and_beats_no_bound(problem, outstanding):
    costs, rule = problem
    sides = Serial(constant(1), costs.stream), Serial(constant(1), costs.compute)
    result = cake(costs, rule, *sides, outstanding)
    assert result.makespan >= lower_bound(costs, rule)
    assert 0 <= result.streamed <= costs.grid.count


@pytest.mark.parametrize("target, expected", [
    (70, Result(64, 4)),  # all at 1.6 times the bytes
    (50, Result(46, 4)),  # the first ones do not fit at 1.6
    (39, Result(36, 3)),  # 40 ticks do not fit: the first is computed; the last fits at 1.6
    (5, Result(40, 0)),
])
def test_cachegen_takes_the_best_level_that_fits(target, expected):
    assert cachegen(COSTS, constant(1), constant(1), target=target) == expected


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_make_fresh_sides(name):
    prompt = Prompt(blocks=2, layers=4, heads=2)
    costs = prompt.costs(300)
    condition = CONDITIONS[name](300 / 8, 1)
    first, second = (condition.sides(costs)[0].request(0, 3) for _ in range(2))
    assert first == second and first.time > 5000


def test_time_to_first_token_at_the_crossover():
    """A quarter of the prompt of ``python -m sim.streaming.ttft``, one trace."""
    prompt = Prompt(blocks=4, layers=16)
    crossover = prompt.crossover()
    found = figures(measure(prompt, [crossover], seeds=1), crossover)
    assert found["streaming.ttft.crossover.speedup_best_single"] >= 1.3
    assert found["streaming.ttft.crossover.speedup_cake"] > 0.97
    assert found["streaming.plan_over_bound.crossover"] <= 1.02
    assert found["streaming.energy.crossover.ratio"] >= 1.5
