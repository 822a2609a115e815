"""The DRAM scheduler: legal traces, each request served once and in its turn, latencies, shares."""

from dataclasses import replace

import numpy as np
import pytest

from golden.memory import requests
from golden.memory.dram import check
from golden.memory.limits import ideal_latency, mixed_bound, refresh_limited, sustained_bound
from golden.memory.place import Place, line_count, line_of, place_of
from golden.memory.run import run
from golden.memory.scheduler import Scheduler, Settings
from hw.memory.timings import DDR5_4800, LPDDR5_6400, PARTS, Command

parts = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
COLUMNS = (Command.RD, Command.WR)


def check_run(result, part, lines, writes):
    """No rule is broken, and the column commands are the requests: each once, in a fair order."""
    trace = result.trace
    assert check(trace, part, result.cycles) == []
    served = np.flatnonzero(np.isin(trace.command, COLUMNS))
    place = Place(trace.group[served], trace.bank[served], trace.row[served], trace.column[served])
    write = trace.command[served] == Command.WR
    end = trace.time[served] + np.where(write, part.cwl, part.cl) + part.burst
    order = np.argsort(result.done, kind="stable")
    assert (np.sort(end) == result.done[order]).all()
    seen = sorted(zip(end.tolist(), line_of(place, part.organisation).tolist(), write.tolist(),
                      strict=True))
    expected = sorted(zip(result.done.tolist(), np.asarray(lines).tolist(),
                          np.asarray(writes).tolist(), strict=True))
    assert seen == expected
    # Requests to one line are served in their order if one of them writes.
    time = dict(zip(end.tolist(), trace.time[served].tolist(), strict=True))
    last = {}
    for line, write, done in zip(np.asarray(lines).tolist(), writes, result.done.tolist(),
                                 strict=True):
        for before, was_write in last.get(line, ()):
            if write or was_write:
                assert time[done] > before
        last.setdefault(line, []).append((time[done], write))


@parts
@pytest.mark.parametrize("seed", range(3))
def test_random_requests(part, seed):
    random = np.random.default_rng(seed)
    settings = Settings(
        step=int(random.choice([1, 2, 4])), reads=int(random.choice([2, 8, 32])), writes=16,
        drain_high=int(random.integers(5, 17)), drain_low=int(random.integers(0, 5)),
        age_limit=int(random.choice([100, 2000])), idle_limit=int(random.choice([20, 400])),
        refresh_start=int(random.integers(1, part.postpone + 1)),
    )
    near = requests.uniform(400, 40, 0.5, seed)  # many meet each other's lines
    far = requests.uniform(600, line_count(part.organisation), 0.3, seed)
    stream = near + far + requests.conflicts(60, part.organisation)
    result = run(part, stream.line, stream.writes, settings)
    check_run(result, part, stream.line, stream.writes)


@parts
def test_latency(part):
    """Unloaded reads take the data sheet's sum, and the burst."""
    organisation = part.organisation
    for name, rows in (("closed", [5]), ("hit", [5, 5]), ("conflict", [5, 6])):
        lines = [int(line_of(Place(1, 1, row, 3), organisation)) for row in rows]
        scheduler = Scheduler(part, Settings(step=1))
        now = done = 0
        for index, line in enumerate(lines):
            now = done + 2 * part.rc  # long after the last one, and no refresh before
            scheduler.accept(now, index, line, False)
            start = now
            while scheduler.decide(now) is None:
                now += 1
            done = now
        assert done + part.cl - start == getattr(ideal_latency(part), name)


@parts
def test_starvation_is_bounded(part):
    """One conflict under endless hits to its bank waits no longer than its age limit and a row."""
    settings = Settings(age_limit=300)
    organisation = part.organisation
    hits = [int(line_of(Place(0, 0, 0, column), organisation)) for column in range(64)] * 10
    lines = [*hits[:40], int(line_of(Place(0, 0, 1, 0), organisation)), *hits[40:]]
    result = run(part, lines, np.zeros(len(lines), bool), settings)
    waited = result.done[40] - result.accepted[40]
    assert waited <= 300 + part.ras + part.rtp + part.rp + part.rcd + part.cl + part.burst
    assert waited > 250  # the hits did go first
    check_run(result, part, lines, np.zeros(len(lines), bool))


def test_idle_rows_are_closed():
    settings = Settings(idle_limit=50)
    scheduler = Scheduler(DDR5_4800, settings)
    scheduler.accept(1, 0, 0, False)
    for now in range(1, 400):
        scheduler.decide(now)
    times = {Command(row[1]): row[0] for row in scheduler.log}
    assert list(times) == [Command.ACT, Command.RD, Command.PRE]
    assert times[Command.PRE] == max(times[Command.RD] + 50, times[Command.ACT] + DDR5_4800.ras)


@parts
def test_refreshes_are_sent_in_a_row(part):
    """Under load at the set debt, together; when idle, each as it falls due."""
    part = replace(part, refi=part.refi // 8, rfc=part.rfc // 8)
    batch = part.postpone
    stream = requests.sequential(3 * batch * part.refi // part.burst)
    result = run(part, stream.line, stream.writes, Settings(refresh_start=batch))
    assert check(result.trace, part, result.cycles) == []
    times = result.trace.time[result.trace.command == Command.REFAB]
    assert len(times) == 3 * batch
    times = times.reshape(3, batch)
    assert (np.diff(times, axis=1) == part.rfc).all()
    assert (times[:, 0] // part.refi == batch * np.arange(1, 4)).all()
    scheduler = Scheduler(part, Settings())
    for now in range(1, 3 * part.refi + 2):
        scheduler.decide(now)
    assert [row[:2] for row in scheduler.log] == [
        (part.refi * k, Command.REFAB) for k in (1, 2, 3)]


def test_shares():
    """Short runs without much refresh; `test_shares_of_long_runs` has the figures."""
    settings = Settings(step=2)
    lines = line_count(DDR5_4800.organisation)
    for stream, least in (
        (requests.sequential(1500), 0.98), (requests.sequential(1500, writes=True), 0.98),
        (requests.uniform(1500, lines), 0.9), (requests.uniform(1500, lines, 1.0), 0.7),
    ):
        assert run(DDR5_4800, stream.line, stream.writes, settings).use(DDR5_4800) >= least
    mixed = requests.uniform(1500, lines, 0.5)
    use = run(DDR5_4800, mixed.line, mixed.writes, settings).use(DDR5_4800)
    assert 0.55 <= use <= mixed_bound(DDR5_4800, 32, refresh=False)


@pytest.mark.regress
@parts
@pytest.mark.parametrize("writes", [False, True])
def test_shares_of_long_runs(part, writes):
    """Sequential streams over many refreshes: 99 % of what refresh leaves (97 % of LPDDR5, whose
    command bus is busier), and no more than the bound."""
    batch = part.postpone
    settings = Settings(step=2 if part is DDR5_4800 else 1, refresh_start=batch)
    stream = requests.sequential(5 * batch * part.refi // part.burst, writes=writes)
    result = run(part, stream.line, stream.writes, settings)
    assert check(result.trace, part, result.cycles) == []
    refreshes = result.trace.time[result.trace.command == Command.REFAB]
    first, last = refreshes[0], refreshes[::batch][4]  # four whole periods
    inside = ((result.done > first) & (result.done <= last)).sum()
    use = inside * part.burst / (last - first)
    assert use >= refresh_limited(part) * (0.99 if part is DDR5_4800 else 0.97)
    assert use <= sustained_bound(part, writes, batch)


def test_wrong_settings():
    with pytest.raises(ValueError, match="drain_high must be in 9..32, not 8"):
        Settings(drain_high=8)
    with pytest.raises(ValueError, match="refresh_start must be in 1..4, not 5"):
        Scheduler(DDR5_4800, Settings(refresh_start=5))
    with pytest.raises(TypeError, match="step must be an integer, not 0.5"):
        Settings(step=0.5)
    scheduler = Scheduler(LPDDR5_6400, Settings(reads=1))
    scheduler.accept(1, 0, 0, False)
    assert not scheduler.room(False) and scheduler.room(True)


def test_places_are_the_map_s():
    """A tiny part: the scheduler cuts lines as `golden.memory.place` does."""
    organisation = replace(DDR5_4800.organisation, rows=8, columns=64)
    part = replace(DDR5_4800, organisation=organisation)
    lines = np.arange(line_count(organisation))[::7]
    result = run(part, lines, np.zeros(len(lines), bool))
    check_run(result, part, lines, np.zeros(len(lines), bool))
    opened = result.trace.command == Command.ACT
    assert set(result.trace.row[opened].tolist()) == set(
        place_of(lines, organisation).row.tolist())
