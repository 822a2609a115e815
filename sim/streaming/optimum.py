"""The true optimum of small scheduling problems, by mixed-integer programs.

First the best division of the chunks between the routes, their order left out; then, between that
bound and a known schedule, programs with one binary per chunk, route and start. Exact, and
practical up to about a dozen chunks with costs of about a dozen ticks.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from golden.streaming.balance import plan
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from sim.tools import BUILD

__all__ = ["division", "feasible", "optimum", "random_case", "greedy_over_optimum"]


class _Rows:
    """Rows of a sparse constraint matrix ``low <= A x <= high``, collected one by one."""

    def __init__(self):
        self.row, self.column, self.value, self.low, self.high = [], [], [], [], []

    def add(self, terms, low, high):
        for column, value in terms:
            self.row.append(len(self.low))
            self.column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)

    def constraint(self, columns):
        shape = (len(self.low), columns)
        matrix = coo_array((self.value, (self.row, self.column)), shape=shape)
        return LinearConstraint(matrix.tocsr(), self.low, self.high)


class _Starts:
    """Columns of one route's start variables: ``at[chunk][time]``, absent if it ended too late."""

    def __init__(self, ticks, horizon, first):
        self.ticks = [int(tick) for tick in ticks]
        self.at = []
        for tick in self.ticks:
            count = max(0, horizon - tick + 1)
            self.at.append(range(first, first + count))
            first += count
        self.end = first

    def all(self, chunk):
        return [(column, 1) for column in self.at[chunk]]

    def started(self, chunk, time, sign):
        """Terms of "started at or before ``time``"."""
        return [(column, sign) for column in self.at[chunk][: time + 1]]

    def finished(self, chunk, time, sign):
        """Terms of "finished at or before ``time``"."""
        last = time - self.ticks[chunk]
        return self.started(chunk, last, sign) if last >= 0 else []

    def running(self, chunk, time):
        """Terms of "busy in the tick that begins at ``time``"."""
        first = max(0, time - self.ticks[chunk] + 1)
        return [(column, 1) for column in self.at[chunk][first : time + 1]]


def _constraints(costs, rule, streams, computes, horizon):
    rows = _Rows()
    chunks = range(costs.grid.count)
    for chunk in chunks:
        rows.add(streams.all(chunk) + computes.all(chunk), 1, 1)
        for needed in costs.grid.needs_computed(chunk, rule):
            for time in range(len(computes.at[chunk])):
                rows.add(computes.started(chunk, time, 1) + computes.finished(needed, time, -1),
                         -np.inf, 0)
        for needed in costs.grid.needs_present(chunk, rule):
            for time in range(len(computes.at[chunk])):
                rows.add(computes.started(chunk, time, 1) + computes.finished(needed, time, -1)
                         + streams.finished(needed, time, -1), -np.inf, 0)
    for route in (streams, computes):
        for time in range(horizon):
            busy = [term for chunk in chunks for term in route.running(chunk, time)]
            if busy:
                rows.add(busy, 0, 1)
    return rows


def _solve(objective, rows, seconds, continuous=0):
    """``milp`` over binaries, but for the last ``continuous`` columns."""
    columns = len(objective)
    binary = np.arange(columns) < columns - continuous
    return milp(
        objective, integrality=binary, bounds=Bounds(0, np.where(binary, 1, np.inf)),
        constraints=rows.constraint(columns), options={"time_limit": seconds},
    )


def division(costs, rule):
    """Ticks of the longer route in the best division of the chunks, as if no route ever waited."""
    count = costs.grid.count
    streams, computes = costs.ticks
    rows = _Rows()
    # Column c: chunk c is computed; the last column: the longer route.
    rows.add([*enumerate(computes), (count, -1)], -np.inf, 0)
    streamed = [(chunk, -ticks) for chunk, ticks in enumerate(streams)]
    rows.add([*streamed, (count, -1)], -np.inf, -sum(streams))
    for chunk in range(count):
        for needed in costs.grid.needs_computed(chunk, rule):
            rows.add([(chunk, 1), (needed, -1)], -np.inf, 0)
    objective = np.zeros(count + 1)
    objective[count] = 1
    answer = _solve(objective, rows, np.inf, continuous=1)
    assert answer.status == 0  # a program of a dozen binaries
    return int(np.ceil(answer.fun - 1e-6))


def feasible(costs, rule, horizon, seconds=60.0):
    """Whether a schedule of at most ``horizon`` ticks exists; ``None``: no answer in time."""
    streams = _Starts(costs.stream, horizon, 0)
    computes = _Starts(costs.compute, horizon, streams.end)
    if not all(len(streams.at[c]) + len(computes.at[c]) for c in range(costs.grid.count)):
        return False
    rows = _constraints(costs, rule, streams, computes, horizon)
    answer = _solve(np.zeros(computes.end), rows, seconds)
    return {0: True, 1: None, 2: False}[answer.status]


def optimum(costs, rule, limit, seconds=60.0):
    """Ticks between which the best schedule lies.

    Parameters
    ----------
    costs : Costs
    rule : Rule
    limit : int
        Ticks of a schedule that is known to exist, such as the planned one's.
    seconds : float
        Longest time spent on one question to the solver.

    Returns
    -------
    (low, high) : int, int
        The same unless the solver ran out of time.
    """
    low = division(costs, rule)
    while low < limit:
        # Asking "is there one of at most ``low`` ticks" is far easier than minimising.
        answer = feasible(costs, rule, low, seconds)
        if answer is None:
            break
        if answer:
            return low, low
        low += 1
    return low, limit


def random_case(rng):
    """A small random problem: (costs, rule) of 4 to 12 chunks, links from slow to fast."""
    while True:
        sizes = [int(rng.integers(1, high)) for high in (5, 5, 4)]
        if 4 <= np.prod(sizes) <= 12:
            break
    grid = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2])
    chunks = np.arange(grid.count)
    block = chunks // (grid.layers * grid.heads)
    last = (chunks // grid.heads % grid.layers == grid.layers - 1) & (grid.layers > 1)
    compute = rng.integers(3, 9, grid.count) + rng.integers(0, 2 * block + 1)
    compute = np.where(last, np.maximum(1, compute // 3), compute)
    link = np.exp(rng.uniform(-1, 1))
    stream = np.clip(np.rint(rng.uniform(3, 8, grid.count) * link), 1, 20).astype(int)
    return Costs(grid=grid, stream=stream, compute=compute), Rule(int(rng.integers(2)))


def greedy_over_optimum(count, seed, seconds=20.0):
    """Ratios of the planned makespan to the optimum, for so many random cases.

    Where the solver ran out of time, to what it proved the optimum to be at least: never
    flattering.

    Returns
    -------
    (ratios, solved) : float array, int
    """
    rng = np.random.default_rng(seed)
    ratios, solved = np.empty(count), 0
    for index in range(count):
        costs, rule = random_case(rng)
        planned = plan(costs, rule).makespan(costs)
        low, high = optimum(costs, rule, planned, seconds)
        ratios[index] = planned / low
        solved += low == high
    return ratios, solved


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.streaming.optimum",
        description="The planned schedule against the true optimum of small random cases.")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=BUILD / "streaming", metavar="FOLDER")
    options = parser.parse_args(arguments)
    ratios, solved = greedy_over_optimum(options.cases, options.seed)
    found = {
        "streaming.greedy_over_optimum.mean": float(ratios.mean()),
        "streaming.greedy_over_optimum.worst": float(ratios.max()),
        "streaming.greedy_over_optimum.optimal": int((ratios == 1).sum()),
        "streaming.greedy_over_optimum.cases": options.cases,
        "streaming.greedy_over_optimum.solved": solved,
    }
    for key, value in found.items():
        print(f"{key} {value:.4g}")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "optimum.json").write_text(
        json.dumps({"figures": found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
