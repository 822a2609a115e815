"""Checker of DRAM command traces: which rule is broken, at which cycle, by which pair of commands.

It knows nothing of counters or bank machines. Every rule of ``hw.memory.timings`` is applied by its
definition, to all pairs of commands of the trace; bank states, refresh and the buses likewise.
Source of the rules: JESD79-5 and JESD209-5, see ``docs/memory_dram.md``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from golden.checks import check_int, check_integers
from hw.memory.timings import RULES, Command, Part, Scope

__all__ = ["TIME_LIMIT", "Trace", "Violation", "check"]

TIME_LIMIT = (1 << 62) - 1  # times of a trace are below, so that sums fit int64

_OPENS = (Command.ACT,)
_COLUMNS = (Command.RD, Command.WR, Command.RDA, Command.WRA)
_READS = (Command.RD, Command.RDA)
_RANK_WIDE = (Command.PREA, Command.REFAB)


class Violation(NamedTuple):
    """One broken rule.

    ``time`` (nCK) and ``index`` are those of the later command; ``since`` is the index of the
    earlier one, -1 where there is none. An overdue refresh has the first cycle that is too late
    and the index of the command that ends the wait, or the length of the trace.
    """

    time: int
    rule: str
    index: int
    since: int


@dataclass(frozen=True)
class Trace:
    """Commands in order.

    Parameters
    ----------
    time : integer array [n]
        nCK, not falling: the last cycle that the command takes on the command bus.
    command, group, bank, row, column : integer arrays [n]
        ``column`` counts bursts. ``row`` of a column command is the row meant by its sender. Fields
        that a command does not use are ignored: all of PREA and REFAB, row and column of PRE,
        column of ACT.

    Raises
    ------
    TypeError, ValueError
        Not integers, sizes differ, negative or falling times, no such command.
    """

    time: np.ndarray
    command: np.ndarray
    group: np.ndarray
    bank: np.ndarray
    row: np.ndarray
    column: np.ndarray

    def __post_init__(self):
        size = np.asarray(self.time).shape
        for name, value in vars(self).items():
            high = {"time": TIME_LIMIT, "command": max(Command)}.get(name, (1 << 31) - 1)
            array = check_integers(name, value, 0, high, size if len(size) == 1 else (None,))
            object.__setattr__(self, name, array)
        if (np.diff(self.time) < 0).any():
            raise ValueError("time must not fall along the trace")

    @classmethod
    def of(cls, rows):
        """From tuples ``(time, command[, group[, bank[, row[, column]]]])``; the rest is 0."""
        padded = [tuple(row) + (0,) * (6 - len(row)) for row in rows]
        return cls(*np.array(padded, np.int64).reshape(len(padded), 6).T)

    def __len__(self):
        return len(self.time)


def check(trace, part, end=None):
    """All violations of a trace, by time.

    Parameters
    ----------
    trace : Trace
    part : hw.memory.timings.Part
    end : int, optional
        Time in nCK up to which a refresh may be found overdue; the last command's if not given.
        Refresh k = 1, 2, ... falls due at ``k * part.refi``: at time 0 nothing is owed.

    Returns
    -------
    list of Violation
        Of several earlier commands that break the same rule with the same later one, the last.

    Raises
    ------
    ValueError
        An address of the trace lies outside the part, or ``end`` before the last command.
    """
    if not isinstance(part, Part):
        raise TypeError(f"part must be a Part, not {part!r}")
    last = int(trace.time[-1]) if len(trace) else 0
    end = last if end is None else check_int("end", end, last, TIME_LIMIT)
    _check_addresses(trace, part.organisation)
    found = [
        *_check_rules(trace, part), *_check_buses(trace, part),
        *_check_states(trace), *_check_refresh(trace, part, end),
    ]
    return sorted(found)


def _check_addresses(trace, organisation):
    """ValueError if a field that a command uses lies outside the organisation."""
    one_bank = ~np.isin(trace.command, _RANK_WIDE)
    columns = np.isin(trace.command, _COLUMNS)
    for name, used, size in (
        ("group", one_bank, organisation.bank_groups), ("bank", one_bank, organisation.banks),
        ("row", columns | np.isin(trace.command, _OPENS), organisation.rows),
        ("column", columns, organisation.bursts),
    ):
        values = getattr(trace, name)[used]
        if values.size:
            check_integers(name, values, 0, size - 1)


def _in_scope(scope, trace, early, late):
    """Whether a rule of ``scope`` holds between the commands of two index arrays."""
    same_group = trace.group[early] == trace.group[late]
    match scope:
        case Scope.BANK:
            return same_group & (trace.bank[early] == trace.bank[late])
        case Scope.GROUP:
            return same_group
        case Scope.OTHER_GROUP:
            return ~same_group
        case Scope.RANK:
            return np.ones(len(early), bool)


def _check_rules(trace, part):
    """Minimum distances, pair by pair."""
    for rule in RULES:
        cycles = rule.cycles(part)
        before = np.isin(trace.command, rule.before)
        after = np.isin(trace.command, rule.after)
        if rule.window > 1:
            yield from _check_window(trace, rule.name, np.flatnonzero(before), cycles, rule.window)
            continue
        chosen = np.flatnonzero(before | after)
        blamed = {}
        for lag in range(1, len(chosen)):
            early, late = chosen[:-lag], chosen[lag:]
            near = trace.time[late] - trace.time[early] < cycles
            if not near.any():
                break
            wrong = near & before[early] & after[late] & _in_scope(rule.scope, trace, early, late)
            for first, second in zip(early[wrong], late[wrong], strict=True):
                blamed.setdefault(int(second), int(first))  # the shortest lag, so the last command
        for second, first in blamed.items():
            yield Violation(int(trace.time[second]), rule.name, second, first)


def _check_window(trace, name, chosen, cycles, window):
    """At most ``window`` of the chosen commands in any ``cycles`` cycles."""
    for first, second in zip(chosen, chosen[window:], strict=False):
        if trace.time[second] - trace.time[first] < cycles:
            yield Violation(int(trace.time[second]), name, int(second), int(first))


def _check_buses(trace, part):
    """One command at a time on the command bus, one burst at a time on the data bus."""
    starts = trace.time - np.array(part.slots)[trace.command] + 1
    for index in np.flatnonzero(starts[1:] <= trace.time[:-1]) + 1:
        yield Violation(int(trace.time[index]), "command_bus", int(index), int(index) - 1)

    columns = np.flatnonzero(np.isin(trace.command, _COLUMNS))
    latency = np.where(np.isin(trace.command[columns], _READS), part.cl, part.cwl)
    data = trace.time[columns] + latency
    order = np.argsort(data, kind="stable")
    for first, second in zip(order, order[1:], strict=False):
        if data[second] - data[first] < part.burst:
            early, late = sorted((int(columns[first]), int(columns[second])))
            yield Violation(int(trace.time[late]), "data_bus", late, early)


def _check_states(trace):
    """What a bank must be for each command: ``since`` is the ACT that opened it."""
    rows, opened = {}, {}
    for index, (time, command, *place) in enumerate(zip(
        trace.time.tolist(), trace.command.tolist(), trace.group.tolist(), trace.bank.tolist(),
        trace.row.tolist(), strict=True,
    )):
        bank, row = tuple(place[:2]), place[2]
        since = opened.get(bank, -1)
        if command == Command.ACT:
            if bank in rows:
                yield Violation(time, "open_bank", index, since)
            rows[bank], opened[bank] = row, index
        elif command in _COLUMNS:
            if bank not in rows:
                yield Violation(time, "closed_bank", index, since)
            elif rows[bank] != row:
                yield Violation(time, "other_row", index, since)
            if command in (Command.RDA, Command.WRA):
                rows.pop(bank, None)
        elif command == Command.PRE:
            rows.pop(bank, None)
        else:
            if command == Command.REFAB and rows:
                yield Violation(time, "refresh_open", index, max(opened[bank] for bank in rows))
            rows.clear()


def _check_refresh(trace, part, end):
    """No more than ``postpone`` refreshes owed, none later than ``postpone`` + 1 intervals.

    A refresh sent ahead pays one that is not yet due; beyond ``postpone`` of them it pays nothing.
    """
    paid = 0  # refresh paid + postpone + 1 must not fall due before the next REFAB
    before, since = 0, -1
    longest = (part.postpone + 1) * part.refi
    refreshes = np.flatnonzero(trace.command == Command.REFAB).tolist()
    for index in [*refreshes, len(trace)]:
        time = int(trace.time[index]) if index < len(trace) else end
        for name, limit in (
            ("refresh_owed", (paid + part.postpone + 1) * part.refi),
            ("refresh_gap", before + longest),
        ):
            if time > limit:
                yield Violation(limit + 1, name, index, since)
        due = time // part.refi
        paid = min(max(paid, due - part.postpone - 1) + 1, due + part.postpone)
        before, since = time, index
