"""Timing tables, bounds and addresses: published figures, and the maps' round trip."""

from dataclasses import replace

import numpy as np
import pytest

from golden.memory.limits import (
    Latency,
    activation_bound,
    group_bound,
    ideal_latency,
    mixed_bound,
    peak_bytes_per_second,
    refresh_limited,
    sustained_bound,
)
from golden.memory.place import Place, line_count, line_of, place_of
from hw.memory.timings import (
    DDR5_4800,
    DDR5_RFC_NS,
    LPDDR5_6400,
    PARTS,
    RULES,
    Command,
    Organisation,
    cycles_at_least,
)

parts = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


def test_published_latencies():
    assert ideal_latency(DDR5_4800) == Latency(hit=34, closed=68, conflict=102)
    assert ideal_latency(DDR5_4800).ns(DDR5_4800) == pytest.approx((14.1, 28.3, 42.4), abs=0.05)
    assert ideal_latency(LPDDR5_6400).ns(LPDDR5_6400) == pytest.approx((21.25, 40, 58.75))


def test_published_bandwidths():
    assert peak_bytes_per_second(DDR5_4800) == pytest.approx(19.2e9, rel=2e-3)
    assert peak_bytes_per_second(LPDDR5_6400) == pytest.approx(25.6e9)
    assert 1 - refresh_limited(DDR5_4800) == pytest.approx(0.076, abs=5e-4)


def test_cycles_from_times():
    """JESD79-5 section 13.2, and the refresh times of the table."""
    assert [cycles_at_least(ns * 1000, 416) for ns in DDR5_RFC_NS.values()] == [468, 708, 983]
    for ns, cycles in ((30, 72), (7.5, 18), (5, 12), (10, 24), (2.5, 6), (20, 48)):
        assert cycles_at_least(int(ns * 1000), 416) == cycles
    assert LPDDR5_6400.rfc == 224


@parts
def test_rules_fit_together(part):
    """Relations that hold for any part: if one fails, a number was mistyped."""
    cycles = {rule.name: rule.cycles(part) for rule in RULES}
    assert len(cycles) == len(RULES)
    assert min(cycles.values()) >= 1
    assert part.rc == part.ras + part.rp
    assert part.ras >= part.rcd + part.rtp
    for name in ("tRRD", "tCCD", "tWTR"):
        assert cycles[f"{name}_L"] >= cycles[f"{name}_S"]
    assert cycles["tCCD_L_WR"] >= cycles["tCCD_S_WR"] >= part.burst <= cycles["tCCD_S"]
    assert part.burst * part.tck_ps * 1e-12 * peak_bytes_per_second(part) == pytest.approx(64)


def test_capacity():
    assert DDR5_4800.organisation.capacity_bytes == 8 * 2 << 30  # eight x4 parts of 16 Gbit
    assert LPDDR5_6400.organisation.capacity_bytes == 2 * 2 << 30
    assert DDR5_4800.organisation.bursts == 128


def test_wrong_parts():
    with pytest.raises(ValueError, match="rows must be a power of two, not 3"):
        replace(DDR5_4800.organisation, rows=3)
    with pytest.raises(ValueError, match="columns must be a multiple of burst_length 16, not 8"):
        replace(DDR5_4800.organisation, columns=8)
    with pytest.raises(ValueError, match="rfc must be below refi"):
        replace(DDR5_4800, rfc=9375)
    with pytest.raises(ValueError, match="slots must have 8 entries"):
        replace(DDR5_4800, slots=(1, 2))
    with pytest.raises(TypeError, match="organisation must be an Organisation"):
        replace(DDR5_4800, organisation=None)
    with pytest.raises(ValueError, match="cl must be at least 1, not 0"):
        replace(DDR5_4800, cl=0)
    assert len(DDR5_4800.slots) == len(Command)


def test_sustained_bounds():
    """One refresh at a time leaves reads at 99 % of the limit, writes below it; two in a row do."""
    limit = refresh_limited(DDR5_4800)
    assert 0.99 < sustained_bound(DDR5_4800) / limit < 0.992
    assert sustained_bound(DDR5_4800, writes=True) / limit < 0.981
    assert sustained_bound(DDR5_4800, writes=True, refreshes=2) / limit > 0.99
    with pytest.raises(ValueError, match="refreshes must be in 1..5"):
        sustained_bound(DDR5_4800, refreshes=6)


def test_mixed_bound():
    """Two bursts of 8 in the 14 + 46 of both turns; nearly the peak for long turns."""
    assert mixed_bound(DDR5_4800, 1, refresh=False) == pytest.approx(16 / 60)
    assert mixed_bound(DDR5_4800, 16, refresh=False) == pytest.approx(256 / 300)
    assert mixed_bound(DDR5_4800, 10**6) == pytest.approx(refresh_limited(DDR5_4800), rel=1e-4)


def test_other_bounds():
    assert activation_bound(DDR5_4800) == 1
    assert activation_bound(LPDDR5_6400) == 0.5
    assert group_bound(DDR5_4800, 1) == pytest.approx(2 / 3)
    assert group_bound(DDR5_4800, 2) == 1
    assert [group_bound(DDR5_4800, groups, writes=True) for groups in (1, 3, 6)] == [
        pytest.approx(1 / 6), pytest.approx(1 / 2), 1]


@parts
def test_every_line_has_its_place(part):
    organisation = part.organisation
    lines = line_count(organisation)
    random = np.random.default_rng(6).integers(0, lines, 5000)
    for line in (np.arange(5000), lines - 1 - np.arange(5000), random):
        assert (line_of(place_of(line, organisation), organisation) == line).all()
    tiny = Organisation(bank_groups=4, banks=2, rows=8, columns=64, burst_length=16, data_bits=32)
    places = place_of(np.arange(line_count(tiny)), tiny)
    assert len(set(zip(*(field.tolist() for field in places), strict=True))) == 4 * 2 * 8 * 4
    with pytest.raises(ValueError, match="line must be in"):
        place_of(lines, organisation)
    with pytest.raises(ValueError, match="bank must be in"):
        line_of(Place(0, organisation.banks, 0, 0), organisation)


def test_streams_spread():
    """A sequential stream goes round the groups; steps of a row's size meet all banks."""
    organisation = DDR5_4800.organisation
    place = place_of(np.arange(4096), organisation)
    assert (np.sort(place.group.reshape(-1, 8), axis=1) == np.arange(8)).all()
    rows = 8 * 128 * 4  # lines that share a row number
    place = place_of(np.arange(32) * rows, organisation)
    assert len(set(zip(place.group.tolist(), place.bank.tolist(), strict=True))) == 32
