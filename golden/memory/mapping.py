"""Two tiers: which page lies where, and what moving one means. ``docs/memory_link.md`` section 6.

Source: HybridGen (arXiv 2604.18529) for the placement: K rows near, since all are read; V rows far,
since only selected ones are. Tables, frames and the order of a move are ours.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from golden.checks import check_int, check_integers
from golden.memory.image import LINE_BYTES

__all__ = ["Tier", "Kind", "Placement", "initial_tiers", "Move", "TierMap"]


class Tier(IntEnum):
    """NEAR: the local memory; FAR: behind the CXL link."""

    NEAR = 0
    FAR = 1


class Kind(IntEnum):
    """What a page holds."""

    OTHER = 0
    KEYS = 1
    VALUES = 2


class Placement(Enum):
    """Where pages begin: the policies that are compared."""

    SEMANTIC = "semantic"        # keys near, everything else far
    SWAPPED = "swapped"          # values near, everything else far
    INTERLEAVED = "interleaved"  # even pages near, odd ones far
    ALL_FAR = "all_far"


def initial_tiers(kinds, placement, near_frames):
    """The tier that each page begins in.

    Parameters
    ----------
    kinds : integer array [pages]
        Of :class:`Kind`.
    placement : Placement
    near_frames : int
        Pages that may begin near; the first ones that want to.

    Returns
    -------
    int64 array [pages]
        Of :class:`Tier`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of this form.
    """
    kinds = check_integers("kinds", kinds, 0, max(Kind), (None,))
    placement = Placement(placement)
    near_frames = check_int("near_frames", near_frames, 0, 1 << 40)
    wish = {
        Placement.SEMANTIC: kinds == Kind.KEYS,
        Placement.SWAPPED: kinds == Kind.VALUES,
        Placement.INTERLEAVED: np.arange(kinds.size) % 2 == 0,
        Placement.ALL_FAR: np.zeros(kinds.size, bool),
    }[placement]
    near = wish & (np.cumsum(wish) <= near_frames)
    return np.where(near, Tier.NEAR, Tier.FAR)


@dataclass(frozen=True)
class Move:
    """A page on its way.

    Parameters
    ----------
    page : int
    source, target : (Tier, int)
        Tier and frame.
    """

    page: int
    source: tuple[Tier, int]
    target: tuple[Tier, int]


class TierMap:
    """The page table of the tiers, and one move at a time.

    Until a move finishes the page lies at its source: reads go there. A write goes to the source
    and, if its line has been copied already, to the target too, so that the copy never is stale.

    Parameters
    ----------
    tiers : integer array [pages]
        Where each page begins; pages of a tier take its frames in rising order.
    near_frames, far_frames : int
        Frames of each tier; more than ``pages`` together, since a move needs a free one.
    page_log2 : int
        Page size in bytes, 6..21.

    Members
    -------
    tier, frame : int64 arrays [pages]
        The table.
    free : dict of Tier to deque of int
        Free frames, in the order in which they will be taken.
    move : Move or None
        Under way.
    copied : int
        Lines of it that have been copied, from the page's first on.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of this form.
    """

    def __init__(self, tiers, *, near_frames, far_frames, page_log2=12):
        self.tier = check_integers("tiers", tiers, 0, max(Tier), (None,))
        self.page_log2 = check_int("page_log2", page_log2, 6, 21)
        frames = {
            Tier.NEAR: check_int("near_frames", near_frames, 0, 1 << 40),
            Tier.FAR: check_int("far_frames", far_frames, 0, 1 << 40),
        }
        if sum(frames.values()) <= self.tier.size:
            raise ValueError(f"near_frames and far_frames must be more than {self.tier.size} "
                             f"together, not {sum(frames.values())}")
        self.frame = np.zeros_like(self.tier)
        self.free = {}
        for tier, count in frames.items():
            here = self.tier == tier
            used = int(here.sum())
            if used > count:
                raise ValueError(f"tiers must put at most {count} pages {tier.name}, not {used}")
            self.frame[here] = np.arange(used)
            self.free[tier] = deque(range(used, count))
        self.move = None
        self.copied = 0

    @property
    def pages(self):
        return self.tier.size

    @property
    def page_bytes(self):
        return 1 << self.page_log2

    def locate(self, address):
        """Where device addresses are read.

        Parameters
        ----------
        address : integer array
            Bytes, 0..pages * page_bytes - 1.

        Returns
        -------
        (int64 array, int64 array)
            Tier, and byte address in the tier.

        Raises
        ------
        TypeError, ValueError
            If an address is no integer, or out of range.
        """
        address = check_integers("address", address, 0, self.pages * self.page_bytes - 1)
        page, within = address >> self.page_log2, address & self.page_bytes - 1
        return self.tier[page], self.frame[page] << self.page_log2 | within

    def writes(self, address):
        """Where a write to one device address must go: a list of one or two (Tier, address)."""
        tier, place = self.locate(address)
        places = [(Tier(int(tier)), int(place))]
        page, within = address >> self.page_log2, address & self.page_bytes - 1
        if self.move and self.move.page == page and within // LINE_BYTES < self.copied:
            tier, frame = self.move.target
            places.append((tier, frame << self.page_log2 | within))
        return places

    def begin(self, page, tier):
        """Start to move a page to a tier.

        Raises
        ------
        TypeError, ValueError
            If there is no such page, it is there already, no frame is free, or a move is under way.
        """
        page = check_int("page", page, 0, self.pages - 1)
        tier = Tier(tier)
        if self.move:
            raise ValueError(f"page {self.move.page} must arrive before {page} is moved")
        if self.tier[page] == tier:
            raise ValueError(f"page {page} must not be in {tier.name} already")
        if not self.free[tier]:
            raise ValueError(f"{tier.name} must have a free frame to take page {page}")
        source = Tier(int(self.tier[page])), int(self.frame[page])
        self.move, self.copied = Move(page, source, (tier, self.free[tier].popleft())), 0

    def copy(self):
        """The next line of the move: ((Tier, address) to read, (Tier, address) to write).

        The caller copies it before anything else touches the line; ``None`` if all are copied.
        """
        if self.move is None or self.copied == self.page_bytes // LINE_BYTES:
            return None
        places = [(tier, (frame << self.page_log2) + self.copied * LINE_BYTES)
                  for tier, frame in (self.move.source, self.move.target)]
        self.copied += 1
        return tuple(places)

    def finish(self):
        """The page lies at its target from now on; its old frame is free."""
        if self.move is None or self.copied < self.page_bytes // LINE_BYTES:
            raise ValueError("a move must be under way and all its lines copied before it ends")
        move, self.move = self.move, None
        self.tier[move.page], self.frame[move.page] = move.target
        self.free[move.source[0]].append(move.source[1])

    def cancel(self):
        """Give up the move, as a reset does: the page stays, and nothing is lost."""
        if self.move:
            tier, frame = self.move.target
            self.free[tier].appendleft(frame)
            self.move = None
