"""Partial state of one query head over some tokens: (m, l, ev, o), numerics sections 5 and 7."""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_int, check_integers
from hw.config import EMPTY_MAXIMUM, EXPONENT_BITS

__all__ = ["State"]

WORD_MIN, WORD_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """Softmax-weighted sums that were not normalised yet.

    Members
    -------
    maximum : int
        m, the running maximum in octaves; -2**31 when empty.
    weight_sum : int
        l, in units of 2**(m - 32), 0 .. 2**64 - 1; 0 exactly when empty.
    exponent : int
        ev, the largest V exponent seen, 0..254; 0 when empty.
    values : int64 [d]
        o, in units of 2**(m - 38 + ev - 127); 0 when empty.
    """

    maximum: int
    weight_sum: int
    exponent: int
    values: np.ndarray

    def __post_init__(self):
        check_int("State.maximum", self.maximum, EMPTY_MAXIMUM, -EMPTY_MAXIMUM - 1)
        check_int("State.weight_sum", self.weight_sum, 0, (1 << 64) - 1)
        check_int("State.exponent", self.exponent, 0, (1 << EXPONENT_BITS) - 1)
        values = check_integers("State.values", self.values, WORD_MIN, WORD_MAX, (None,))
        object.__setattr__(self, "values", values)

    @classmethod
    def empty(cls, head_dim):
        """The state over no tokens."""
        values = np.zeros(check_int("head_dim", head_dim, 1, 1 << 20), np.int64)
        return cls(maximum=EMPTY_MAXIMUM, weight_sum=0, exponent=0, values=values)

    @property
    def is_empty(self):
        return self.weight_sum == 0

    def __eq__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        return (
            (self.maximum, self.weight_sum, self.exponent)
            == (other.maximum, other.weight_sum, other.exponent)
            and np.array_equal(self.values, other.values)
        )
