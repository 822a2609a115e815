"""Schedules, the greedy algorithm and its balance: invariants and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.streaming.balance import balance, plan
from golden.streaming.baselines import all_compute, all_stream, static_hybrid
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import CostModel, Costs
from golden.streaming.greedy import Potential, greedy
from golden.streaming.schedule import STAGES_MAX, Schedule, finish_times, lower_bound, staged
from tests.golden.streaming.cases import problems

GRID = Grid(blocks=2, layers=2, heads=1)


def lagging(schedule):
    """Stages in which a computed chunk needs one of a later stage."""
    stage_of = schedule.stage_of()
    edges = schedule.grid.edges[schedule.rule]
    return [
        chunk for chunk in schedule.compute_list
        for needed in (*edges.needs_present[chunk], *edges.needs_computed[chunk])
        if stage_of[needed] > stage_of[chunk]
    ]


@given(problems(), st.integers(1, 300), st.sampled_from(Potential))
def test_greedy_lists_each_chunk_once_in_an_order_that_works(problem, stage_ticks, potential):
    costs, rule = problem
    schedule = greedy(costs, rule, stage_ticks, potential)
    finish = finish_times(costs, rule, schedule.stream_list, schedule.compute_list)
    assert len(finish) == costs.grid.count and None not in finish
    assert lower_bound(costs, rule) <= max(finish) <= schedule.stage_sum(costs)
    assert lagging(schedule) == []


@given(problems(), st.integers(1, 300))
def test_greedy_stages_are_no_longer_than_asked_until_nothing_fits(problem, stage_ticks):
    costs, rule = problem
    if stage_ticks < 60:  # the longest chunk of a problem
        return
    schedule = greedy(costs, rule, stage_ticks)
    for lists, ticks in ((schedule.stream, costs.stream), (schedule.compute, costs.compute)):
        assert all(ticks[list(stage)].sum() <= stage_ticks for stage in lists)


@settings(max_examples=50)
@given(problems())
def test_the_plan_is_between_the_bound_and_any_single_route(problem):
    costs, rule = problem
    schedule = plan(costs, rule)
    makespan = schedule.makespan(costs)
    assert lower_bound(costs, rule) <= makespan
    assert makespan <= min(costs.stream.sum(), costs.compute.sum())
    assert lagging(schedule) == []


@given(problems())
def test_balance_never_lengthens(problem):
    costs, rule = problem
    for schedule in (all_stream(costs, rule), static_hybrid(costs, rule)):
        streams, computes, makespan = balance(costs, rule, schedule.stream_list,
                                              schedule.compute_list)
        assert makespan == max(finish_times(costs, rule, streams, computes))
        assert makespan <= schedule.makespan(costs)
        assert sorted(streams + computes) == list(range(costs.grid.count))


@given(problems(), st.integers(10, 400))
def test_stages_follow_the_times(problem, stage_ticks):
    costs, rule = problem
    schedule = static_hybrid(costs, rule)
    cut = staged(costs, rule, schedule.stream_list, schedule.compute_list, stage_ticks)
    assert (cut.stream_list, cut.compute_list) == (schedule.stream_list, schedule.compute_list)
    assert lagging(cut) == []


@pytest.mark.parametrize("rule", Rule)
def test_the_columns_potential_on_a_real_size_is_near_the_bound(rule):
    """And the printed potential is far from it: the finding in docs/scheduling.md."""
    grid = Grid(blocks=8, layers=16, heads=4)
    rng = np.random.default_rng(5)
    bits = rng.uniform(3.5, 5.5, grid.count)
    active = rng.uniform(0.2, 1, grid.count) * (np.arange(grid.count) // 64)
    costs = CostModel().costs(grid, bits=bits, active=active, bits_per_second=100e6)
    bound = lower_bound(costs, rule)
    shares = (0.06, 0.125)
    assert plan(costs, rule, shares, (Potential.COLUMNS,)).makespan(costs) <= 1.02 * bound
    printed = greedy(costs, rule, int(0.06 * bound), Potential.PRINTED).makespan(costs)
    assert printed > 1.5 * bound


def test_all_of_one_route():
    costs = Costs(grid=GRID, stream=[5, 6, 7, 8], compute=[1, 2, 3, 4])
    assert all_stream(costs, Rule.PAPER).makespan(costs) == 26
    assert all_compute(costs, Rule.STRICT).makespan(costs) == 10


def test_finish_times_by_hand():
    """Chunk 2 (block 1, layer 0) needs chunk 0 present; chunk 3, of the last layer, needs 2."""
    costs = Costs(grid=GRID, stream=[10, 10, 10, 10], compute=[1, 1, 1, 1])
    assert finish_times(costs, Rule.PAPER, [0, 1], [2, 3]) == [10, 20, 11, 12]


@pytest.mark.parametrize("streams, computes, text", [
    ([0, 2], [1, 3], "must hold chunk 0 before chunk 1"),
    ([3], [2, 0, 1], "chunk 0 must be brought before chunk 2"),
])
def test_orders_that_cannot_run_are_refused(streams, computes, text):
    costs = Costs(grid=GRID, stream=[1] * 4, compute=[1] * 4)
    with pytest.raises(ValueError, match=text):
        finish_times(costs, Rule.PAPER, streams, computes)


@pytest.mark.parametrize("stream, compute, text", [
    (((0, 1),), ((2,),), "each of 4 chunks once, not 3 entries with 3"),
    (((0, 1),), ((1, 2, 3),), "each of 4 chunks once, not 5 entries with 4"),
    (((0, 1, 2, 7),), ((),), "each of 4 chunks once, not 4 entries"),
    (((0, 1), (2,)), ((3,),), "as many stages on both routes, not 2 and 1"),
    ((), (), r"Schedule\.stages must be in 1\.\.256, not 0"),
    (((0, 1, 2, 3),) + ((),) * STAGES_MAX, ((),) * (STAGES_MAX + 1), "not 257"),
])
def test_bad_schedules_are_refused(stream, compute, text):
    with pytest.raises(ValueError, match=text):
        Schedule(grid=GRID, rule=Rule.PAPER, stream=stream, compute=compute)
