"""The checker of DRAM command traces: every rule at its edge, states, buses, refresh."""

from dataclasses import replace

import numpy as np
import pytest

from golden.memory.dram import Trace, Violation, check
from golden.memory.gates import scenarios
from hw.memory.timings import DDR5_4800, LPDDR5_6400, PARTS, RULES, Command, Scope

ACT, RD, WR, RDA, WRA, PRE, PREA, REF = Command
parts = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


def names(rows, part=DDR5_4800, end=None):
    return [violation.rule for violation in check(Trace.of(rows), part, end)]


@parts
def test_every_rule_is_tight(part):
    """Taken at t, refused at t-1; only rules that coincide are blamed as well."""
    beside = {  # PRE at its earliest, five ACT at tRRD_S, a burst as long as tCCD_S
        "tRC": {"tRP"}, "tRC_ref": {"tRP_ref"}, "tFAW": {"tRRD_S"}, "tCCD_S": {"data_bus"},
        "tCCD_S_WR": {"data_bus"},
    }
    met = set()
    for rule, rows in scenarios(part):
        assert names(rows, part) == [], (rule, rows)
        time, *rest = rows[-1]
        early = set(names([*rows[:-1], (time - 1, *rest)], part))
        assert rule.name in early, (rule, rows)
        assert early <= {rule.name} | beside.get(rule.name, set()), (rule, rows)
        met.add(rule.name)
    assert met == {rule.name for rule in RULES}


@parts
def test_other_banks_are_free(part):
    """Rules of a bank or a group do not hold outside."""
    for rule, rows in scenarios(part):
        if rule.scope not in (Scope.BANK, Scope.GROUP) or rule.after == (ACT,):
            continue
        time, command, *_ = rows[-1]
        rows = [(0, ACT, 2, 1), *rows[:-1], (time - 1, command, 2, 1)]
        assert rule.name not in names(rows, part), (rule, rows)


def plain(trace, part):
    """All broken distances by the plainest code there is: names and indices of the later ones."""
    found = set()
    for late in range(len(trace)):
        for rule in RULES:
            if trace.command[late] not in rule.after:
                continue
            before = [early for early in range(late) if trace.command[early] in rule.before]
            if rule.window > 1:
                before = before[-rule.window:][:1] if len(before) >= rule.window else []
            for early in before:
                group = trace.group[early] == trace.group[late]
                bank = group and trace.bank[early] == trace.bank[late]
                holds = {Scope.BANK: bank, Scope.GROUP: group, Scope.OTHER_GROUP: not group,
                         Scope.RANK: True}[rule.scope]
                if holds and trace.time[late] - trace.time[early] < rule.cycles(part):
                    found.add((rule.name, late))
    return found


@parts
@pytest.mark.parametrize("seed", range(3))
def test_distances_against_plain_code(part, seed):
    random = np.random.default_rng(seed)
    size = 200
    trace = Trace(
        time=np.cumsum(random.integers(1, 30, size)), command=random.integers(0, 8, size),
        group=random.integers(0, 3, size), bank=random.integers(0, 2, size),
        row=random.integers(0, 2, size), column=np.zeros(size, int),
    )
    rules = {rule.name for rule in RULES}
    found = [violation for violation in check(trace, part) if violation.rule in rules]
    assert {(item.rule, item.index) for item in found} == plain(trace, part), f"seed {seed}"
    assert len(found) == len({(item.rule, item.index) for item in found})
    for item in found:
        assert item.time == trace.time[item.index] and 0 <= item.since < item.index


def test_the_last_offender_is_blamed():
    rows = [(0, ACT, 0), (8, ACT, 1), (18, ACT, 0, 1), (20, ACT, 2)]
    found = check(Trace.of(rows), DDR5_4800)
    assert found == [Violation(20, "tRRD_S", 3, 2)]


def test_states():
    assert names([(0, RD)]) == ["closed_bank"]
    assert names([(0, ACT), (200, PRE), (400, WR)]) == ["closed_bank"]
    assert names([(0, ACT), (200, PREA), (400, RD)]) == ["closed_bank"]
    assert names([(0, ACT), (200, RDA), (400, RD)]) == ["closed_bank"]
    assert names([(0, ACT), (200, ACT, 0, 0, 1)]) == ["open_bank"]
    assert names([(0, ACT, 0, 0, 5), (200, RD, 0, 0, 6)]) == ["other_row"]
    assert names([(0, ACT), (200, REF)]) == ["refresh_open"]
    assert names([(0, PRE), (200, PREA), (400, REF)]) == []
    assert names([(0, ACT), (200, WRA), (400, ACT, 0, 0, 1), (600, RD, 0, 0, 1)]) == []
    found = check(Trace.of([(0, ACT), (200, ACT, 0, 0, 1), (400, RD, 0, 0, 1)]), DDR5_4800)
    assert found == [Violation(200, "open_bank", 1, 0)]


def test_buses():
    assert names([(0, PRE), (1, ACT, 1)]) == ["command_bus"]  # ACT takes cycles 0 and 1
    assert names([(0, PRE), (2, ACT, 1)]) == []
    assert names([(4, PRE), (4, PREA)]) == ["command_bus", "tPPD"]
    assert names([(0, ACT), (1, PRE, 1)], LPDDR5_6400) == []
    opened = [(0, ACT), (50, ACT, 1)]
    # Read data at 1034..1041; write data follows its command by 32.
    assert names([*opened, (1000, RD), (1009, WR, 1)]) == ["data_bus", "tRTW"]
    assert names([*opened, (1000, RD), (1010, WR, 1)]) == ["tRTW"]


def refreshes(times):
    return [(time, REF) for time in times]


@parts
def test_refresh_is_due(part):
    interval, limit = part.refi, part.postpone
    regular = [interval * k for k in range(1, 20)]
    assert names(refreshes(regular), part) == []
    # The first may wait for the limit-th interval after its own, then all owed in a row.
    late = interval * (limit + 1)
    burst = [late + part.rfc * k for k in range(limit + 1)]
    assert names(refreshes(burst), part) == []
    burst[0] += 1
    found = check(Trace.of(refreshes([late + 1])), part)
    assert found == [Violation(late + 1, "refresh_gap", 0, -1),
                     Violation(late + 1, "refresh_owed", 0, -1)]
    # Paying one of those owed does not buy a second such wait.
    assert names(refreshes([late, late + interval]), part) == []
    assert names(refreshes([late, late + interval + 1]), part) == ["refresh_owed"]
    # Without any command the end of the trace counts.
    assert names([], part, late) == []
    assert names([], part, late + 1) == ["refresh_gap", "refresh_owed"]
    assert names([], part) == []


@parts
def test_refresh_in_advance(part):
    interval, limit = part.refi, part.postpone
    ahead = [part.rfc * (k + 1) for k in range(limit)]
    if ahead[-1] >= interval:
        ahead = [time for time in ahead if time < interval]
    paid = len(ahead)
    gap = interval * (limit + 1)
    assert names(refreshes([*ahead, ahead[-1] + gap]), part) == []
    assert names(refreshes([*ahead, ahead[-1] + gap + 1]), part) == ["refresh_gap"]
    # More than the limit in advance pays nothing.
    spare = [part.rfc * (k + 1) for k in range(interval // part.rfc)]
    count = min(len(spare), limit)
    assert count == min(limit, interval // part.rfc) and paid <= count
    gaps = [spare[-1] + gap * (k + 1) for k in range(3)]
    found = names(refreshes([*spare, *gaps]), part)
    assert "refresh_owed" in found and "refresh_gap" not in found


def owed_by_the_cycle(times, part, end):
    """Cycles at which too much is owed, the first after each refresh, found cycle by cycle."""
    owed, told, found = 0, False, []
    for now in range(1, end + 1):
        owed += now % part.refi == 0
        if now in times:
            owed, told = max(min(owed, part.postpone + 1) - 1, -part.postpone), False
        if owed > part.postpone and not told:
            found.append(now + 1)
            told = True
    return [time for time in found if time <= end]


@pytest.mark.parametrize("seed", range(6))
def test_refresh_against_plain_code(seed):
    """A lost refresh is told once, and what was owed beyond the limit is then forgiven."""
    random = np.random.default_rng(seed)
    part = replace(DDR5_4800, rfc=2, refi=20)
    times = np.unique(random.integers(1, 4000, (80, 160, 220)[seed % 3]))
    found = check(Trace.of(refreshes(times)), part, 4000)
    found = [item.time for item in found if item.rule == "refresh_owed"]
    assert found == owed_by_the_cycle(set(times.tolist()), part, 4000), f"seed {seed}"
    assert found or seed % 3


def test_addresses_outside_the_part():
    with pytest.raises(ValueError, match="group must be in 0..7"):
        names([(0, ACT, 8)])
    with pytest.raises(ValueError, match="bank must be in 0..3"):
        names([(0, PRE, 0, 4)])
    with pytest.raises(ValueError, match="row must be in 0..65535"):
        names([(0, ACT, 0, 0, 65536)])
    with pytest.raises(ValueError, match="column must be in 0..127"):
        names([(0, ACT), (100, RD, 0, 0, 0, 128)])
    assert names([(0, PREA, 9, 9, 99999, 999)]) == []


def test_wrong_traces():
    with pytest.raises(ValueError, match="time must not fall"):
        Trace.of([(5, PRE), (4, PRE)])
    with pytest.raises(ValueError, match="command must be in 0..7"):
        Trace.of([(5, 8)])
    with pytest.raises(ValueError, match="bank must have shape"):
        Trace([1, 2], [0, 0], [0, 0], [0], [0, 0], [0, 0])
    with pytest.raises(TypeError, match="time must be an integer array"):
        Trace([1.5], [0], [0], [0], [0], [0])
    with pytest.raises(ValueError, match="end must be in"):
        check(Trace.of([(5, PRE)]), DDR5_4800, 4)
    with pytest.raises(TypeError, match="part must be a Part"):
        check(Trace.of([]), None)
