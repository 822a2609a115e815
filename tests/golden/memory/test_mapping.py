"""Tiers, moves and windows: what is read never depends on where it lies or where it is going."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.memory.mapping import Kind, Placement, Tier, TierMap, initial_tiers
from golden.memory.windows import Guard, Refusal, Refused, Window

KINDS = np.array([Kind.KEYS, Kind.VALUES, Kind.KEYS, Kind.OTHER, Kind.VALUES, Kind.KEYS])


@pytest.mark.parametrize("placement, near_frames, near", [
    (Placement.SEMANTIC, 6, [0, 2, 5]),
    (Placement.SEMANTIC, 2, [0, 2]),
    (Placement.SEMANTIC, 0, []),
    (Placement.SWAPPED, 6, [1, 4]),
    (Placement.INTERLEAVED, 6, [0, 2, 4]),
    (Placement.ALL_FAR, 6, []),
])
def test_placements(placement, near_frames, near):
    tiers = initial_tiers(KINDS, placement, near_frames)
    assert np.flatnonzero(tiers == Tier.NEAR).tolist() == near
    assert set(np.flatnonzero(tiers == Tier.FAR)) == set(range(6)) - set(near)


def whole(tiers):
    """Check that each frame is a page's, free, or the target of the move; returns the map."""
    for tier in Tier:
        used = tiers.frame[tiers.tier == tier].tolist()
        if tiers.move and tiers.move.target[0] == tier:
            used.append(tiers.move.target[1])
        frames = used + list(tiers.free[tier])
        assert sorted(frames) == list(range(len(frames)))
    return tiers


def test_locate():
    tiers = TierMap(initial_tiers(KINDS, Placement.SEMANTIC, 4), near_frames=4, far_frames=4)
    address = np.arange(0, 6 * 4096, 1000).reshape(5, 5)
    tier, place = tiers.locate(address)
    assert tier.shape == place.shape == address.shape
    pairs = set(zip(tier.ravel().tolist(), place.ravel().tolist(), strict=True))
    assert len(pairs) == address.size
    assert [int(x) for x in tiers.locate(2 * 4096 + 5)] == [Tier.NEAR, 4096 + 5]
    assert [int(x) for x in tiers.locate(4096)] == [Tier.FAR, 0]
    whole(tiers)


steps = st.lists(st.tuples(
    st.sampled_from(["read", "write", "begin", "copy", "finish", "cancel"]),
    st.integers(0, 3 * 4 * 64 - 1)), max_size=120)


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 5), st.integers(0, 2**32))
def test_memory_is_the_same_while_pages_move(steps, spare, seed):
    """Every line of both tiers in an array; reads are compared with a flat one."""
    rng = np.random.default_rng(seed)
    pages, lines = 12, 4
    tiers = TierMap(rng.integers(0, 2, pages), near_frames=pages, far_frames=spare + pages,
                    page_log2=8)
    flat = np.arange(pages * lines) + 1000
    cells = {tier: np.full((2 * pages + spare) * lines, -1) for tier in Tier}
    tier, place = tiers.locate(np.arange(pages * lines) * 64)
    for number in range(flat.size):
        cells[Tier(int(tier[number]))][place[number] // 64] = flat[number]

    def read(address):
        where, place = tiers.locate(address)
        return cells[Tier(int(where))][int(place) // 64]

    for number, (what, draw) in enumerate(steps):
        address = draw % (pages * lines) * 64
        if what == "read":
            assert read(address) == flat[address // 64]
        elif what == "write":
            flat[address // 64] = number
            for where, place in tiers.writes(address):
                cells[where][place // 64] = number
        elif what == "begin" and tiers.move is None:
            page = draw % pages
            other = Tier(1 - int(tiers.tier[page]))
            if tiers.free[other]:
                tiers.begin(page, other)
        elif what == "copy" and tiers.move:
            places = tiers.copy()
            if places is None:
                assert tiers.copied == lines
                continue
            (source, low), (target, high) = places
            cells[target][high // 64] = cells[source][low // 64]
        elif what == "finish" and tiers.move and tiers.copied == lines:
            tiers.finish()
        elif what == "cancel":
            tiers.cancel()
        whole(tiers)
    assert [read(number * 64) for number in range(flat.size)] == flat.tolist()


def test_a_move_to_the_end():
    tiers = TierMap(np.array([1, 1, 1]), near_frames=1, far_frames=3, page_log2=7)
    tiers.begin(1, Tier.NEAR)
    assert tiers.writes(128) == [(Tier.FAR, 128)]
    assert tiers.copy() == ((Tier.FAR, 128), (Tier.NEAR, 0))
    assert tiers.writes(129) == [(Tier.FAR, 129), (Tier.NEAR, 1)]
    assert tiers.writes(192) == [(Tier.FAR, 192)]
    assert [int(x) for x in tiers.locate(128)] == [Tier.FAR, 128]
    with pytest.raises(ValueError, match="all its lines copied"):
        tiers.finish()
    assert tiers.copy() == ((Tier.FAR, 192), (Tier.NEAR, 64))
    assert tiers.copy() is None
    tiers.finish()
    assert tiers.writes(192) == [(Tier.NEAR, 64)] and tiers.copy() is None
    assert list(tiers.free[Tier.FAR]) == [1] and not tiers.free[Tier.NEAR]
    whole(tiers)


def test_moves_refused():
    tiers = TierMap(np.array([0, 1, 1]), near_frames=1, far_frames=3)
    with pytest.raises(ValueError, match="page 0 must not be in NEAR already"):
        tiers.begin(0, Tier.NEAR)
    with pytest.raises(ValueError, match="NEAR must have a free frame to take page 1"):
        tiers.begin(1, Tier.NEAR)
    with pytest.raises(ValueError, match="page must be in 0..2, not 3"):
        tiers.begin(3, Tier.FAR)
    tiers.begin(0, Tier.FAR)
    with pytest.raises(ValueError, match="page 0 must arrive before 1 is moved"):
        tiers.begin(1, Tier.NEAR)
    tiers.cancel()
    tiers.cancel()
    whole(tiers)


@pytest.mark.parametrize("tiers, options, message", [
    ([0, 1], {"near_frames": 1, "far_frames": 1}, "must be more than 2 together, not 2"),
    ([0, 0], {"near_frames": 1, "far_frames": 5}, "at most 1 pages NEAR, not 2"),
    ([0, 2], {"near_frames": 9, "far_frames": 5}, "tiers must be in 0..1"),
    ([0, 1], {"near_frames": 9, "far_frames": 5, "page_log2": 5}, "page_log2 must be in 6..21"),
])
def test_maps_refused(tiers, options, message):
    with pytest.raises(ValueError, match=message):
        TierMap(np.array(tiers), **options)


def test_addresses_refused():
    tiers = TierMap(np.array([0, 1]), near_frames=2, far_frames=2)
    with pytest.raises(ValueError, match="address must be in 0..8191, not 8192..8192"):
        tiers.locate(8192)


WINDOWS = [
    Window(context=1, base=0x1000, size=0x1000),
    Window(context=1, base=0x4000, size=0x1000, writable=False),
    Window(context=2, base=0x4000, size=0x800),
    Window(context=2, base=0x4000, size=0x2000, writable=False),
]


@pytest.mark.parametrize("context, address, size, write, reason", [
    (1, 0x1000, 64, False, Refusal.NONE),
    (1, 0x1FC0, 64, True, Refusal.NONE),
    (1, 0x1FC0, 65, True, Refusal.SPAN),
    (1, 0x2000, 64, False, Refusal.OUTSIDE),
    (1, 0x0FC0, 128, False, Refusal.OUTSIDE),
    (2, 0x1000, 64, False, Refusal.OUTSIDE),  # another's
    (1, 0x4000, 64, False, Refusal.NONE),     # shared
    (1, 0x4000, 64, True, Refusal.READ_ONLY),
    (1, 0x4FC0, 128, True, Refusal.SPAN),
    (2, 0x4000, 64, True, Refusal.NONE),      # the first window decides
    (2, 0x4800, 64, True, Refusal.READ_ONLY),
    (3, 0x1000, 64, False, Refusal.OUTSIDE),
])
def test_windows(context, address, size, write, reason):
    guard = Guard(WINDOWS)
    assert guard.check(context, address, size, write) == reason
    assert guard.count == bool(reason)
    assert guard.first == (Refused(reason, context, address, write) if reason else None)


def test_refusals_are_counted_and_the_first_is_kept():
    guard = Guard(WINDOWS)
    for address in (0x2000, 0x3000, 0x1000):
        guard.check(1, address)
    assert guard.count == 2 and guard.first.address == 0x2000
    guard.clear()
    assert guard.count == 0 and guard.first is None
    with pytest.raises(TypeError, match="windows must be Windows"):
        Guard([(0, 64)])
    with pytest.raises(ValueError, match="context must be in 0..255"):
        guard.check(256, 0)
    with pytest.raises(ValueError, match="base and size must be multiples of 64"):
        Window(context=0, base=32, size=64)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(
    Window, context=st.integers(0, 3), base=st.integers(0, 20).map(lambda n: n * 64),
    size=st.integers(1, 9).map(lambda n: n * 64), writable=st.booleans()), max_size=6),
    st.integers(0, 3), st.integers(0, 2000), st.integers(1, 300), st.booleans())
def test_whatever_passes_lies_in_the_contexts_windows(windows, context, address, size, write):
    if Guard(windows).check(context, address, size, write) == Refusal.NONE:
        own = [w for w in windows if w.context == context and (w.writable or not write)]
        assert all(any(w.base <= byte < w.base + w.size for w in own)
                   for byte in range(address, address + size))
