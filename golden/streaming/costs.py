"""What a chunk costs on each route: scheduling section 2.

Source: SparKV (arXiv 2604.21231) for the form: bytes over bandwidth plus decoding; attention over
the active blocks plus the dense part; the last layer costs only its K/V projection. The sizes of
the model and of the device are parameters and their values here are ours.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from math import ceil

import numpy as np

from golden.checks import check_int, check_integers
from golden.streaming.chunks import Grid

__all__ = ["COST_BITS", "Costs", "CostModel"]

COST_BITS = 24  # a predicted time in ticks: 1 .. 2^24 - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """Predicted ticks per chunk and route, as the chunk table holds them.

    Parameters
    ----------
    grid : Grid
    stream, compute : integer array [grid.count]
        Ticks, 1..2^24-1.
    wire_bytes : integer array [grid.count] or None
        Bytes of the frame; ``None``: not known, and not needed to plan.
    """

    grid: Grid
    stream: np.ndarray
    compute: np.ndarray
    wire_bytes: np.ndarray | None = None

    def __post_init__(self):
        shape = (self.grid.count,)
        for name in ("stream", "compute"):
            checked = check_integers(f"Costs.{name}", getattr(self, name), 1,
                                     (1 << COST_BITS) - 1, shape)
            object.__setattr__(self, name, checked)
        if self.wire_bytes is not None:
            checked = check_integers("Costs.wire_bytes", self.wire_bytes, 1, 1 << 32, shape)
            object.__setattr__(self, "wire_bytes", checked)

    @cached_property
    def ticks(self):
        """(stream, compute) as lists of int: what the models that go chunk by chunk read."""
        return self.stream.tolist(), self.compute.tolist()


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Costs from the sizes of a model, a device and a link.

    Parameters
    ----------
    block_tokens : int
        Tokens of a chunk.
    head_dim, group, hidden, feed_forward : int
        Of the model: dimension of a head, query heads per KV head, width, width of the MLP.
    dense_flops, attention_flops : float
        Operations per second that the device reaches: its peak times its utilisation.
    tick_seconds : float
        Length of a tick.
    decode_ticks : int
        From the last byte on the link to the last write response.
    """

    block_tokens: int = 1024
    head_dim: int = 128
    group: int = 4
    hidden: int = 4096
    feed_forward: int = 14336
    dense_flops: float = 15e12
    attention_flops: float = 6e12
    tick_seconds: float = 1e-6
    decode_ticks: int = 2

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int:
                check_int(f"CostModel.{field.name}", value, field.name != "decode_ticks", 1 << 32)
            elif not value > 0:
                raise ValueError(f"CostModel.{field.name} must be positive, not {value!r}")

    def wire_bytes(self, bits):
        """Bytes of a chunk at this many wire bits per element (an array gives an array)."""
        elements = 2 * self.block_tokens * self.head_dim
        return np.ceil(np.asarray(bits, float) * elements / 8).astype(np.int64)

    def stream_ticks(self, wire_bytes, bits_per_second):
        """``8 * wire_bytes / bandwidth + t_decode``."""
        seconds = 8 * np.asarray(wire_bytes) / bits_per_second
        return np.ceil(seconds / self.tick_seconds).astype(np.int64) + self.decode_ticks

    def compute_ticks(self, grid, active):
        """Attention over ``active`` earlier blocks and half the own one, plus a head's dense part.

        The last layer costs only the projection of its keys and values.
        """
        active = np.asarray(active, float)
        tokens, heads = self.block_tokens, grid.heads
        projection = 2 * tokens * self.hidden * 2 * self.head_dim
        weights = 2 * self.hidden * (self.hidden + heads * self.head_dim)
        weights += 3 * self.hidden * self.feed_forward
        dense = 2 * tokens * weights / heads
        attention = 4 * self.group * tokens * tokens * self.head_dim * (active + 0.5)
        layer = np.arange(grid.count) // grid.heads % grid.layers
        last = layer == grid.layers - 1
        seconds = np.where(
            last,
            projection / self.dense_flops,
            dense / self.dense_flops + attention / self.attention_flops,
        )
        return np.maximum(1, np.ceil(seconds / self.tick_seconds)).astype(np.int64)

    def costs(self, grid, *, bits, active, bits_per_second):
        """``Costs`` of a grid: wire bits and active blocks, per chunk or for all, and a link."""
        bits = np.broadcast_to(bits, (grid.count,))
        active = np.broadcast_to(active, (grid.count,))
        wire_bytes = self.wire_bytes(bits)
        longest = ceil(wire_bytes.max() * 8 / bits_per_second / self.tick_seconds)
        if longest + self.decode_ticks >= 1 << COST_BITS:
            raise ValueError(
                f"tick_seconds must be long enough for {COST_BITS}-bit times, not "
                f"{self.tick_seconds!r}: a chunk takes {longest} ticks"
            )
        return Costs(
            grid=grid,
            stream=self.stream_ticks(wire_bytes, bits_per_second),
            compute=self.compute_ticks(grid, active),
            wire_bytes=wire_bytes,
        )
