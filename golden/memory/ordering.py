"""Checks of what reads return, for benches: from one port in order, and from several at once.

:class:`InOrder` is for a port whose requests are ordered per line: what a request returns is
settled when it is accepted, whatever the order of the answers. :class:`Concurrent` is for ports
without a common order: it accepts each value that some order of overlapping requests explains.
"""

from dataclasses import dataclass, field

import numpy as np

from golden.checks import check_int
from golden.memory.image import ALL_BYTES, LINE_BYTES, Image, Read, agrees, byte_mask

__all__ = ["Concurrent", "InOrder"]

NEVER = 1 << 62


class InOrder:
    """Expected answers by tag.

    Parameters
    ----------
    image : Image
        Changed by every accepted write.

    Members
    -------
    waiting : dict
        Tag to the expected :class:`Read`, ``None`` for a write. Empty once all is answered.
    """

    def __init__(self, image):
        self.image = image
        self.waiting = {}

    def _enter(self, tag, expected):
        if tag in self.waiting:
            raise ValueError(f"tag must not be in use, but {tag!r} is")
        self.waiting[tag] = expected

    def read(self, tag, line, meta=None):
        """A read was accepted."""
        self._enter(tag, self.image.read(line, meta))

    def write(self, tag, line, data, enables=ALL_BYTES, poison=False, meta=None):
        """A write was accepted."""
        self._enter(tag, None)
        self.image.write(line, data, enables, poison, meta)

    def answer(self, tag, seen=None):
        """Whether the answer is right: ``seen`` is a :class:`Read`, ``None`` a write's completion.

        An unknown tag, or the wrong kind of answer, is wrong.
        """
        if tag not in self.waiting:
            return False
        expected = self.waiting.pop(tag)
        if expected is None or seen is None:
            return expected is seen
        return agrees(seen, expected)


@dataclass(eq=False)
class _Write:
    """A write of a line: when it was issued, when answered, what it wrote."""

    issued: int
    data: np.ndarray
    mask: np.ndarray
    poison: bool
    done: int = NEVER

    @property
    def whole(self):
        return bool(self.mask.all())


@dataclass(eq=False)
class _Line:
    writes: list
    reads: dict = field(default_factory=dict)  # ticket to time of issue


class Concurrent:
    """Checks reads against all writes that overlap them.

    A write may take effect at any time from its issue to its answer, a read may see any moment from
    its own issue to its own answer; bytes are judged one by one. Times are integers that never fall
    from call to call; requests at the same time overlap. MetaValues are not checked.

    Parameters
    ----------
    image : Image
        What memory held before.
    """

    def __init__(self, image):
        if not isinstance(image, Image):
            raise TypeError(f"image must be an Image, not {image!r}")
        self.image = image
        self.now = 0
        self._lines = {}
        self._tickets = {}
        self._count = 0

    def _open(self, now, line):
        self.now = check_int("now", now, self.now, NEVER - 1)
        if line not in self._lines:
            held = self.image.read(line)
            start = _Write(-1, held.data, np.ones(LINE_BYTES, bool), held.poison, -1)
            self._lines[line] = _Line([start])
        return self._lines[line]

    def _ticket(self, line, write):
        self._count += 1
        self._tickets[self._count] = (line, write)
        return self._count

    @property
    def waiting(self):
        """Requests without an answer."""
        return len(self._tickets)

    def read(self, now, line):
        """A read was issued; returns a ticket."""
        state = self._open(now, line)
        ticket = self._ticket(line, None)
        state.reads[ticket] = now
        return ticket

    def write(self, now, line, data, enables=ALL_BYTES, poison=False):
        """A write was issued; returns a ticket."""
        write = _Write(now, np.array(data, np.uint8), byte_mask(enables), poison)
        self._open(now, line).writes.append(write)
        return self._ticket(line, write)

    def answer(self, now, ticket, seen=None):
        """Whether an answer can be right: ``seen`` is a :class:`Read`, ``None`` for a write."""
        if ticket not in self._tickets:
            return False
        line, write = self._tickets.pop(ticket)
        state = self._open(now, line)
        if write is not None:
            write.done = now
            self._forget(state)
            return seen is None
        issued = state.reads.pop(ticket)
        right = isinstance(seen, Read) and self._explains(state.writes, issued, seen)
        self._forget(state)
        return right

    @staticmethod
    def _explains(writes, issued, seen):
        """Whether some order of ``writes`` lets a read issued then see this now."""
        may, must = _poison(writes, issued)
        if seen.poison:
            return may
        if must:
            return False
        fits = np.zeros(LINE_BYTES, bool)
        for write in writes:
            later = _covered(writes, write, issued)
            fits |= write.mask & ~later & (write.data == seen.data)
        return bool(fits.all())

    def _forget(self, state):
        """Drop writes that no read can see any more."""
        writes, horizon = state.writes, min(state.reads.values(), default=self.now)
        seen = [
            write for write in writes
            if (write.mask & ~_covered(writes, write, horizon)).any()
            or (write.poison and not _wiped(writes, write, horizon))
        ]
        # What may have removed poison that is still in the list says that it need not be there.
        since = min((write.issued for write in seen if write.poison), default=NEVER)
        state.writes = [
            write for write in writes
            if write in seen or (write.whole and not write.poison and write.done >= since)
        ]


def _after(writes, write, issued):
    """Writes that surely follow ``write`` and surely precede a read issued at ``issued``."""
    return [other for other in writes if other.issued > write.done and other.done < issued]


def _covered(writes, write, issued):
    """Bytes [64] that such writes have replaced."""
    covered = np.zeros(LINE_BYTES, bool)
    for other in _after(writes, write, issued):
        covered |= other.mask
    return covered


def _wiped(writes, write, issued):
    """Whether a whole write surely removed the poison of ``write``."""
    return any(other.whole and not other.poison for other in _after(writes, write, issued))


def _poison(writes, issued):
    """Whether a read may, and whether it must, be poisoned."""
    bad = [write for write in writes if write.poison and write.mask.any()]
    may = any(not _wiped(writes, write, issued) for write in bad)
    must = any(
        write.done < issued and not any(
            other.whole and not other.poison and other.done >= write.issued for other in writes
        )
        for write in bad
    )
    return may, must
