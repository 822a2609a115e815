"""Rates that vary with time: of a link, or of a device that others load too. Scheduling section 7.

Integers throughout, so that a run is reproduced exactly: a rate is an amount per tick in 1/65536.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np

from golden.checks import check_int, check_integers

__all__ = ["RATE_ONE", "Trace", "constant", "step", "fading", "outage", "walk"]

RATE_ONE = 1 << 16


class Trace:
    """A piecewise constant rate; the last piece lasts for ever.

    Parameters
    ----------
    starts : integer sequence
        Ticks at which the pieces begin; rising, the first 0.
    rates : integer sequence
        Amount per tick in 1/65536, 0 or more.
    """

    def __init__(self, starts, rates):
        starts = check_integers("starts", starts, 0, 1 << 48, (None,))
        rates = check_integers("rates", rates, 0, 1 << 48, starts.shape)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any():
            raise ValueError(f"starts must rise from 0, not {starts[:4]!r}...")
        self.starts, self.rates = starts.tolist(), rates.tolist()
        self._done = [0]
        for (begin, end), rate in zip(pairwise(self.starts), self.rates, strict=False):
            self._done.append(self._done[-1] + (end - begin) * rate)

    def done(self, time):
        """The amount, in 1/65536, that passes before ``time``."""
        piece = bisect_right(self.starts, time) - 1
        return self._done[piece] + (time - self.starts[piece]) * self.rates[piece]

    def finish(self, start, amount):
        """First tick by which ``amount`` has passed since ``start``; ``None``: never."""
        check_int("amount", amount, 1, 1 << 48)
        target = self.done(start) + amount * RATE_ONE
        piece = bisect_left(self._done, target) - 1  # the last that begins before the target
        if self.rates[piece] == 0:
            return None
        return self.starts[piece] - (self._done[piece] - target) // self.rates[piece]


def _trace(step_ticks, levels, lengths=None):
    """A trace of levels in amounts per tick; each lasts ``step_ticks``, or as ``lengths`` says."""
    if lengths is None:
        lengths = np.full(len(levels), step_ticks)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return Trace(starts, np.rint(np.asarray(levels, float) * RATE_ONE).astype(np.int64))


def constant(level):
    """The same rate for ever."""
    return _trace(1, [level])


def step(level, *, at, factor):
    """``level`` until tick ``at``, then ``factor`` times as much."""
    return _trace(None, [level, level * factor], [at, 1])


def outage(level, *, at, length):
    """Nothing from tick ``at`` on, for ``length`` ticks."""
    return _trace(None, [level, 0, level], [at, length, 1])


def fading(level, seed, *, step_ticks, depth=0.8, steps=400):
    """Fast fading: independent levels between ``1 - depth`` and ``1 + depth`` of the mean."""
    rng = np.random.default_rng(seed)
    return _trace(step_ticks, level * rng.uniform(1 - depth, 1 + depth, steps))


def walk(level, seed, *, step_ticks, spread=0.3, memory=0.9, lowest=0.1, highest=2.5, steps=400):
    """Like a recorded mobile trace: the level's logarithm walks at random, drawn to the mean.

    ``spread`` is the standard deviation of a step, ``memory`` the share of the deviation that
    stays; levels are clipped to ``lowest`` .. ``highest`` times the mean, and their mean is
    ``level``.
    """
    rng = np.random.default_rng(seed)
    deviation, levels = 0.0, np.empty(steps)
    for index in range(steps):
        deviation = memory * deviation + rng.normal(0, spread)
        levels[index] = np.clip(np.exp(deviation), lowest, highest)
    return _trace(step_ticks, level * levels / levels.mean())
