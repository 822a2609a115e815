"""The potential-aware greedy schedule: scheduling section 3.

Source: SparKV (arXiv 2604.21231) for the stages, both phases and ``Potential.PRINTED``.
``Potential.COLUMNS`` and all ties are ours: the printed stream potential cuts columns off at their
lowest layers, and then nothing is left to compute (docs/scheduling.md has the figures).
"""

from enum import Enum

import numpy as np

from golden.streaming.chunks import Rule
from golden.streaming.schedule import Schedule

__all__ = ["Potential", "greedy"]


class Potential(Enum):
    """What the stream phase sorts by.

    PRINTED: ``1/t_stream + sum over chunks it newly unlocks of 1/t_comp``. COLUMNS: the compute
    time that streaming saves per time on the link, over the best group of chunks from the top of
    the column down.
    """

    PRINTED = "printed"
    COLUMNS = "columns"


class _Plan:
    """What is taken, what is ready, and what each choice is worth while a schedule grows."""

    def __init__(self, costs, rule):
        self.grid = costs.grid
        self.edges = self.grid.edges[rule]
        self.stream_ticks, self.compute_ticks = costs.ticks
        self.value = (1 / costs.compute).tolist()
        self.free = [True] * self.grid.count
        self.missing = [
            len(present) + len(computed)
            for present, computed in zip(self.edges.needs_present, self.edges.needs_computed,
                                         strict=True)
        ]
        self.ready = {chunk for chunk in range(self.grid.count) if self.missing[chunk] == 0}
        self.left = self.grid.count
        self.columns = _columns(self.grid, rule)

    def unlocked(self, chunk, computed):
        """Value of the chunks that lack only this one to be computable."""
        helps = self.edges.helps_present[chunk]
        if computed:
            helps += self.edges.helps_computed[chunk]
        return sum(
            self.value[other] for other in helps if self.missing[other] == 1 and self.free[other]
        )

    def take(self, chunk):
        self.free[chunk] = False
        self.ready.discard(chunk)
        self.left -= 1

    def arrive(self, chunk, computed):
        """The chunk is there: its dependants lack one less."""
        helps = self.edges.helps_present[chunk]
        if computed:
            helps += self.edges.helps_computed[chunk]
        for other in helps:
            self.missing[other] -= 1
            if self.missing[other] == 0 and self.free[other]:
                self.ready.add(other)

    def stream_potentials(self, potential):
        """Potential of each free chunk in the stream phase: a dict."""
        if potential == Potential.PRINTED:
            return {
                chunk: 1 / self.stream_ticks[chunk] + self.unlocked(chunk, computed=False)
                for chunk in range(self.grid.count)
                if self.free[chunk]
            }
        potentials = {}
        for column in self.columns:
            for saved, spent, group in self._groups(chunk for chunk in column if self.free[chunk]):
                potentials.update(dict.fromkeys(group, saved / spent))
        return potentials

    def _groups(self, column):
        """Cut a column, from its top down, into groups whose saved / spent time falls.

        A chunk that saves more than those above it is worth nothing without them: they would lose
        their hidden state. So it joins their group (pooling adjacent violators).
        """
        groups = []
        for chunk in column:
            saved, spent, group = self.compute_ticks[chunk], self.stream_ticks[chunk], [chunk]
            while groups and saved * groups[-1][1] >= groups[-1][0] * spent:
                above = groups.pop()
                saved, spent, group = saved + above[0], spent + above[1], above[2] + group
            groups.append((saved, spent, group))
        return groups


def _columns(grid, rule):
    """Chunks that lose their hidden states to each other, the top layer first."""
    ids = np.arange(grid.count).reshape(grid.blocks, grid.layers, grid.heads)[:, ::-1]
    if rule == Rule.PAPER:
        ids = ids.transpose(0, 2, 1)
        return ids.reshape(-1, grid.layers).tolist()
    return ids.reshape(grid.blocks, -1).tolist()


def _compute_phase(plan, stage_ticks):
    """Repeatedly the ready chunk of highest potential that fits; lowest id on ties."""
    taken, room = [], stage_ticks
    while True:
        fitting = [chunk for chunk in plan.ready if plan.compute_ticks[chunk] <= room]
        if not fitting:
            return taken
        best = max(
            fitting,
            key=lambda chunk: (plan.value[chunk] + plan.unlocked(chunk, computed=True), -chunk),
        )
        plan.take(best)
        plan.arrive(best, computed=True)
        taken.append(best)
        room -= plan.compute_ticks[best]


def _stream_phase(plan, stage_ticks, potential):
    """What fits, in order of a potential that is found once; highest id on ties."""
    potentials = plan.stream_potentials(potential)
    taken, room = [], stage_ticks
    for chunk in sorted(potentials, key=lambda chunk: (potentials[chunk], chunk), reverse=True):
        if plan.stream_ticks[chunk] <= room:
            plan.take(chunk)
            taken.append(chunk)
            room -= plan.stream_ticks[chunk]
    for chunk in taken:
        plan.arrive(chunk, computed=False)
    return taken


def greedy(costs, rule, stage_ticks, potential=Potential.COLUMNS):
    """The schedule of the potential-aware greedy algorithm.

    In each stage the compute phase picks repeatedly the ready chunk of highest ``1/t_comp + sum
    over chunks it newly unlocks of 1/t_comp`` that fits; then the stream phase sorts the rest once
    and takes what fits. Chunks that a stage streams count as present from the next one on.

    Parameters
    ----------
    costs : Costs
    rule : Rule
    stage_ticks : int
        Length dt of a stage. A stage into which nothing fits doubles it from there on.
    potential : Potential

    Returns
    -------
    Schedule
    """
    plan = _Plan(costs, rule)
    streams, computes = [], []
    while plan.left:
        compute = _compute_phase(plan, stage_ticks)
        stream = _stream_phase(plan, stage_ticks, potential)
        if compute or stream:
            computes.append(compute)
            streams.append(stream)
        else:
            stage_ticks *= 2
    return Schedule(grid=costs.grid, rule=rule, stream=streams, compute=computes)
