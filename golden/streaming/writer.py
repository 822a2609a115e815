"""Where the rows of a chunk lie, and what became of them: the golden twin of the page writer.

The rows of a chunk come in order K, V of token 0, K, V of token 1 and so on. Token t lies in page
``table[table_index + t // 16]``, slot t % 16. Bursts are listed in the order in which the hardware
asks for them, so that a bus trace equals this list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from golden.checks import check_int, check_integers
from hw.config import PAGE_TOKENS

__all__ = ["Burst", "Outcome", "Placement", "Plan", "Window", "outcome_of", "plan_writes", "store"]

BOUNDARY_BYTES = 4096  # no AXI burst crosses a multiple of it


class Outcome(IntEnum):
    """What became of a chunk's rows; the lowest number that applies is told."""

    DONE = 0
    REFUSED = 1  # the frame was refused, or cut: rows are missing or wrong
    WINDOW = 4
    WRITE = 5


class Window(NamedTuple):
    """Bytes ``base``..``last``, both included, that may be written, if it is ``valid``."""

    valid: bool
    base: int
    last: int


@dataclass(frozen=True)
class Placement:
    """Where a chunk goes: the fields of the hardware's ``placement``; addresses in bytes."""

    tokens: int
    table_index: int
    key_base: int
    value_base: int
    exponent_base: int
    page_stride: int
    row_stride: int
    exponent_stride: int
    has_exponents: bool
    window_mask: int

    def row_address(self, table: Sequence[int], row: int) -> int | None:
        """Address of row ``row``, or None if the block table has no entry for its page."""
        token, is_value = divmod(row, 2)
        entry = self.table_index + token // PAGE_TOKENS
        if entry >= len(table):
            return None
        base = self.value_base if is_value else self.key_base
        return base + table[entry] * self.page_stride + token % PAGE_TOKENS * self.row_stride

    def exponent_address(self, table: Sequence[int], page: int) -> int | None:
        """Address of the exponents of the chunk's page ``page``, or None likewise."""
        entry = self.table_index + page
        if entry >= len(table):
            return None
        return self.exponent_base + table[entry] * self.exponent_stride


@dataclass(frozen=True)
class Burst:
    """A burst on the bus: ``contents`` from ``address`` on, bytes past its end not enabled."""

    address: int
    contents: bytes

    def beats(self, bus_bytes: int) -> int:
        return -(-len(self.contents) // bus_bytes)


@dataclass(frozen=True)
class Plan:
    """What a chunk writes.

    Parameters
    ----------
    bursts : tuple of Burst
    beats : int
        Of all bursts.
    refused : tuple of int
        Rows that were not written, because they lie outside the windows granted.
    refused_pages : tuple of int
        Pages whose exponents were not, likewise.
    missing : int
        Rows of the placement that did not come.
    """

    bursts: tuple[Burst, ...]
    beats: int
    refused: tuple[int, ...]
    refused_pages: tuple[int, ...]
    missing: int


def _is_granted(address, size, placement, windows, bus_bytes, address_bits):
    """Whether a region is aligned to the bus and lies within one window, as a whole."""
    if address is None or address % bus_bytes or address + size > 1 << address_bits:
        return False
    return any(window.valid and placement.window_mask >> number & 1
               and window.base <= address and address + size - 1 <= window.last
               for number, window in enumerate(windows))


def _cut(address, contents):
    """Bursts of a region, none of which crosses a boundary."""
    first = min(len(contents), BOUNDARY_BYTES - address % BOUNDARY_BYTES)
    yield Burst(address, contents[:first])
    if first < len(contents):
        yield Burst(address + first, contents[first:])


def plan_writes(config, placement: Placement, table: Sequence[int], windows: Sequence[Window],
                rows, exponents) -> Plan:
    """What is written of the rows that came.

    Each row is written behind the one before. The exponents of a page are written after its last
    row, 32 * blocks bytes in wire order of which those of tokens that the chunk has; those of a
    page whose rows did not all come are not. A row, or a page's exponents, that do not lie in one
    window granted, or not at a multiple of the bus's width, are left out as a whole.

    Parameters
    ----------
    config : StreamingConfig
    placement : Placement
    table : sequence of int
        The block table, all ``config.table_pages`` entries.
    windows : sequence of Window
    rows : uint8 [n, head_dim]
        Stored rows, K and V in turn, n at most 2 * tokens; fewer if the frame was cut short.
    exponents : uint8 [n, blocks]

    Returns
    -------
    Plan
    """
    total = 2 * check_int("tokens", placement.tokens, 1, config.chunk_tokens)
    rows = check_integers("rows", rows, 0, 255, (None, config.head_dim)).astype(np.uint8)
    count = check_int("rows", len(rows), 0, total)
    exponents = check_integers("exponents", exponents, 0, 255,
                               (count, config.blocks)).astype(np.uint8)
    limits = placement, windows, config.bus_bytes, config.address_bits
    bursts, refused, refused_pages = [], [], []
    page_rows = 2 * PAGE_TOKENS
    for row in range(count):
        address = placement.row_address(table, row)
        if _is_granted(address, config.head_dim, *limits):
            bursts += _cut(address, rows[row].tobytes())
        else:
            refused.append(row)
        page, end = row // page_rows, row + 1
        if placement.has_exponents and (end % page_rows == 0 or end == total):
            address = placement.exponent_address(table, page)
            if _is_granted(address, page_rows * config.blocks, *limits):
                bursts += _cut(address, exponents[page * page_rows:end].tobytes())
            else:
                refused_pages.append(page)
    return Plan(tuple(bursts), sum(burst.beats(config.bus_bytes) for burst in bursts),
                tuple(refused), tuple(refused_pages), total - count)


def outcome_of(plan: Plan, *, refused: bool, failed: bool) -> Outcome:
    """The outcome of a chunk.

    Parameters
    ----------
    plan : Plan
    refused : bool
        The frame was refused, whether or not rows are missing.
    failed : bool
        The answer to one of the bursts was an error.
    """
    if refused or plan.missing:
        return Outcome.REFUSED
    if plan.refused or plan.refused_pages:
        return Outcome.WINDOW
    return Outcome.WRITE if failed else Outcome.DONE


def store(memory: bytearray, bursts: Iterable[Burst]) -> None:
    """Write bursts into a memory that begins at address 0."""
    for burst in bursts:
        end = burst.address + len(burst.contents)
        if end > len(memory):
            raise ValueError(f"burst must end within the memory ({len(memory)}), not at {end!r}")
        memory[burst.address:end] = burst.contents
