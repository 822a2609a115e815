"""A stream of requests carried out by the DRAM scheduler, in its own time."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from golden.memory.dram import Trace
from golden.memory.scheduler import Scheduler, Settings

__all__ = ["Run", "run"]


@dataclass(frozen=True, eq=False)
class Run:
    """A stream carried out.

    ``trace`` is the :class:`Trace` of commands. ``accepted`` and ``done``, int64 arrays [n], are
    nCK: when each request entered a queue, and the end of its data. ``cycles`` is the end of all.
    """

    trace: Trace
    accepted: np.ndarray
    done: np.ndarray
    cycles: int

    def use(self, part):
        """Share of the data bus's time in which it carried data."""
        return len(self.done) * part.burst / self.cycles


def run(part, lines, writes, settings=None, outstanding=32):
    """Carry out requests in the order given, as fast as may be.

    Parameters
    ----------
    part : Part
    lines, writes : integer array [n] and bool array [n]
    settings : Settings, optional
    outstanding : int
        So many requests may be accepted and not done. At most one is accepted per decision.

    Returns
    -------
    Run
    """
    settings = Settings() if settings is None else settings
    scheduler = Scheduler(part, settings)
    lines, writes = np.asarray(lines).tolist(), np.asarray(writes, bool).tolist()
    accepted, done = np.zeros(len(lines), np.int64), np.zeros(len(lines), np.int64)
    ends = deque()
    now = taken = left = 0
    while left < len(lines) or ends:
        now += settings.step
        while ends and ends[0] <= now:
            ends.popleft()
        flying = taken - left + len(ends)
        if taken < len(lines) and flying < outstanding and scheduler.room(writes[taken]):
            scheduler.accept(now, taken, lines[taken], writes[taken])
            accepted[taken] = now
            taken += 1
        served = scheduler.decide(now)
        if served is not None:
            end = now + (part.cwl if served.write else part.cl) + part.burst
            done[served.index] = end
            ends = deque(sorted([*ends, end]))
            left += 1
    return Run(Trace.of(scheduler.log), accepted, done, now)
