"""A schedule: two ordered lists of chunks with stage boundaries, as the hardware loads it."""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_int
from golden.streaming.chunks import Grid, Rule

__all__ = ["STAGES_MAX", "Schedule", "staged", "finish_times", "lower_bound"]

STAGES_MAX = 256


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which chunk goes which route, in which order, in which stage.

    Parameters
    ----------
    grid : Grid
    rule : Rule
    stream, compute : tuple of tuples of int
        Chunk ids per stage, in order; both have as many stages. Empty stages are allowed.

    Raises
    ------
    ValueError
        A chunk that is missing, repeated or not of the grid; or stages that do not pair.
    """

    grid: Grid
    rule: Rule
    stream: tuple
    compute: tuple

    def __post_init__(self):
        if not isinstance(self.rule, Rule):
            raise TypeError(f"Schedule.rule must be a Rule, not {self.rule!r}")
        for name in ("stream", "compute"):
            lists = tuple(tuple(int(chunk) for chunk in stage) for stage in getattr(self, name))
            object.__setattr__(self, name, lists)
        if len(self.stream) != len(self.compute):
            raise ValueError(
                f"Schedule must have as many stages on both routes, not {len(self.stream)} and "
                f"{len(self.compute)}"
            )
        check_int("Schedule.stages", self.stages, 1, STAGES_MAX)
        listed = sorted(self.stream_list + self.compute_list)
        if listed != list(range(self.grid.count)):
            raise ValueError(
                f"Schedule must list each of {self.grid.count} chunks once, not {len(listed)} "
                f"entries with {len(set(listed))} different ones"
            )

    @property
    def stages(self):
        return len(self.stream)

    @property
    def stream_list(self):
        """All streamed chunks in order."""
        return tuple(chunk for stage in self.stream for chunk in stage)

    @property
    def compute_list(self):
        """All computed chunks in order."""
        return tuple(chunk for stage in self.compute for chunk in stage)

    def stage_of(self):
        """Stage of every chunk: a list of int."""
        stage_of = [0] * self.grid.count
        for lists in (self.stream, self.compute):
            for stage, chunks in enumerate(lists):
                for chunk in chunks:
                    stage_of[chunk] = stage
        return stage_of

    def stage_sum(self, costs):
        """The paper's makespan: the sum over stages of the longer of both routes."""
        return sum(
            max(int(costs.stream[list(stream)].sum()), int(costs.compute[list(compute)].sum()))
            for stream, compute in zip(self.stream, self.compute, strict=True)
        )

    def makespan(self, costs):
        """Ticks until all chunks are present, without barriers between stages."""
        return max(finish_times(costs, self.rule, self.stream_list, self.compute_list))


def finish_times(costs, rule, streams, computes):
    """When each chunk is present if both routes run their lists without barriers.

    Each route handles one chunk at a time and in order; computing waits for what it needs.

    Returns
    -------
    list of int [grid.count]

    Raises
    ------
    ValueError
        A computed chunk needs one that comes later in the list, or one that is streamed where it
        must be computed.
    """
    edges = costs.grid.edges[rule]
    stream_ticks, compute_ticks = costs.ticks
    finish = [None] * costs.grid.count
    computed = set()
    now = 0
    for chunk in streams:
        now += stream_ticks[chunk]
        finish[chunk] = now
    now = 0
    for chunk in computes:
        for needed in edges.needs_computed[chunk]:
            if needed not in computed:
                raise ValueError(
                    f"computes must hold chunk {needed} before chunk {chunk} that needs it"
                )
        for needed in edges.needs_present[chunk]:
            if finish[needed] is None:
                raise ValueError(
                    f"chunk {needed} must be brought before chunk {chunk} that needs it"
                )
            now = max(now, finish[needed])
        now += compute_ticks[chunk]
        finish[chunk] = now
        computed.add(chunk)
    return finish


def staged(costs, rule, streams, computes, stage_ticks):
    """A ``Schedule`` of two lists, cut into stages by when each chunk starts without barriers.

    So a chunk that is needed never lies in a later stage than the one that needs it, and barriers
    between stages cannot lock up.
    """
    finish = finish_times(costs, rule, streams, computes)
    stages = max(finish) // stage_ticks + 1
    lists = []
    for chunks, ticks in zip((streams, computes), costs.ticks, strict=True):
        stage = [[] for _ in range(stages)]
        for chunk in chunks:
            stage[(finish[chunk] - ticks[chunk]) // stage_ticks].append(chunk)
        lists.append(stage)
    while not lists[0][-1] and not lists[1][-1]:
        for stage in lists:
            stage.pop()
    return Schedule(grid=costs.grid, rule=rule, stream=lists[0], compute=lists[1])


def lower_bound(costs, rule):
    """Ticks that no schedule beats, whatever its order.

    Both routes share the work, and what is computed is closed under "the layer below is computed",
    but no route ever waits. For each price p in 0..1, makespan >= p * streamed + (1 - p) *
    computed, and the least of that over all closed sets is found column by column; the best price
    is searched for.
    """
    shape = (costs.grid.blocks, costs.grid.layers, costs.grid.heads)
    stream, compute = costs.stream.reshape(shape), costs.compute.reshape(shape)

    def least(price):
        # saved[t, d, h]: what computing layers below d of a column, instead of streaming, adds.
        adds = (1 - price) * compute - price * stream
        if rule == Rule.PAPER:
            depth = np.cumsum(adds, axis=1)
            columns = np.minimum(depth.min(axis=1), 0)
        else:
            # All heads of the layers below d, and any heads of layer d.
            below = np.cumsum(adds.sum(axis=2), axis=1) - adds.sum(axis=2)
            some = np.minimum(adds, 0).sum(axis=2)
            columns = (below + some).min(axis=1)
        return price * stream.sum() + columns.sum()

    low, high = 0.0, 1.0
    for _ in range(50):  # the least is concave in the price
        third = (high - low) / 3
        if least(low + third) < least(high - third):
            low += third
        else:
            high -= third
    return int(np.ceil(least(low) - 1e-6))
