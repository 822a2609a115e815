"""The planned schedule against the true optimum, and the optimum against trying everything."""

import itertools

import numpy as np
import pytest

from golden.streaming.balance import plan
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.schedule import finish_times, lower_bound
from sim.streaming.optimum import division, feasible, greedy_over_optimum, optimum


def by_trying(costs, rule):
    """The least makespan over all divisions and orders."""
    best = None
    chunks = range(costs.grid.count)
    for size in range(costs.grid.count + 1):
        for streamed in itertools.combinations(chunks, size):
            rest = [chunk for chunk in chunks if chunk not in streamed]
            for streams in itertools.permutations(streamed):
                for computes in itertools.permutations(rest):
                    try:
                        makespan = max(finish_times(costs, rule, streams, computes))
                    except ValueError:
                        continue
                    best = makespan if best is None else min(best, makespan)
    return best


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("sizes", [(2, 2, 1), (1, 2, 2), (5, 1, 1), (1, 5, 1)])
def test_the_optimum_is_what_trying_everything_finds(sizes, rule):
    seed = sum(sizes)
    rng = np.random.default_rng(seed)
    grid = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2])
    for number in range(3):
        costs = Costs(grid=grid, stream=rng.integers(1, 9, grid.count),
                      compute=rng.integers(1, 9, grid.count))
        limit = int(min(costs.stream.sum(), costs.compute.sum()))
        best = by_trying(costs, rule)
        assert optimum(costs, rule, limit) == (best, best), f"seed {seed}, case {number}"
        assert lower_bound(costs, rule) <= division(costs, rule) <= best
        assert feasible(costs, rule, best) and not feasible(costs, rule, best - 1)
        assert best <= plan(costs, rule).makespan(costs)


def test_out_of_time_the_answer_is_a_range():
    costs = Costs(grid=Grid(blocks=4, layers=3, heads=1), **HARD)
    low, high = optimum(costs, Rule.PAPER, 50, seconds=0.1)
    assert (low, high) == (49, 50)


HARD = {
    "stream": [7, 9, 11, 15, 16, 13, 8, 12, 13, 7, 13, 10],
    "compute": [8, 8, 2, 8, 8, 2, 7, 8, 2, 8, 6, 4],
}


@pytest.mark.parametrize("count, seconds", [
    (15, 3), pytest.param(200, 20, marks=pytest.mark.regress),
])
def test_the_plan_is_near_the_optimum(count, seconds):
    ratios, solved = greedy_over_optimum(count, seed=1, seconds=seconds)
    assert solved >= 0.9 * count
    assert ratios.min() >= 1
    assert ratios.mean() <= 1.05 and ratios.max() <= 1.20
