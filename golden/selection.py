"""Exact selection of the tokens a query reads: numerics section 10.

Source: DASH-KV (arXiv 2604.19351) for the three tiers, the percentile thresholds, and sinks and
recent tokens always in full. Budgets, distance limits, the minimum and the tie rule are ours.
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from golden.checks import check_int, check_integers
from golden.errors import BudgetError
from hw.config import PAGE_TOKENS, PERCENT_FRACTION_BITS

__all__ = [
    "COARSE",
    "FULL",
    "SKIPPED",
    "Choice",
    "Select",
    "Selection",
    "Threshold",
    "forced_full",
    "select",
    "thresholds",
]

SKIPPED, COARSE, FULL = 0, 1, 2

COUNT_MAX = (1 << 40) - 1  # wider than any field of a command


class Select(IntEnum):
    """How a query chooses its tokens; the numbers are those of a command."""

    DENSE = 0
    BUDGET = 1
    PERCENTILE = 2
    DISTANCE = 3


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a query asks for.

    Parameters
    ----------
    select : Select
    full, coarse : int
        BUDGET: counts of tokens. PERCENTILE: shares of the visible tokens in 1/65536, 0..65536.
        DISTANCE: exclusive limits (full below ``full``, coarse below ``coarse``). Unused by DENSE.
    sink, recent : int
        Tokens at the start and at the end of the visible ones that are always full.
    minimum : int
        Tokens that are full at least, forced ones included.
    summaries : bool
        Skipped tokens count through the summaries of their pages.
    """

    select: Select = Select.DENSE
    full: int = 0
    coarse: int = 0
    sink: int = 0
    recent: int = 0
    minimum: int = 0
    summaries: bool = False

    def __post_init__(self):
        if not isinstance(self.select, Select):
            raise TypeError(f"Selection.select must be a Select, not {self.select!r}")
        if not isinstance(self.summaries, bool):
            raise TypeError(f"Selection.summaries must be a bool, not {self.summaries!r}")
        percent = self.select == Select.PERCENTILE
        share_max = 1 << PERCENT_FRACTION_BITS
        for field in fields(self):
            if field.name in ("select", "summaries"):
                continue
            high = share_max if percent and field.name in ("full", "coarse") else COUNT_MAX
            check_int(f"Selection.{field.name}", getattr(self, field.name), 0, high)


class Threshold(NamedTuple):
    """Admits distances below ``bin``, and the ``ties`` most recent tokens at ``bin``."""

    bin: int
    ties: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """What a selection chose.

    Members
    -------
    classes : uint8 [visible]
        ``SKIPPED``, ``COARSE`` or ``FULL`` per position.
    full, selected : Threshold
        Over the tokens that are not forced; (0, 0) for DENSE.
    """

    classes: np.ndarray
    full: Threshold
    selected: Threshold

    def count(self, kind):
        """Tokens of a class."""
        return int((self.classes == kind).sum())


def forced_full(visible, selection):
    """Positions that are full whatever their distance: bool [visible].

    Sinks, the recent window and, with summaries, the unfinished page, which has no summary.
    """
    position = np.arange(check_int("visible", visible, 1, COUNT_MAX))
    forced = (position < selection.sink) | (position >= visible - selection.recent)
    if selection.summaries:
        forced |= position >= PAGE_TOKENS * (visible // PAGE_TOKENS)
    return forced


def _search(cumulative, count):
    """The threshold that admits exactly ``count`` tokens, or all of them if there are fewer."""
    count = min(count, int(cumulative[-1]))
    if count <= 0:
        return Threshold(0, 0)
    bin_ = int(np.searchsorted(cumulative, count))  # the first with cumulative[bin] >= count
    return Threshold(bin_, count - (int(cumulative[bin_ - 1]) if bin_ else 0))


def _with_all_ties(threshold, histogram):
    if threshold.ties == 0:
        return threshold
    return Threshold(threshold.bin, int(histogram[threshold.bin]))


def _admitted(threshold, cumulative):
    """Tokens that a threshold admits; a distance limit may lie past the last bin."""
    below = int(cumulative[min(threshold.bin, len(cumulative)) - 1]) if threshold.bin else 0
    return below + threshold.ties


def thresholds(histogram, visible, selection):
    """Thresholds of the full tokens and of the selected ones, from a distance histogram.

    Parameters
    ----------
    histogram : integer array [bins]
        Counts of the tokens that are not forced, per distance.
    visible : int
        N, forced tokens included.
    selection : Selection
        Any but DENSE.

    Returns
    -------
    (full, selected) : Threshold, Threshold

    Raises
    ------
    BudgetError
        A budget above ``visible``.
    """
    histogram = check_integers("histogram", histogram, 0, COUNT_MAX, (None,))
    cumulative = np.cumsum(histogram)
    others = int(cumulative[-1])
    visible = check_int("visible", visible, max(others, 1), COUNT_MAX)
    forced = visible - others
    match selection.select:
        case Select.BUDGET:
            if selection.full + selection.coarse > visible:
                raise BudgetError(
                    f"Selection.full + Selection.coarse must be at most the visible tokens "
                    f"({visible}), not {selection.full} + {selection.coarse}"
                )
            wanted = max(selection.full - forced, 0)
            full = _search(cumulative, wanted)
            selected = _search(cumulative, wanted + selection.coarse)
        case Select.PERCENTILE:
            wanted = max((selection.full * visible >> PERCENT_FRACTION_BITS) - forced, 0)
            more = selection.coarse * visible >> PERCENT_FRACTION_BITS
            full = _with_all_ties(_search(cumulative, wanted), histogram)
            selected = _with_all_ties(_search(cumulative, wanted + more), histogram)
        case Select.DISTANCE:
            full, selected = Threshold(selection.full, 0), Threshold(selection.coarse, 0)
        case _:
            raise ValueError(f"Selection.select must not be {selection.select!r} here")
    least = min(others, max(selection.minimum - forced, 0))
    if _admitted(full, cumulative) < least:
        full = _search(cumulative, least)
    return full, selected


def _within(distances, candidates, threshold):
    """Candidates that a threshold admits; rank 0 at its bin is the most recent candidate."""
    ties = candidates & (distances == threshold.bin)
    rank = np.cumsum(ties[::-1])[::-1] - 1
    return candidates & (distances < threshold.bin) | ties & (rank < threshold.ties)


def select(distances, visible, selection, bins):
    """Class of every visible position.

    Parameters
    ----------
    distances : integer array [n], n >= visible
        Distance per position; ignored (and may be ``None``) for DENSE.
    visible : int
        N: positions 0..N-1 take part.
    selection : Selection
    bins : int
        Number of distances, ``AttentionConfig.distance_bins``.

    Returns
    -------
    Choice

    Raises
    ------
    BudgetError
        A budget above ``visible``.
    """
    if not isinstance(selection, Selection):
        raise TypeError(f"selection must be a Selection, not {selection!r}")
    visible = check_int("visible", visible, 1, COUNT_MAX)
    if selection.select == Select.DENSE:
        none = Threshold(0, 0)
        return Choice(classes=np.full(visible, FULL, np.uint8), full=none, selected=none)
    bins = check_int("bins", bins, 1, COUNT_MAX)
    distances = check_integers("distances", distances, 0, bins - 1, (None,))
    if len(distances) < visible:
        raise ValueError(
            f"distances must cover the visible tokens ({visible}), not {len(distances)} positions"
        )
    distances = distances[:visible]
    forced = forced_full(visible, selection)
    histogram = np.bincount(distances[~forced], minlength=bins)
    full, selected = thresholds(histogram, visible, selection)
    is_full = forced | _within(distances, ~forced, full)
    is_coarse = ~is_full & _within(distances, ~forced, selected)
    classes = np.where(is_full, FULL, np.where(is_coarse, COARSE, SKIPPED)).astype(np.uint8)
    return Choice(classes=classes, full=full, selected=selected)
