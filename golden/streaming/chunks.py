"""Chunks of a prompt's KV cache and what each depends on: scheduling section 1.

Source: SparKV (arXiv 2604.21231) for the chunk and for the dependencies of ``Rule.PAPER``.
``Rule.STRICT`` adds what a real layer needs and the printed rule leaves out.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from golden.checks import check_int

__all__ = ["Rule", "Grid", "CHUNKS_MAX"]

CHUNKS_MAX = 1 << 16  # the chunk table's index is 16 bits wide


class Rule(IntEnum):
    """Which dependencies computing has; the numbers are those of the register.

    PAPER: (t-1, l, h) present, and (t, l-1, h) computed. STRICT: (t', l, h) present for all t' < t,
    and (t, l-1, h') computed for all heads h'. Under both, the first block and the last layer need
    no earlier block, and the first layer needs no layer below. Streaming needs nothing.
    """

    PAPER = 0
    STRICT = 1


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The chunks of one prompt: ``blocks`` token blocks x ``layers`` x ``heads`` KV heads.

    A chunk's id is ``(block * layers + layer) * heads + head``: the layer below is ``heads`` less,
    the block before is ``layers * heads`` less, and the heads of a layer are neighbours.

    Raises
    ------
    ValueError
        A size below 1, or more than ``CHUNKS_MAX`` chunks.
    """

    blocks: int
    layers: int
    heads: int

    def __post_init__(self):
        for name in ("blocks", "layers", "heads"):
            check_int(f"Grid.{name}", getattr(self, name), 1, CHUNKS_MAX)
        if self.count > CHUNKS_MAX:
            raise ValueError(
                f"Grid must have at most {CHUNKS_MAX} chunks, not "
                f"{self.blocks} * {self.layers} * {self.heads}"
            )

    @property
    def count(self):
        return self.blocks * self.layers * self.heads

    def chunk(self, block, layer, head):
        """The id of a chunk."""
        return (block * self.layers + layer) * self.heads + head

    def place(self, chunk):
        """(block, layer, head) of a chunk."""
        row, head = divmod(chunk, self.heads)
        block, layer = divmod(row, self.layers)
        return block, layer, head

    def needs_present(self, chunk, rule):
        """Chunks that must be present, by either route, before this one can be computed."""
        block, layer, _ = self.place(chunk)
        if block == 0 or layer == self.layers - 1:
            return ()
        step = self.layers * self.heads
        if rule == Rule.PAPER:
            return (chunk - step,)
        return tuple(range(chunk - block * step, chunk, step))

    def needs_computed(self, chunk, rule):
        """Chunks that must have been computed: a streamed chunk carries no hidden state."""
        _, layer, head = self.place(chunk)
        if layer == 0:
            return ()
        below = chunk - self.heads
        if rule == Rule.PAPER:
            return (below,)
        return tuple(range(below - head, below - head + self.heads))

    def helps_present(self, chunk, rule):
        """Chunks that need this one present: the inverse of ``needs_present``."""
        block, layer, _ = self.place(chunk)
        if block == self.blocks - 1 or layer == self.layers - 1:
            return ()
        step = self.layers * self.heads
        if rule == Rule.PAPER:
            return (chunk + step,)
        return tuple(range(chunk + step, self.count, step))

    def helps_computed(self, chunk, rule):
        """Chunks that need this one computed: the inverse of ``needs_computed``."""
        _, layer, head = self.place(chunk)
        if layer == self.layers - 1:
            return ()
        above = chunk + self.heads
        if rule == Rule.PAPER:
            return (above,)
        return tuple(range(above - head, above - head + self.heads))

    @cached_property
    def edges(self):
        """Both rules' dependencies as lists per chunk: ``edges[rule]`` is an ``Edges``."""
        return tuple(Edges(self, rule) for rule in Rule)


class Edges:
    """Dependencies of every chunk of a grid under one rule, looked up once."""

    def __init__(self, grid, rule):
        chunks = range(grid.count)
        self.needs_present = [grid.needs_present(chunk, rule) for chunk in chunks]
        self.needs_computed = [grid.needs_computed(chunk, rule) for chunk in chunks]
        self.helps_present = [grid.helps_present(chunk, rule) for chunk in chunks]
        self.helps_computed = [grid.helps_computed(chunk, rule) for chunk in chunks]
