"""The retry buffer of a link port: ``docs/memory_link.md`` section 4.

Source: CXL 2.0 and later, 68-byte flit mode: write and read pointer, free entries, never full.
"""

from golden.memory.flits import Fault, FlitError

__all__ = ["ReplayBuffer"]


class ReplayBuffer:
    """Flits sent and not acknowledged, at most ``depth - 1``.

    Members
    -------
    write, read : int
        Sequence number of the next new flit; of the next flit sent. They differ during a replay.
    free : int
        Entries left.
    """

    def __init__(self, depth):
        self.depth = self.free = depth
        self.write = self.read = 0
        self._entries = [(b"", False)] * depth

    @property
    def held(self):
        return self.depth - self.free

    @property
    def replaying(self):
        return self.read != self.write

    @property
    def next_all_data(self):
        """Whether the next flit of a replay has no header."""
        return self._entries[self.read][1]

    def store(self, body, all_data):
        """Keep a new flit; returns its sequence number."""
        sequence = self.write
        self._entries[sequence] = body, all_data
        self.read = self.write = (sequence + 1) % self.depth
        self.free -= 1
        return sequence

    def replay(self):
        """(body, sequence number) of the next flit of a replay."""
        sequence = self.read
        self.read = (sequence + 1) % self.depth
        return self._entries[sequence][0], sequence

    def acknowledge(self, count):
        """Forget the ``count`` oldest flits; FlitError if there are fewer."""
        if count > self.held:
            raise FlitError(Fault.ACKNOWLEDGE)
        self.free += count

    def rewind(self, sequence):
        """Replay from a flit on; False if it is neither held nor next."""
        oldest = (self.write - self.held) % self.depth
        if sequence >= self.depth or (sequence - oldest) % self.depth > self.held:
            return False
        self.read = sequence
        return True
