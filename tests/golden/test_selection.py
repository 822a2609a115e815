"""Selection against a model that sorts, and its invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.errors import BudgetError
from golden.selection import (
    COARSE,
    FULL,
    SKIPPED,
    Select,
    Selection,
    forced_full,
    select,
)

BINS = 17


@st.composite
def queries(draw):
    visible = draw(st.integers(1, 70))
    distances = np.array(draw(st.lists(st.integers(0, BINS - 1), min_size=visible,
                                       max_size=visible)))
    kind = draw(st.sampled_from(list(Select)))
    share = 1 << 16
    limit = {Select.PERCENTILE: share, Select.DISTANCE: BINS + 3}.get(kind, visible)
    full = draw(st.integers(0, limit))
    coarse = draw(st.integers(0, limit - full if kind == Select.BUDGET else limit))
    small = st.integers(0, visible + 2)
    return distances, visible, Selection(
        select=kind, full=full, coarse=coarse, sink=draw(small), recent=draw(small),
        minimum=draw(small), summaries=draw(st.booleans()),
    )


def by_sorting(distances, visible, selection):
    """Classes from a sorted list of (distance, age): no histogram, no thresholds."""
    forced = [
        p < selection.sink or p >= visible - selection.recent
        or (selection.summaries and p >= 16 * (visible // 16))
        for p in range(visible)
    ]
    if selection.select == Select.DENSE:
        return [FULL] * visible
    ranked = sorted((int(distances[p]), -p) for p in range(visible) if not forced[p])
    forced_count = visible - len(ranked)

    def first(count, all_ties=False):
        taken = ranked[: max(count, 0)]
        if all_ties and taken:
            taken = [pair for pair in ranked if pair[0] <= taken[-1][0]]
        return {-age for _, age in taken}

    if selection.select == Select.BUDGET:
        full = first(selection.full - forced_count)
        selected = first(max(selection.full - forced_count, 0) + selection.coarse)
    elif selection.select == Select.PERCENTILE:
        wanted = (selection.full * visible >> 16) - forced_count
        full = first(wanted, all_ties=True)
        more = selection.coarse * visible >> 16
        selected = first(max(wanted, 0) + more, all_ties=True)
    else:
        full = {-age for distance, age in ranked if distance < selection.full}
        selected = {-age for distance, age in ranked if distance < selection.coarse}
    least = min(len(ranked), max(selection.minimum - forced_count, 0))
    if len(full) < least:
        full = first(least)
    return [
        FULL if forced[p] or p in full else COARSE if p in selected else SKIPPED
        for p in range(visible)
    ]


@given(queries())
def test_classes_equal_sorting(query):
    distances, visible, selection = query
    choice = select(distances, visible, selection, BINS)
    assert choice.classes.tolist() == by_sorting(distances, visible, selection)


@given(queries())
def test_counts_are_exact(query):
    distances, visible, selection = query
    choice = select(distances, visible, selection, BINS)
    forced = int(forced_full(visible, selection).sum())
    full, coarse = choice.count(FULL), choice.count(COARSE)
    assert full >= min(max(selection.minimum, forced), visible)
    if selection.select == Select.DENSE:
        assert full == visible
    if selection.select == Select.BUDGET:
        assert full == max(selection.full, forced, min(selection.minimum, visible))
        everything = max(selection.full, forced) + selection.coarse
        assert full + coarse == max(full, min(everything, visible))


@given(st.integers(1, 60), st.integers(0, 60))
def test_ties_go_to_the_most_recent(visible, wanted):
    wanted = min(wanted, visible)
    classes = select(np.full(visible, 5), visible,
                     Selection(select=Select.BUDGET, full=wanted), BINS).classes
    assert classes.tolist() == [SKIPPED] * (visible - wanted) + [FULL] * wanted


def test_thresholds_of_a_known_case():
    distances = np.array([3, 1, 3, 3, 0, 9])
    choice = select(distances, 6, Selection(select=Select.BUDGET, full=3, coarse=2), BINS)
    assert choice.full == (3, 1) and choice.selected == (3, 3)
    assert choice.classes.tolist() == [1, 2, 1, 2, 2, 0]


def test_positions_past_the_visible_length_take_no_part():
    distances = np.array([5, 4, 0, 0])
    choice = select(distances, 2, Selection(select=Select.BUDGET, full=1), BINS)
    assert choice.classes.tolist() == [SKIPPED, FULL]


def test_budget_above_the_visible_count_names_the_values():
    with pytest.raises(BudgetError) as caught:
        select(np.zeros(4, int), 4, Selection(select=Select.BUDGET, full=3, coarse=2), BINS)
    assert "at most the visible tokens (4), not 3 + 2" in str(caught.value)


@pytest.mark.parametrize("call, error, text", [
    (lambda: Selection(select=1), TypeError, "Selection.select must be a Select, not 1"),
    (lambda: Selection(sink=-1), ValueError, "Selection.sink must be in 0.."),
    (lambda: Selection(recent=1.0), TypeError, "Selection.recent must be an integer, not 1.0"),
    (lambda: Selection(summaries=1), TypeError, "Selection.summaries must be a bool, not 1"),
    (lambda: Selection(select=Select.PERCENTILE, full=65537), ValueError,
     "Selection.full must be in 0..65536, not 65537"),
    (lambda: select(np.zeros(2, int), 3, Selection(select=Select.BUDGET), 4), ValueError,
     "distances must cover the visible tokens (3), not 2 positions"),
    (lambda: select(np.full(3, 4), 3, Selection(select=Select.BUDGET), 4), ValueError,
     "distances must be in 0..3"),
    (lambda: select(None, 0, Selection(), 4), ValueError, "visible must be in 1.."),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
