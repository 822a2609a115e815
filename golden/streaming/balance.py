"""A greedy schedule, balanced: scheduling section 3.

The run-time refinement's two moves, tried offline while they shorten the predicted makespan: the
greedy algorithm fills both routes stage by stage and cannot see that the last stage leaves one of
them idle.
"""

from golden.streaming.greedy import Potential, greedy
from golden.streaming.schedule import finish_times, lower_bound, staged

__all__ = ["balance", "plan", "STAGE_SHARES"]

STAGE_SHARES = (0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 1.0)  # of the lower bound
GROUP_MAX = 4  # chunks that one move takes along
PAIRS_MAX = 1024  # combinations of two moves that are looked at
TRIES = 8  # most promising moves that are evaluated exactly
ROUNDS = 64


def _closure(chunk, members, edges):
    """``chunk`` and the ``members`` reached from it; ``None`` if they are too many to move."""
    group, todo = [chunk], [chunk]
    while todo:
        for other in edges[todo.pop()]:
            if other in members and other not in group:
                if len(group) == GROUP_MAX:
                    return None
                group.append(other)
                todo.append(other)
    return frozenset(group)


def _groups(members, edges):
    """Groups that can leave ``members`` together: a chunk with all that depends on it leaving."""
    found = {_closure(chunk, members, edges): None for chunk in members}
    return [group for group in found if group]


class _Lists:
    """The two lists that moves change, and what they are worth."""

    def __init__(self, costs, rule, streams, computes):
        self.costs, self.rule = costs, rule
        self.edges = costs.grid.edges[rule]
        self.streams, self.computes = list(streams), list(computes)
        self.score = self._score(self.streams, self.computes)

    def _score(self, streams, computes):
        """(end of the later route, sum of both ends): less is better."""
        finish = finish_times(self.costs, self.rule, streams, computes)
        ends = [
            max((finish[chunk] for chunk in chunks), default=0) for chunks in (streams, computes)
        ]
        return max(ends), sum(ends)

    def _moves(self):
        """(longer route afterwards, out of computing, into computing), best first."""
        stream_ticks, compute_ticks = self.costs.ticks
        load = [sum(map(stream_ticks.__getitem__, self.streams)),
                sum(map(compute_ticks.__getitem__, self.computes))]
        outs = _groups(dict.fromkeys(self.computes), self.edges.helps_computed)
        ins = _groups(dict.fromkeys(self.streams), self.edges.needs_computed)
        none = frozenset()
        pairs = [(out, none) for out in outs] + [(none, into) for into in ins]
        if len(outs) * len(ins) <= PAIRS_MAX:
            pairs += [(out, into) for out in outs for into in ins]
        moves = []
        for out, into in pairs:
            stream = sum(stream_ticks[c] for c in out) - sum(stream_ticks[c] for c in into)
            compute = sum(compute_ticks[c] for c in into) - sum(compute_ticks[c] for c in out)
            moves.append((max(load[0] + stream, load[1] + compute), out, into))
        return sorted(moves, key=lambda move: move[0])

    def improve(self):
        """Make the best of the most promising moves; whether one helped."""
        best = None
        for _, out, into in self._moves()[:TRIES]:
            streams = [c for c in self.streams if c not in into] + sorted(out)
            computes = [c for c in self.computes if c not in out] + sorted(into)
            try:
                score = self._score(streams, computes)
            except ValueError:
                continue  # two moves that need each other's chunks
            if score < self.score and (best is None or score < best[0]):
                best = score, streams, computes
        if best is not None:
            self.score, self.streams, self.computes = best
        return best is not None


def balance(costs, rule, streams, computes):
    """Move chunks between two lists while that shortens the predicted makespan.

    A move takes chunks from the compute list, with those above that need their hidden states, to
    the end of the stream list, or chunks from the stream list, with those below that they need, to
    the end of the compute list; or one of each.

    Returns
    -------
    (streams, computes, makespan) : list, list, int
    """
    lists = _Lists(costs, rule, streams, computes)
    for _ in range(ROUNDS):
        if not lists.improve():
            break
    return lists.streams, lists.computes, lists.score[0]


def plan(costs, rule, shares=STAGE_SHARES, potentials=tuple(Potential)):
    """The best balanced greedy schedule over several stage lengths.

    Parameters
    ----------
    shares : sequence of float
        Stage lengths as shares of the lower bound.
    potentials : sequence of Potential

    Returns
    -------
    Schedule
    """
    bound = lower_bound(costs, rule)
    plans = []
    for share in shares:
        stage_ticks = max(1, int(share * bound))
        for potential in potentials:
            schedule = greedy(costs, rule, stage_ticks, potential)
            lists = balance(costs, rule, schedule.stream_list, schedule.compute_list)
            plans.append((*lists, stage_ticks))
    streams, computes, _, stage_ticks = min(plans, key=lambda found: found[2])
    return staged(costs, rule, streams, computes, stage_ticks)
