"""The run-time scheduler, decision by decision: scheduling sections 5 and 6.

Source: SparKV (arXiv 2604.21231) for stages, the refinement and what it moves. Everything about
failures, deadlines and order is ours.
"""

from golden.checks import check_int, check_integers
from golden.streaming.policy import NEVER, Decision, Event, Policy, Record, Route
from golden.streaming.refine import Refinement
from golden.streaming.tasks import Table, Task
from golden.streaming.work import Work

__all__ = ["Scheduler"]


class Scheduler:
    """The golden twin of the hardware's route scheduler: a state machine fed with events.

    It knows nothing of the world: requests appear in ``log``, and whoever drives it brings the
    answers as events with their times. Driven by a model of link and device it predicts a run;
    driven by the events of a hardware trace it must take the hardware's decisions.

    Parameters
    ----------
    schedule : Schedule
    costs : Costs
    policy : Policy
    deadlines : integer array [count] or None
        Ticks after the start at which a chunk on the link is given up and computed instead; 2^32-1:
        none.

    Members
    -------
    log : list of Record
        All decisions in order.
    left : int
        Chunks that are neither present nor lost.
    """

    def __init__(self, schedule, costs, policy, deadlines=None):
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a Policy, not {policy!r}")
        count = schedule.grid.count
        self.policy = policy
        if deadlines is None:
            self.deadlines = [NEVER] * count
        else:
            self.deadlines = check_integers("deadlines", deadlines, 0, NEVER, (count,)).tolist()
        self.table = Table(schedule)
        self.stage_of = schedule.stage_of()
        works = self.stream, self.compute = (
            Work(self.table.stream, schedule.stream_list, costs.ticks[Route.STREAM],
                 self.stage_of, policy, policy.stream_outstanding),
            Work(self.table.compute, schedule.compute_list, costs.ticks[Route.COMPUTE],
                 self.stage_of, policy, policy.compute_outstanding),
        )
        self.refinement = Refinement(policy, self.table, works, self.stage_of)
        self.retries = [policy.retries] * count
        self.resolved = [False] * count
        self.left = count
        self.unfinished = [self.stage_of.count(stage) for stage in range(schedule.stages)]
        self.stage = -1
        self.prefetch = False
        self.now = 0
        self.log = []

    @property
    def finished(self):
        """All chunks are present or lost, and nothing is in flight."""
        return not (self.left or self.stream.flying or self.compute.flying)

    def expiry(self):
        """(time, event, chunk) of the next request to expire; ``None`` if nothing is in flight."""
        policy = self.policy
        ends = [
            (min(self.deadlines[chunk], since + policy.stream_timeout), Event.LINK_EXPIRED, order,
             chunk)
            for order, (chunk, since) in enumerate(self.stream.flying.items())
        ] + [
            (since + policy.compute_timeout, Event.COMPUTE_EXPIRED, order, chunk)
            for order, (chunk, since) in enumerate(self.compute.flying.items())
        ]
        if not ends:
            return None
        time, event, _, chunk = min(ends)
        return max(time, self.now), event, chunk

    def react(self, now, event, chunk=0):
        """One event and all that follows from it. Times never go back."""
        self.now = check_int("now", now, self.now, NEVER)
        measured = self._absorb(event, chunk)
        if measured is None:
            self._say(Decision.DROP, chunk)
            return
        self._advance()
        self._dispatch()
        if measured and self.policy.refine and self.left:
            self._refine()
        while self.left and not self.stream.flying and not self.compute.flying:
            self._unblock()

    def _say(self, decision, chunk):
        self.log.append(Record(self.now, decision, chunk))

    # Events.

    def _absorb(self, event, chunk):
        """Enter an event into the table.

        Returns whether it says how fast the routes are, ``None`` if nobody waits for it.
        """
        match event:
            case Event.START:
                self._open_stage()
                return False
            case Event.TIMER:
                return True
            case Event.LINK_DONE | Event.LINK_FAILED | Event.LINK_EXPIRED:
                return self._link_event(event, chunk) if chunk in self.stream.flying else None
            case _:
                return self._compute_event(event, chunk) if chunk in self.compute.flying else None

    def _link_event(self, event, chunk):
        late = False
        if event == Event.LINK_EXPIRED:
            late = self.deadlines[chunk] <= self.now
            silent = self.now - self.stream.flying[chunk] >= self.policy.stream_timeout
            if not (late or silent):
                raise ValueError(f"the request of chunk {chunk} must have expired by {self.now}")
            if late and not silent and self.table.chain(chunk) is None:
                self.deadlines[chunk] = NEVER
                self._say(Decision.EXTEND, chunk)
                return False
        measured = event != Event.LINK_FAILED  # a quick refusal is not a fast link
        if event == Event.LINK_DONE:
            self.stream.land(self.now, chunk, Task.DONE, measured)
            self._resolve(Decision.PRESENT, chunk)
            return measured
        self.stream.land(self.now, chunk, Task.FAILED, measured)
        self._say(Decision.STREAM_LATE if late else Decision.STREAM_FAILED, chunk)
        if self.retries[chunk] and not late and self.compute.tasks[chunk] == Task.NONE:
            self.retries[chunk] -= 1
            self._say(Decision.RETRY, chunk)
            self._request_stream(chunk)
        elif not self._recover(chunk):
            self._resolve(Decision.LOST, chunk)
        return measured

    def _compute_event(self, event, chunk):
        measured = event != Event.COMPUTE_FAILED
        if event == Event.COMPUTE_DONE:
            self.compute.land(self.now, chunk, Task.DONE, measured)
            self.table.deepen(chunk)
            if self.resolved[chunk]:
                self._say(Decision.STATE_DONE, chunk)
            else:
                self._resolve(Decision.PRESENT, chunk)
        else:
            self.compute.land(self.now, chunk, Task.FAILED, measured)
            self._say(Decision.COMPUTE_FAILED, chunk)
            self._give_up_computing(chunk)
        return measured

    def _recover(self, chunk):
        """Hand a chunk that the link failed to computing, with the states it needs."""
        chain = self.table.chain(chunk)
        if chain is None:
            return False
        for other in chain:
            if self.stream.tasks[other] == Task.WAIT:
                self.stream.set_task(other, Task.NONE)
            self.compute.add(other)
            self._say(Decision.RECOVER, other)
        return True

    def _give_up_computing(self, chunk):
        """Computing the chunk has failed: the link brings it, unless that has failed too."""
        if self.resolved[chunk]:
            return
        if self.stream.tasks[chunk] == Task.NONE:
            self.stream.add(chunk)
            self._say(Decision.FALL_BACK, chunk)
        elif self.stream.tasks[chunk] == Task.FAILED:
            self._resolve(Decision.LOST, chunk)

    def _resolve(self, decision, chunk):
        self._say(decision, chunk)
        self.resolved[chunk] = True
        self.left -= 1
        self.unfinished[self.stage_of[chunk]] -= 1

    # Stages.

    def _open_stage(self):
        self.stage += 1
        self.refinement.moves = self.policy.cap
        self._set_horizons()
        self._say(Decision.STAGE, self.stage)

    def _set_horizons(self):
        last = len(self.unfinished) - 1
        ahead = self.stage + self.policy.stream_ahead + self.prefetch
        self.stream.set_horizon(min(last, ahead))
        self.compute.set_horizon(min(last, self.stage + self.policy.compute_ahead))

    def _advance(self):
        while self.stage < len(self.unfinished) - 1 and self.unfinished[self.stage] == 0:
            self._open_stage()

    def _unblock(self):
        """Nothing is in flight and nothing may start: open a stage, or give up one computation."""
        if self.stage < len(self.unfinished) - 1:
            self._open_stage()
        else:
            waiting = (c for source in (self.compute.queue, self.compute.entries) for c in source
                       if self.compute.tasks[c] == Task.WAIT)
            chunk = next(waiting)
            self.compute.set_task(chunk, Task.FAILED)
            self._say(Decision.COMPUTE_BLOCKED, chunk)
            self._give_up_computing(chunk)
        self._dispatch()

    # Requests.

    def _dispatch(self):
        while self.left and not self.stream.full and self._start_stream():
            pass
        while self.left and not self.compute.full and self._start_compute():
            pass

    def _start_stream(self):
        """Request the first chunk that waits; one that is already late goes to computing."""
        while True:
            chunk = next(self.stream.candidates(), None)
            if chunk is None:
                return False
            if self.deadlines[chunk] > self.now or self.table.chain(chunk) is None:
                break
            self.stream.set_task(chunk, Task.FAILED)
            self._say(Decision.STREAM_LATE, chunk)
            self._recover(chunk)
        self._request_stream(chunk)
        return True

    def _request_stream(self, chunk):
        self.stream.depart(self.now, chunk)
        self._say(Decision.REQUEST_STREAM, chunk)

    def _start_compute(self):
        """Request the first chunk that is ready."""
        chunk = next(filter(self.table.ready, self.compute.candidates()), None)
        if chunk is None:
            return False
        state_only = self.stream.tasks[chunk] == Task.DONE
        self.compute.depart(self.now, chunk)
        self._say(Decision.REQUEST_STATE if state_only else Decision.REQUEST_COMPUTE, chunk)
        return True

    def _refine(self):
        """Relieve the slower route: open the link's next stage early, then move a chunk."""
        ratios = self.refinement.ratios(self.now)
        slower = self.refinement.slower(ratios)
        if self.prefetch != (slower == Route.COMPUTE):
            self.prefetch = not self.prefetch
            self._set_horizons()
            self._dispatch()
        moved = self.refinement.move(ratios, slower)
        if moved is not None:
            self._say(*moved)
            self._dispatch()
