"""What one route has to do: its list, its queue, and what is in flight. Scheduling section 5."""

from collections import deque

from golden.streaming.meter import Meter
from golden.streaming.tasks import Task

__all__ = ["Work"]

PENDING = (Task.WAIT, Task.FLY)


class Work:
    """One route of the run-time scheduler.

    The loaded list never changes; what is true of a chunk stands in ``tasks``, and an entry whose
    task is not WAIT is passed over. Chunks that were moved or handed over stand in the queue, which
    goes first.

    Members
    -------
    tasks : list of Task
        The route's column of the chunk table.
    flying : dict
        Chunks in flight, oldest first, with the time of the request.
    load : int
        Predicted ticks of all tasks that are WAIT or FLY.
    horizon : int
        Last stage whose entries may start.
    """

    def __init__(self, tasks, entries, ticks, stage_of, policy, outstanding):
        self.tasks = tasks
        self.entries = entries
        self.ticks = ticks
        self.stage_of = stage_of
        self.scan = policy.scan
        self.outstanding = outstanding
        self.meter = Meter(policy.window_log2)
        self.queue = deque()
        self.queued = set()
        self.flying = {}
        self.load = sum(ticks[chunk] for chunk in entries)
        self.horizon = 0
        self.head = 0  # entries before it are not WAIT
        self.tail = 0  # entries from it up to the horizon are not WAIT

    @property
    def full(self):
        """As many requests are in flight as may be."""
        return len(self.flying) >= self.outstanding

    def set_task(self, chunk, task):
        pending = (task in PENDING) - (self.tasks[chunk] in PENDING)
        self.load += self.ticks[chunk] * pending
        self.tasks[chunk] = task

    def add(self, chunk):
        """The chunk waits on this route from now on, ahead of the list.

        One that still stands in the queue keeps its place: the queue never outgrows the table.
        """
        self.set_task(chunk, Task.WAIT)
        if chunk not in self.queued:
            self.queued.add(chunk)
            self.queue.append(chunk)

    def _pop(self):
        self.queued.remove(self.queue.popleft())

    def set_horizon(self, stage):
        """Open the list up to and including a stage."""
        self.horizon = stage
        self.tail = len(self.entries)
        while self.tail and self.stage_of[self.entries[self.tail - 1]] > stage:
            self.tail -= 1

    def candidates(self):
        """Entries that may start, in order: ``scan`` of the queue, then ``scan`` of the open list.

        Entries at the front of either that do not wait are dropped first, and not counted.
        """
        while self.queue and self.tasks[self.queue[0]] != Task.WAIT:
            self._pop()
        while self.head < len(self.entries) and self.tasks[self.entries[self.head]] != Task.WAIT:
            self.head += 1
        count = min(self.scan, len(self.queue))
        yield from [self.queue[index] for index in range(count)]
        for chunk in self.entries[self.head : self.head + self.scan]:
            if self.stage_of[chunk] > self.horizon:
                break
            yield chunk

    def latest(self):
        """``scan`` open list entries from the tail backwards.

        Entries at the tail that do not wait are dropped first, and not counted.
        """
        while self.tail > self.head and self.tasks[self.entries[self.tail - 1]] != Task.WAIT:
            self.tail -= 1
        yield from reversed(self.entries[max(self.head, self.tail - self.scan) : self.tail])

    def depart(self, now, chunk):
        """The chunk's request goes out."""
        if self.queue and self.queue[0] == chunk:
            self._pop()
        if not self.flying:
            self.meter.restart(now)
        self.set_task(chunk, Task.FLY)
        self.flying[chunk] = now

    def land(self, now, chunk, task, measured):
        """The chunk's request has ended."""
        del self.flying[chunk]
        if measured:
            self.meter.record(now, self.ticks[chunk])
        else:
            self.meter.restart(now)
        self.set_task(chunk, task)

    def estimate(self, now):
        """The meter's estimate, with the oldest request in flight."""
        oldest = next(iter(self.flying), None)
        return self.meter.estimate(now, 0 if oldest is None else self.ticks[oldest])
