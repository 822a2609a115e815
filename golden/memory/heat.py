"""How hot each page is, and which one moves when. ``docs/memory_link.md`` section 6. All ours.

Integers only; time is counted in requests, so the decisions do not depend on how fast the hardware
is.
"""

from dataclasses import dataclass

import numpy as np

from golden.checks import check_int, check_integers
from golden.memory.mapping import Tier

__all__ = ["Policy", "Heat"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a page moves.

    Parameters
    ----------
    heat_bits : int
        2..16: counters saturate at 2^heat_bits - 1.
    epoch_log2 : int
        0..24: an epoch is 2^epoch_log2 requests.
    decay : int
        1..heat_bits: bits that every counter is shifted right after an epoch.
    promote : int
        A far page at this heat or above may go near.
    demote : int
        A near page at this heat or below may make room; below ``promote``.
    margin : int
        A page makes room only for one that is hotter by this, 1 or more.
    rest : int
        0..255 epochs that a page stays after a move.
    moves : int
        1..16 pages at most that go near after one epoch.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.
    """

    heat_bits: int = 8
    epoch_log2: int = 12
    decay: int = 1
    promote: int = 16
    demote: int = 4
    margin: int = 8
    rest: int = 2
    moves: int = 1

    def __post_init__(self):
        check_int("heat_bits", self.heat_bits, 2, 16)
        check_int("epoch_log2", self.epoch_log2, 0, 24)
        check_int("decay", self.decay, 1, self.heat_bits)
        check_int("promote", self.promote, 1, self.heat_limit)
        check_int("demote", self.demote, 0, self.promote - 1)
        check_int("margin", self.margin, 1, self.heat_limit)
        check_int("rest", self.rest, 0, 255)
        check_int("moves", self.moves, 1, 16)

    @property
    def heat_limit(self):
        return (1 << self.heat_bits) - 1


class Heat:
    """Counters of all pages, and the decisions at the end of each epoch.

    Parameters
    ----------
    policy : Policy
    pages : int
    pinned : boolean array [pages] or None
        Pages that never move.

    Members
    -------
    counts : int64 array [pages]
    epoch : int
        Epochs that have ended.
    """

    def __init__(self, policy, pages, pinned=None):
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a Policy, not {policy!r}")
        self.policy = policy
        self.counts = np.zeros(check_int("pages", pages, 1, 1 << 40), np.int64)
        self.epoch = 0
        self._requests = 0
        self._pinned = np.zeros(pages, bool) if pinned is None else np.asarray(pinned, bool)
        if self._pinned.shape != (pages,):
            raise ValueError(f"pinned must have shape ({pages},), not {self._pinned.shape}")
        self._moved = np.full(pages, -self.policy.rest, np.int64)

    def touch(self, page):
        """Count one request to a page.

        Returns
        -------
        bool
            Whether the epoch ends with it; :meth:`decide`, if a move can be taken, then
            :meth:`decay` must follow before the next request.
        """
        page = check_int("page", page, 0, self.counts.size - 1)
        self.counts[page] = min(self.counts[page] + 1, self.policy.heat_limit)
        self._requests += 1
        return self._requests % (1 << self.policy.epoch_log2) == 0

    def decay(self):
        """End the epoch: shift every counter.

        Hardware may do it when a counter is next used, by the epochs since: shifts add up.
        """
        self.counts >>= self.policy.decay
        self.epoch += 1

    def decide(self, tier, near_free, far_free):
        """The moves after this epoch, in order.

        Up to ``moves`` times: the hottest far page (of equals the first) goes near if it has
        reached ``promote``. If no near frame is free, the coldest near page (of equals the first)
        goes far before it, provided it is at ``demote`` or below, and colder by ``margin``, and a
        far frame is free; else nothing moves any more. Pinned and resting pages are passed over.

        Parameters
        ----------
        tier : integer array [pages]
            Where each page lies, of :class:`Tier`.
        near_free, far_free : int
            Free frames.

        Returns
        -------
        list of (int, Tier)
            Page, and where it goes. The pages count as moved in this epoch.
        """
        policy, counts = self.policy, self.counts
        tier = check_integers("tier", tier, 0, max(Tier), (counts.size,)).copy()
        able = ~self._pinned & (self.epoch - self._moved >= policy.rest)
        moves = []
        for _ in range(policy.moves):
            far = np.flatnonzero(able & (tier == Tier.FAR) & (counts >= policy.promote))
            if not far.size:
                break
            hot = int(far[np.argmax(counts[far])])
            step = [(hot, Tier.NEAR)]
            if not near_free:
                near = np.flatnonzero(able & (tier == Tier.NEAR) & (counts <= policy.demote))
                cold = int(near[np.argmin(counts[near])]) if near.size else None
                if cold is None or counts[cold] + policy.margin > counts[hot] or not far_free:
                    break
                step.insert(0, (cold, Tier.FAR))
            for page, goal in step:
                change = 1 if goal == Tier.FAR else -1
                near_free, far_free = near_free + change, far_free - change
                tier[page], able[page], self._moved[page] = goal, False, self.epoch
            moves += step
        return moves
