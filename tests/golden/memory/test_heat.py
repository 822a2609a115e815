"""Page heat and migration: exact decisions, convergence, no page that goes back and forth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.memory.heat import Heat, Policy
from golden.memory.mapping import Tier, TierMap

NEAR, FAR = Tier.NEAR, Tier.FAR


def heat_of(counts, pinned=None, **policy):
    heat = Heat(Policy(**policy), len(counts), pinned)
    heat.counts[:] = counts
    return heat


def test_counters_saturate_and_decay():
    heat = Heat(Policy(heat_bits=4, epoch_log2=5, promote=8), 3)
    ends = [heat.touch(1) for _ in range(32)]
    assert ends == [False] * 31 + [True]
    assert heat.counts.tolist() == [0, 15, 0]
    heat.decay()
    assert heat.counts.tolist() == [0, 7, 0] and heat.epoch == 1


@given(st.integers(0, 65535), st.integers(1, 4), st.lists(st.integers(0, 5), max_size=8))
def test_a_late_decay_is_the_same(count, shift, epochs):
    """Hardware may shift a counter by the epochs since it was last used."""
    late = count
    for passed in epochs:
        for _ in range(passed):
            count >>= shift
        late >>= shift * passed
        assert late == count
        count, late = count + 1, late + 1


@pytest.mark.parametrize("counts, tier, free, moves", [
    ([0, 0, 15], [NEAR, FAR, FAR], (1, 1), []),                       # below promote
    ([0, 0, 16], [NEAR, FAR, FAR], (1, 1), [(2, NEAR)]),              # room near
    ([0, 30, 30], [NEAR, FAR, FAR], (1, 1), [(1, NEAR)]),             # of equals the first
    ([4, 0, 16], [NEAR, FAR, FAR], (0, 1), [(0, FAR), (2, NEAR)]),    # one makes room
    ([5, 0, 99], [NEAR, FAR, FAR], (0, 1), []),                       # not cold enough
    ([4, 0, 16], [NEAR, FAR, FAR], (0, 0), []),                       # nowhere to go
    ([4, 3, 3, 16], [NEAR, NEAR, NEAR, FAR], (0, 1), [(1, FAR), (3, NEAR)]),
    ([99, 99], [NEAR, NEAR], (0, 9), []),
])
def test_decisions(counts, tier, free, moves):
    assert heat_of(counts).decide(np.array(tier), *free) == moves


def test_margin_and_pins():
    near = np.array([NEAR, NEAR, FAR])
    assert heat_of([8, 9, 16], demote=9).decide(near, 0, 1) == [(0, FAR), (2, NEAR)]
    assert heat_of([8, 9, 16], demote=9, margin=9).decide(near, 0, 1) == []
    pinned = [True, False, False]
    assert heat_of([0, 3, 16], pinned).decide(near, 0, 1) == [(1, FAR), (2, NEAR)]
    assert heat_of([0, 3, 16], [False, False, True]).decide(near, 0, 1) == []


def test_several_moves_and_rest():
    tier = np.array([NEAR, NEAR, NEAR, FAR, FAR, FAR])
    heat = heat_of([1, 0, 2, 50, 70, 60], moves=2, rest=2)
    assert heat.decide(tier, 1, 1) == [(4, NEAR), (1, FAR), (5, NEAR)]
    tier[[4, 5]], tier[1] = NEAR, FAR
    heat.counts[:] = [9, 99, 9, 0, 0, 0]
    heat.decay()
    heat.counts[:] = [9, 99, 9, 0, 0, 0]
    assert heat.decide(tier, 0, 2) == []  # pages 1, 4 and 5 rest
    heat.decay()
    heat.counts[:] = [9, 99, 9, 0, 0, 0]
    assert heat.decide(tier, 0, 2) == [(4, FAR), (1, NEAR)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 255), st.sampled_from(Tier), st.booleans()),
                min_size=1, max_size=20),
       st.integers(0, 3), st.integers(0, 3), st.integers(1, 4))
def test_decisions_can_be_carried_out(pages, near_free, far_free, most):
    counts, tier, pinned = (list(column) for column in zip(*pages, strict=True))
    heat = heat_of(counts, pinned, moves=most)
    moves = heat.decide(np.array(tier), near_free, far_free)
    free = {NEAR: near_free, FAR: far_free}
    assert sum(goal == NEAR for _, goal in moves) <= most
    for page, goal in moves:
        assert not pinned[page] and tier[page] != goal and free[goal] > 0
        free[goal] -= 1
        free[tier[page]] += 1
        tier[page] = goal
        assert counts[page] >= 16 if goal == NEAR else counts[page] <= 4
    assert len({page for page, _ in moves}) == len(moves)


def drive(requests, tiers, heat):
    """Run requests (pages) through heat and map; returns the moves by epoch."""
    history = []
    for page in requests:
        if heat.touch(int(page)):
            moves = heat.decide(tiers.tier, len(tiers.free[NEAR]), len(tiers.free[FAR]))
            heat.decay()
            for moved, goal in moves:
                tiers.begin(moved, goal)
                while tiers.copy():
                    pass
                tiers.finish()
            history.append(moves)
    return history


def test_a_hot_set_goes_near_and_stays():
    seed = 5
    rng = np.random.default_rng(seed)
    tiers = TierMap(np.array([NEAR] * 8 + [FAR] * 56), near_frames=8, far_frames=64, page_log2=6)
    heat = Heat(Policy(epoch_log2=9, moves=2), 64)
    hot = rng.choice(np.arange(8, 64), 6, replace=False)
    requests = np.where(rng.random(40 * 512) < 0.9, rng.choice(hot, 40 * 512),
                        rng.integers(0, 64, 40 * 512))
    history = drive(requests, tiers, heat)
    assert set(hot) <= set(np.flatnonzero(tiers.tier == NEAR)), f"seed {seed}"
    assert not any(history[10:]), f"seed {seed}"


def test_no_page_goes_back_and_forth_when_the_hot_set_does_not_fit():
    seed = 6
    rng = np.random.default_rng(seed)
    tiers = TierMap(np.array([NEAR] * 4 + [FAR] * 12), near_frames=4, far_frames=16, page_log2=6)
    heat = Heat(Policy(epoch_log2=9), 16)
    history = drive(rng.integers(0, 16, 60 * 512), tiers, heat)
    assert len(history) == 60 and not any(history), f"seed {seed}"


def test_a_new_hot_set_takes_over():
    seed = 7
    rng = np.random.default_rng(seed)
    tiers = TierMap(np.array([NEAR] * 4 + [FAR] * 12), near_frames=4, far_frames=16, page_log2=6)
    heat = Heat(Policy(epoch_log2=8, moves=4), 16)
    for hot in ([4, 5, 6], [9, 10, 11]):
        drive(rng.choice(hot, 20 * 256), tiers, heat)
        assert set(hot) <= set(np.flatnonzero(tiers.tier == NEAR)), f"seed {seed}"


@pytest.mark.parametrize("change, message", [
    ({"heat_bits": 1}, "heat_bits must be in 2..16, not 1"),
    ({"promote": 256}, "promote must be in 1..255"),
    ({"demote": 16}, "demote must be in 0..15, not 16"),
    ({"margin": 0}, "margin must be in 1..255"),
    ({"decay": 9}, "decay must be in 1..8"),
    ({"moves": 17}, "moves must be in 1..16"),
])
def test_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Policy(**change)


def test_heat_refused():
    with pytest.raises(TypeError, match="policy must be a Policy"):
        Heat(None, 4)
    with pytest.raises(ValueError, match=r"pinned must have shape \(4,\), not \(3,\)"):
        Heat(Policy(), 4, [False] * 3)
    with pytest.raises(ValueError, match="page must be in 0..3, not 4"):
        Heat(Policy(), 4).touch(4)
