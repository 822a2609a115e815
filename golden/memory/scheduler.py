"""The DRAM scheduler, decision by decision: normative in ``docs/memory_dram.md`` section 7.

First ready, first come, first served, with a bound on age; writes collected and drained; open page
with a time-out; refreshes postponed, then sent in a row. It keeps its own times of readiness,
pushed forward by every command; the checker of ``golden.memory.dram`` judges the result from
scratch.
"""

from collections import deque
from dataclasses import dataclass, fields
from typing import NamedTuple

from golden.checks import check_int
from golden.memory.place import place_of
from hw.memory.timings import RULES, Command, Scope

__all__ = ["Scheduler", "Settings", "Waiting"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Registers of the scheduler; times in nCK.

    Parameters
    ----------
    step : int
        nCK between two decisions, each of at most one command; commands stand at its multiples.
    reads, writes : int
        Places in the two queues.
    drain_high, drain_low : int
        So many writes start a drain; with so many left it ends, if reads wait.
    age_limit : int
        A request that waits longer goes before all others.
    idle_limit : int
        A bank without an access for so long, and without a request for its row, is closed.
    refresh_start : int
        So many refreshes owed stop the traffic until none is owed; any owed are sent when idle.
        At most ``part.postpone``.
    """

    step: int = 1
    reads: int = 32
    writes: int = 32
    drain_high: int = 24
    drain_low: int = 8
    age_limit: int = 2000
    idle_limit: int = 400
    refresh_start: int = 4

    def __post_init__(self):
        for field in fields(self):
            low = 0 if field.name == "drain_low" else 1
            check_int(field.name, getattr(self, field.name), low, 1 << 30)
        check_int("drain_high", self.drain_high, self.drain_low + 1, self.writes)


class Waiting(NamedTuple):
    """A request in a queue: its number, line, kind, bank (group and bank packed), row, column and
    time of arrival."""

    index: int
    line: int
    write: bool
    bank: int
    row: int
    column: int
    since: int


class Scheduler:
    """The golden twin of the hardware's scheduler of one channel.

    Parameters
    ----------
    part : Part
    settings : Settings

    Members
    -------
    queues : dict
        ``False``: reads, ``True``: writes; lists of :class:`Waiting`, oldest first.
    open : list
        Open row by bank, ``None`` for a closed one. A bank is ``group * banks + bank``.
    owed : int
        Refreshes that are due and not sent.
    log : list of tuple
        Rows of the trace so far.
    """

    def __init__(self, part, settings):
        check_int("refresh_start", settings.refresh_start, 1, part.postpone)
        count = part.organisation.bank_count
        self.part, self.settings = part, settings
        self.queues = {False: [], True: []}
        self.open = [None] * count
        self.used = [0] * count
        self.draining = False
        self.refreshing = False
        self.owed = 0
        self.log = []
        self._ready = [[0] * count for _ in Command]  # by command and bank
        self._bus = 0  # the last command's time
        self._opens = deque(maxlen=4)
        self._pushes = {command: list(self._push_list(command)) for command in Command}

    # Requests.

    def room(self, write):
        """Whether a read, or a write, can be taken."""
        limit = self.settings.writes if write else self.settings.reads
        return len(self.queues[write]) < limit

    def accept(self, now, index, line, write):
        """Enter a request; there must be room."""
        place = place_of(line, self.part.organisation)
        bank = int(place.group) * self.part.organisation.banks + int(place.bank)
        self.queues[write].append(
            Waiting(index, line, write, bank, int(place.row), int(place.column), now))

    # Rules.

    def _push_list(self, command):
        """What a command delays: ``(later command, scope, cycles)``."""
        for rule in RULES:
            if command in rule.before and rule.window == 1:
                for after in rule.after:
                    yield after, rule.scope, rule.cycles(self.part)

    def _banks(self, scope, bank):
        """Banks in a scope seen from ``bank``."""
        banks, count = self.part.organisation.banks, len(self.open)
        first = bank // banks * banks
        match scope:
            case Scope.BANK:
                return (bank,)
            case Scope.GROUP:
                return range(first, first + banks)
            case Scope.OTHER_GROUP:
                return (*range(first), *range(first + banks, count))
            case Scope.RANK:
                return range(count)

    def legal(self, now, command, bank=0):
        """Whether the rules let a command go now."""
        if now < self._ready[command][bank] or now < self._bus + self.part.slots[command]:
            return False
        full = command == Command.ACT and len(self._opens) == 4
        return not full or now >= self._opens[0] + self.part.faw

    def _send(self, now, command, bank=0, row=0, column=0):
        group, place = divmod(bank, self.part.organisation.banks)
        self.log.append((now, command, group, place, row, column))
        self._bus = now
        for after, scope, cycles in self._pushes[command]:
            ready = self._ready[after]
            for other in self._banks(scope, bank):
                ready[other] = max(ready[other], now + cycles)
        self.used[bank] = now
        if command == Command.ACT:
            self._opens.append(now)
            self.open[bank] = row
        elif command == Command.PRE:
            self.open[bank] = None
        elif command == Command.PREA:
            self.open = [None] * len(self.open)

    # Decisions.

    def decide(self, now):
        """At most one command; the :class:`Waiting` that it served, if it was a read or a write."""
        self.owed += now // self.part.refi - (now - self.settings.step) // self.part.refi
        if self._refresh(now):
            return None
        blocked, first = self._blocked(), self._overdue(now)
        self._turn(blocked, first)
        order = [item for item in self.queues[self.draining] if item.index not in blocked]
        if first is not None:
            served, sent = self._advance(now, first)
            if sent:
                return served
            # Nobody else may keep its bank from it.
            order = [item for item in order if item.bank != first.bank]
        for item in order:
            if self.open[item.bank] is None and self._try(now, Command.ACT, item.bank, item.row):
                return None
        for item in order:
            if self.open[item.bank] == item.row and self._column(now, item):
                return item
        wanted = {(item.bank, item.row) for item in order}
        for item in order:
            row = self.open[item.bank]
            if row not in (None, item.row) and (item.bank, row) not in wanted:
                if self._try(now, Command.PRE, item.bank):
                    return None
        self._close_idle(now)
        return None

    def _try(self, now, command, bank=0, row=0):
        if self.legal(now, command, bank):
            self._send(now, command, bank, row)
            return True
        return False

    def _column(self, now, item):
        """Serve a request whose row is open, if the rules let it."""
        command = Command.WR if item.write else Command.RD
        if not self.legal(now, command, item.bank):
            return False
        self._send(now, command, item.bank, item.row, item.column)
        self.queues[item.write].remove(item)
        return True

    def _advance(self, now, item):
        """The next command of one request: ``(request served or None, whether one was sent)``."""
        row = self.open[item.bank]
        if row == item.row:
            sent = self._column(now, item)
            return (item if sent else None), sent
        if row is None:
            return None, self._try(now, Command.ACT, item.bank, item.row)
        return None, self._try(now, Command.PRE, item.bank)

    def _refresh(self, now):
        """Whether a refresh is under way: then nothing else is sent."""
        idle = not (self.queues[False] or self.queues[True])
        if self.owed >= self.settings.refresh_start or (idle and self.owed):
            self.refreshing = True
        if not self.refreshing:
            return False
        if any(row is not None for row in self.open):
            self._try(now, Command.PREA)
        elif self._try(now, Command.REFAB):
            self.owed -= 1
            self.refreshing = self.owed > 0
        return True

    def _turn(self, blocked, first):
        """Reads or writes next: a drain begins at ``drain_high`` and ends at ``drain_low``, or for
        want of work; a read that waits for a write begins one too."""
        reads, writes = self.queues[False], self.queues[True]
        waits = any(item.index in blocked for item in reads)
        can_read = any(item.index not in blocked for item in reads)
        can_write = any(item.index not in blocked for item in writes)
        least = self.settings.drain_low + 1 if self.draining else self.settings.drain_high
        self.draining = can_write and (waits or not can_read or len(writes) >= least)
        if first is not None:
            self.draining = first.write

    def _blocked(self):
        """Numbers of requests that must wait for an older one to the same line, writes involved."""
        blocked, seen = set(), {}
        for item in sorted(self.queues[False] + self.queues[True]):
            older = seen.get(item.line)
            if older is not None and (older or item.write):
                blocked.add(item.index)
            seen[item.line] = bool(older) or item.write
        return blocked

    def _overdue(self, now):
        """The oldest request, which nothing blocks, if it waits too long."""
        heads = [queue[0] for queue in self.queues.values() if queue]
        if not heads:
            return None
        oldest = min(heads)
        return oldest if now - oldest.since > self.settings.age_limit else None

    def _close_idle(self, now):
        wanted = {(item.bank, item.row) for queue in self.queues.values() for item in queue}
        for bank, row in enumerate(self.open):
            idle = row is not None and now - self.used[bank] >= self.settings.idle_limit
            if idle and (bank, row) not in wanted and self._try(now, Command.PRE, bank):
                return
