"""The chunk table: what each route has to do with each chunk. Scheduling section 4.

Two small states per chunk, one per route, hold everything that decides: whether the chunk is
present, what may start, what may move, and what a failure asks for.
"""

from enum import IntEnum

from golden.streaming.chunks import Rule

__all__ = ["Task", "Table"]


class Task(IntEnum):
    """What a route has to do with a chunk; the numbers are those of the chunk table."""

    NONE = 0
    WAIT = 1
    FLY = 2
    DONE = 3
    FAILED = 4


class Table:
    """Tasks of all chunks of a grid under a dependency rule.

    ``stream`` and ``compute`` hold a ``Task`` per chunk. A chunk is *present* when either is DONE.
    A chunk may be DONE on both: streamed first, then computed for its hidden state alone.

    A *column* is all layers of one block and head, number ``block * heads + head``. It is computed
    from the bottom up, so one number per column, its ``depth``, says where it can be computed
    further.
    """

    def __init__(self, schedule):
        count = schedule.grid.count
        self.rule = schedule.rule
        self.layers, self.heads = schedule.grid.layers, schedule.grid.heads
        self.edges = schedule.grid.edges[schedule.rule]
        self.depth = [0] * (schedule.grid.blocks * self.heads)
        self.stream = [Task.NONE] * count
        self.compute = [Task.NONE] * count
        for chunk in schedule.stream_list:
            self.stream[chunk] = Task.WAIT
        for chunk in schedule.compute_list:
            self.compute[chunk] = Task.WAIT

    def present(self, chunk):
        return self.stream[chunk] == Task.DONE or self.compute[chunk] == Task.DONE

    def needs_met(self, chunk):
        """Whether all that computing the chunk needs is there."""
        compute = self.compute
        for needed in self.edges.needs_computed[chunk]:
            if compute[needed] != Task.DONE:
                return False
        return all(map(self.present, self.edges.needs_present[chunk]))

    def ready(self, chunk):
        """Whether computing the chunk may start now.

        Not while it is on the link: what comes of that decides whether its keys and values are
        computed, or its hidden state alone.
        """
        return (
            self.compute[chunk] == Task.WAIT
            and self.stream[chunk] != Task.FLY
            and self.needs_met(chunk)
        )

    def deepen(self, chunk):
        """The chunk has been computed: its column's next one is the layer above."""
        row, head = divmod(chunk, self.heads)
        block, layer = divmod(row, self.layers)
        self.depth[block * self.heads + head] = layer + 1

    def next_of(self, column):
        """The chunk by which a column could be computed further; ``None`` at its top."""
        block, head = divmod(column, self.heads)
        layer = self.depth[column]
        return None if layer == self.layers else (block * self.layers + layer) * self.heads + head

    def may_stream_instead(self, chunk):
        """Whether a chunk that waits to be computed may be streamed: none above needs its state."""
        return (
            self.compute[chunk] == Task.WAIT
            and self.stream[chunk] == Task.NONE
            and all(self.compute[user] != Task.WAIT for user in self.edges.helps_computed[chunk])
        )

    def may_compute_instead(self, chunk):
        """Whether a chunk that waits to be streamed could be computed at once."""
        return (
            self.stream[chunk] == Task.WAIT
            and self.compute[chunk] == Task.NONE
            and self.needs_met(chunk)
        )

    def chain(self, chunk):
        """Chunks to compute so that this one can be, lowest layer first, itself last.

        A streamed chunk has no hidden state: where the layers below were streamed too, they are
        computed as well, down to the first layer whose state exists or will exist. Chunks that are
        computed or are going to be are not listed.

        Returns
        -------
        list of int, or None
            ``None``: computing one of them has failed before.
        """
        layer = chunk // self.heads % self.layers
        if self.compute[chunk] == Task.FAILED:
            return None
        rows = []
        while layer > 0:
            below = chunk - self.heads * (len(rows) + 1)
            if self.rule == Rule.STRICT:
                first = below - below % self.heads
                row = range(first, first + self.heads)
            else:
                row = (below,)
            if any(self.compute[other] == Task.FAILED for other in row):
                return None
            missing = [other for other in row if self.compute[other] == Task.NONE]
            if not missing:
                break
            rows.append(missing)
            layer -= 1
        own = [chunk] if self.compute[chunk] == Task.NONE else []
        return [other for row in reversed(rows) for other in row] + own
