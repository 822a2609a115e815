"""The run-time refinement: which route to relieve, and which chunk to move. Scheduling section 6.

Source: SparKV (arXiv 2604.21231) for the comparison with a margin, for what each slow route's
relief moves, and for the cap. The guard, the idle rule and the search by columns are ours.
"""

from golden.streaming.meter import RATIO_ONE
from golden.streaming.policy import Decision, Route
from golden.streaming.tasks import Task

__all__ = ["Refinement"]


class Refinement:
    """Chooses and makes the moves of the run-time scheduler.

    Parameters
    ----------
    policy : Policy
    table : Table
    works : tuple of Work
        By ``Route``.
    stage_of : list of int

    Members
    -------
    moves : int
        Moves left in this stage.
    column : int
        Where the next search for a chunk to compute begins.
    """

    def __init__(self, policy, table, works, stage_of):
        self.policy = policy
        self.table = table
        self.works = works
        self.stage_of = stage_of
        self.moved = [False] * len(stage_of)
        self.moves = 0
        self.column = 0

    def ratios(self, now):
        """The routes' estimates, by ``Route``."""
        return tuple(work.estimate(now) for work in self.works)

    def slower(self, ratios):
        """The route that is slower than the other by the margin, or ``None``."""
        for route in Route:
            if ratios[route] * RATIO_ONE > ratios[1 - route] * (RATIO_ONE + self.policy.margin):
                return route
        return None

    def move(self, ratios, slower):
        """Move at most one chunk; (decision, chunk), or ``None``."""
        if self.moves == 0:
            return None
        stream, compute = self.works
        moved = None
        if not stream.full and (slower == Route.COMPUTE or self.policy.idle):
            moved = self._to_stream(ratios)
        if moved is None and (slower == Route.STREAM or self.policy.idle and not compute.full):
            moved = self._to_compute(ratios)
        if moved is not None:
            self.moves -= 1
            self.moved[moved[1]] = True
        return moved

    def _helps(self, chunk, taker, ratios):
        """Whether the taker, with the chunk, is expected to end before the giver would without."""
        if not self.policy.guard:
            return True
        taken, given = self.works[taker], self.works[1 - taker]
        return ratios[taker] * (taken.load + taken.ticks[chunk]) < ratios[1 - taker] * given.load

    def _to_stream(self, ratios):
        """The last computed chunk that nothing above waits for."""
        stream, compute = self.works
        for chunk in compute.latest():
            if not self.moved[chunk] and self.table.may_stream_instead(chunk):
                if not self._helps(chunk, Route.STREAM, ratios):
                    return None
                compute.set_task(chunk, Task.NONE)
                stream.add(chunk)
                return Decision.MOVE_TO_STREAM, chunk
        return None

    def _to_compute(self, ratios):
        """A streamed chunk that could be computed at once."""
        stream, compute = self.works
        chunk = self._next_of_columns()
        if chunk is None or not self._helps(chunk, Route.COMPUTE, ratios):
            return None
        stream.set_task(chunk, Task.NONE)
        compute.add(chunk)
        return Decision.MOVE_TO_COMPUTE, chunk

    def _next_of_columns(self):
        """The streamed chunk, of an open stage or else of the next, by which a column can go on.

        Looks at ``scan`` columns from where the last search ended, and stays at the one found.
        """
        columns = len(self.table.depth)
        count = min(self.policy.scan, columns)
        horizon = self.works[Route.STREAM].horizon
        found = None
        for column in ((self.column + offset) % columns for offset in range(count)):
            chunk = self.table.next_of(column)
            if chunk is None or self.moved[chunk] or not self.table.may_compute_instead(chunk):
                continue
            if self.stage_of[chunk] <= horizon:
                self.column = column
                return chunk
            if found is None and self.stage_of[chunk] == horizon + 1:
                found = column
        self.column = (self.column + count) % columns if found is None else found
        return None if found is None else self.table.next_of(found)
