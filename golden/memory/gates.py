"""For each rule a short trace that is legal, and illegal one cycle earlier because of that rule.

For tests of a scheduler's timing gates, and of the checker: the last command of a scenario is taken
at its time and refused at the cycle before.
"""

from hw.memory.timings import RULES, Command, Scope

__all__ = ["scenario", "scenarios"]

_COLUMNS = (Command.RD, Command.WR, Command.RDA, Command.WRA)
_RANK_WIDE = (Command.PREA, Command.REFAB)

_LATER = {  # (group, bank) of the later command; the earlier one goes to (0, 0)
    Scope.BANK: (0, 0), Scope.GROUP: (0, 1), Scope.OTHER_GROUP: (1, 0), Scope.RANK: (1, 1),
}


def scenario(rule, before, after, part):
    """Rows ``(time, command, group, bank, row, column)`` for one pair of commands of ``rule``.

    Commands long before bring the banks into the states needed. A bank that must close between the
    two closes as early as it may. Columns are 0; rows are 0, and 1 where a bank opens again.
    """
    if rule.window > 1:
        return _window(rule, before, part)
    here = (0, 0)
    there = here if after in _RANK_WIDE else _LATER[rule.scope]
    reopens = after == Command.ACT and there == here
    rows, time = [], _calm(part)
    if before not in (Command.ACT, Command.REFAB):
        rows.append((time, Command.ACT, *here, 0, 0))
        time += _calm(part)
    if there != here and before in _COLUMNS and after in (*_COLUMNS, Command.PRE):
        rows.append((time, Command.ACT, *there, 0, 0))
        time += _calm(part)
    rows.append((time, before, *here, 0, 0))
    if before == Command.ACT and (reopens or after == Command.REFAB):
        rows.append((time + part.ras, Command.PRE, *here, 0, 0))
    rows.append((time + rule.cycles(part), after, *there, int(reopens), 0))
    return rows


def scenarios(part):
    """``(rule, rows)`` for every rule and every pair of its commands."""
    for rule in RULES:
        for before in rule.before:
            for after in rule.after:
                yield rule, scenario(rule, before, after, part)


def _calm(part):
    """So long after a command it has no say any more."""
    return 2 * (part.rc + part.rfc)


def _window(rule, command, part):
    """``window`` + 1 commands round the groups: the last one ``cycles`` after the first."""
    groups = part.organisation.bank_groups
    start = _calm(part)
    times = [start + part.rrd_s * index for index in range(rule.window)]
    times.append(start + rule.cycles(part))
    return [
        (time, command, index % groups, index // groups, 0, 0) for index, time in enumerate(times)
    ]
