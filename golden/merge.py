"""Merging attention over disjoint tokens: by partial state, or by logits (numerics section 7).

Sources: partial softmax states as in FlashInfer and vLLM; logits and value rows as in HybridGen
(arXiv 2604.18529), where the far side sends logits and the V rows of its selected tokens.
"""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_integers, check_shape
from golden.pipeline import Items, Kind, accumulate
from golden.state import State

__all__ = ["Side", "merge", "merge_logits"]

SHIFT_MAX = 63
WORD = 1 << 64


def merge(a, b):
    """State over the union of two disjoint sets of tokens.

    Both are shifted down (floor) to the larger maximum and exponent, and added in 64-bit words
    (which states over 2**22 tokens in all cannot overflow; beyond, sums wrap). Commutative; exact
    when one side is empty; otherwise exact up to the floor of the shifts.

    Parameters
    ----------
    a, b : State
        With equal head_dim.
    """
    for name, state in (("a", a), ("b", b)):
        if not isinstance(state, State):
            raise TypeError(f"{name} must be a State, not {state!r}")
    if len(a.values) != len(b.values):
        raise ValueError(
            f"states must have equal head_dim, not {len(a.values)} and {len(b.values)}"
        )
    if a.is_empty or b.is_empty:
        return b if a.is_empty else a
    maximum, exponent = max(a.maximum, b.maximum), max(a.exponent, b.exponent)
    weight_sum, values = 0, np.zeros(len(a.values), np.int64)
    for state in (a, b):
        down = maximum - state.maximum
        weight_sum += state.weight_sum >> min(down, SHIFT_MAX)
        values = values + (state.values >> min(down + exponent - state.exponent, SHIFT_MAX))
    return State(maximum=maximum, weight_sum=weight_sum % WORD, exponent=exponent, values=values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """What one side knows of its tokens: logits and value rows, per item.

    Members
    -------
    items : Items
    logits : int32 [n]
    rows : int8 [n, d]
        Decoded value rows.
    exponents : integer array [n, blocks]
    """

    items: Items
    logits: np.ndarray
    rows: np.ndarray
    exponents: np.ndarray

    def __post_init__(self):
        if not isinstance(self.items, Items):
            raise TypeError(f"Side.items must be Items, not {self.items!r}")
        count = len(self.items)
        check_integers("Side.logits", self.logits, -(1 << 31), (1 << 31) - 1, (count,))
        check_shape("Side.rows", np.asarray(self.rows), (count, None))
        check_shape("Side.exponents", np.asarray(self.exponents), (count, None))


def merge_logits(near, far):
    """State over the items of two sides, in the normative order of their union.

    Equal, bit for bit, to one pipeline that reads all of these items itself.

    Raises
    ------
    ValueError
        A token or a summary belongs to both sides.
    """
    for name, side in (("near", near), ("far", far)):
        if not isinstance(side, Side):
            raise TypeError(f"{name} must be a Side, not {side!r}")
    positions = np.concatenate([near.items.positions, far.items.positions])
    kinds = np.concatenate([near.items.kinds, far.items.kinds])
    keys = 2 * positions - (kinds == Kind.SUMMARY)
    if len(np.unique(keys)) != len(keys):
        raise ValueError("sides must be disjoint, not share positions or summaries")
    order = np.argsort(-keys)
    weights = np.concatenate([near.items.weights, far.items.weights])[order]
    logits = np.concatenate([near.logits, far.logits])[order]
    rows = np.concatenate([near.rows, far.rows])[order]
    exponents = np.concatenate([near.exponents, far.exponents])[order]
    return accumulate(logits, weights, rows, exponents)
