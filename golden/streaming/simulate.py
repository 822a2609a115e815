"""A run of the scheduler against a link and a device, event by event: scheduling section 7."""

import heapq
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from golden.streaming.policy import Decision, Event, Route

__all__ = ["Answer", "Serial", "Faulty", "Run", "simulate"]


class Answer(NamedTuple):
    """When a request ends, and whether well; ``time`` ``None``: never."""

    time: int | None
    good: bool = True


class Serial:
    """A link or a device that serves one request at a time, in order, at the rate of a trace.

    Parameters
    ----------
    trace : Trace
    amounts : sequence of int
        Per chunk: bytes of its frame, or predicted ticks of computing it.
    latency : int
        Ticks from a request until it can begin; requests in flight hide it.
    extra : int
        Ticks from the end of service to the answer: decoding, the last write response.
    """

    def __init__(self, trace, amounts, latency=0, extra=0):
        self.trace = trace
        self.amounts = [int(amount) for amount in amounts]
        self.latency, self.extra = latency, extra
        self.free = 0
        self.busy = 0

    def request(self, now, chunk):
        """The ``Answer`` to a request made at ``now``."""
        if self.free is None:
            return Answer(None)
        begin = max(now + self.latency, self.free)
        self.free = self.trace.finish(begin, self.amounts[chunk])
        if self.free is None:
            return Answer(None)
        self.busy += self.free - begin
        return Answer(self.free + self.extra)


class Faulty:
    """A side some of whose answers are bad.

    Parameters
    ----------
    side : object with ``request``
    failing, silent : collection of int
        Chunks whose answer is a failure, or never comes.
    """

    def __init__(self, side, failing=(), silent=()):
        self.side = side
        self.failing, self.silent = frozenset(failing), frozenset(silent)

    def request(self, now, chunk):
        answer = self.side.request(now, chunk)
        if chunk in self.silent:
            return Answer(None)
        return Answer(answer.time, answer.good and chunk not in self.failing)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What happened.

    Members
    -------
    makespan : int
        Ticks until the last chunk was present or given up.
    log : list of Record
    events : list of (time, Event, chunk)
        What the scheduler was told: fed to a new one, they give the same log.
    present : dict
        Chunk -> (time, Route) of its presence.
    lost : list of int
    """

    makespan: int
    log: list
    events: list
    present: dict
    lost: list

    def count(self, decision):
        return sum(record.decision == decision for record in self.log)


def _summary(log, events):
    routes, present, lost = {}, {}, []
    for time, decision, chunk in log:
        match decision:
            case Decision.REQUEST_STREAM:
                routes[chunk] = Route.STREAM
            case Decision.REQUEST_COMPUTE:
                routes[chunk] = Route.COMPUTE
            case Decision.PRESENT:
                present[chunk] = (time, routes[chunk])
            case Decision.LOST:
                lost.append(chunk)
    ends = [record.time for record in log if record.decision in (Decision.PRESENT, Decision.LOST)]
    return Run(makespan=max(ends), log=log, events=events, present=present, lost=lost)


REQUESTS = {
    Decision.REQUEST_STREAM: (Route.STREAM, Event.LINK_DONE, Event.LINK_FAILED),
    Decision.REQUEST_COMPUTE: (Route.COMPUTE, Event.COMPUTE_DONE, Event.COMPUTE_FAILED),
    Decision.REQUEST_STATE: (Route.COMPUTE, Event.COMPUTE_DONE, Event.COMPUTE_FAILED),
}


def simulate(scheduler, link, device):
    """Drive a new ``Scheduler`` until all chunks are resolved and nothing is in flight.

    Parameters
    ----------
    scheduler : Scheduler
    link, device : object with ``request(now, chunk) -> Answer``

    Returns
    -------
    Run
    """
    sides = {Route.STREAM: link, Route.COMPUTE: device}
    answers, order = [], count()
    period = scheduler.policy.period
    seen, timer = 0, period
    events = [(0, Event.START, 0)]
    scheduler.react(*events[0])
    while not scheduler.finished:
        for time, decision, chunk in scheduler.log[seen:]:
            if decision in REQUESTS:
                route, good, bad = REQUESTS[decision]
                answer = sides[route].request(time, chunk)
                if answer.time is not None:
                    event = good if answer.good else bad
                    # A route's answers at one time keep their order, good or bad.
                    heapq.heappush(answers, (answer.time, route, next(order), event, chunk))
        seen = len(scheduler.log)
        time, event, chunk = scheduler.expiry()
        answered = answers and answers[0][:2] <= (time, event)
        if answered:
            time, _, _, event, chunk = answers[0]
        if period and (timer, Event.TIMER) < (time, event):
            time, event, chunk = timer, Event.TIMER, 0
            timer += period
        elif answered:
            heapq.heappop(answers)
        events.append((time, event, chunk))
        scheduler.react(time, event, chunk)
    return _summary(scheduler.log, events)
