"""A prompt to bring: the schedule with all that is in memory and on the link for it."""

import struct
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from golden.streaming.layout import Format
from golden.streaming.policy import NEVER, Route
from golden.streaming.wire import Chunk, decode_frame, encode_frame
from golden.streaming.writer import Placement, Window, plan_writes, store
from hw.config import PAGE_TOKENS, StreamingConfig
from hw.streaming.record import RECORD_BYTES, SCHEDULE_BYTES

__all__ = ["Prompt"]

_RECORD = struct.Struct("<QQQIIIIHHHHHH12x")
_ITEM = struct.Struct("<HBBIII")


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompt:
    """A job with its data.

    In memory lie the chunk records, the schedule, then pages: those of K of each layer and head,
    those of V, and the exponents. All layers and heads share the block table.

    Parameters
    ----------
    config : StreamingConfig
    schedule : Schedule
    costs : Costs
    policy : Policy
    k, v : float [chunks, tokens, head_dim]
    formats : sequence of Format
        Wire format of each chunk.
    table : sequence of int
        Physical page of each page of the prompt.
    deadlines : list of int or None
    first_id : int
    tick_log2 : int
    """

    config: StreamingConfig
    schedule: object
    costs: object
    policy: object
    k: np.ndarray
    v: np.ndarray
    formats: tuple
    table: tuple
    deadlines: list | None = None
    first_id: int = 0
    tick_log2: int = 0
    has_exponents: bool = True
    records_base: int = field(default=0)

    @property
    def grid(self):
        return self.schedule.grid

    @property
    def tokens(self):
        return self.k.shape[1]

    @property
    def schedule_base(self):
        return _aligned(self.records_base + RECORD_BYTES * self.grid.count)

    @property
    def pages_base(self):
        return _aligned(self.schedule_base + SCHEDULE_BYTES * self.grid.count, 4096)

    @property
    def end(self):
        return self._exponent_base(self.grid.layers * self.grid.heads)

    @cached_property
    def _pages(self):
        return max(self.table) + 1

    @property
    def _page_bytes(self):
        return PAGE_TOKENS * self.config.head_dim

    @property
    def _exponent_bytes(self):
        return 2 * PAGE_TOKENS * self.config.blocks

    def _exponent_base(self, column):
        rows = self.pages_base + 2 * self.grid.layers * self.grid.heads * self._pages * (
            self._page_bytes)
        return rows + column * self._pages * _aligned(self._exponent_bytes)

    def chunk(self, index):
        """What the receiver awaits."""
        block, layer, head = self.grid.place(index)
        return Chunk(
            chunk_id=(self.first_id + index) % (1 << 32), layer=layer, kv_head=head,
            token_block=block, tokens=self.tokens, head_dim=self.config.head_dim,
            exponent_block=self.config.exponent_block)

    def frame(self, index):
        """The chunk's packet."""
        return encode_frame(
            self.chunk(index), self.formats[index], self.k[index], self.v[index])

    def placement(self, index):
        block, layer, head = self.grid.place(index)
        column = layer * self.grid.heads + head
        region = self._pages * self._page_bytes
        columns = self.grid.layers * self.grid.heads
        return Placement(
            tokens=self.tokens, table_index=block * -(-self.tokens // PAGE_TOKENS),
            key_base=self.pages_base + column * region,
            value_base=self.pages_base + (columns + column) * region,
            exponent_base=self._exponent_base(column), page_stride=self._page_bytes,
            row_stride=self.config.head_dim, exponent_stride=_aligned(self._exponent_bytes),
            has_exponents=self.has_exponents, window_mask=1)

    @property
    def windows(self):
        """One window, over all pages."""
        return [Window(True, self.pages_base, self.end - 1)]

    def record(self, index):
        """Bytes of a chunk's record."""
        p, chunk = self.placement(index), self.chunk(index)
        return _RECORD.pack(
            p.key_base, p.value_base, p.exponent_base, p.page_stride, p.exponent_stride,
            p.table_index, chunk.token_block, chunk.layer, chunk.kv_head, p.tokens, p.row_stride,
            p.window_mask, int(p.has_exponents))

    def schedule_items(self):
        """Bytes of the schedule."""
        stage_of = self.schedule.stage_of()
        items = b""
        for route, chunks in ((Route.STREAM, self.schedule.stream_list),
                              (Route.COMPUTE, self.schedule.compute_list)):
            for chunk in chunks:
                deadline = NEVER if self.deadlines is None else self.deadlines[chunk]
                items += _ITEM.pack(chunk, stage_of[chunk], route, int(self.costs.stream[chunk]),
                                    int(self.costs.compute[chunk]), deadline)
        return items

    def image(self, size, rng):
        """Memory before the job: what is loaded, and random bytes elsewhere."""
        memory = bytearray(rng.randbytes(size))
        for index in range(self.grid.count):
            start = self.records_base + RECORD_BYTES * index
            memory[start:start + RECORD_BYTES] = self.record(index)
        items = self.schedule_items()
        memory[self.schedule_base:self.schedule_base + len(items)] = items
        return memory

    def write(self, memory, index):
        """Write a chunk into a memory as the engine does when its frame is accepted."""
        decoded = decode_frame(self.frame(index), self.chunk(index), set(Format))
        table = [*self.table, *[0] * (self.config.table_pages - len(self.table))]
        plan = plan_writes(
            self.config, self.placement(index), table, self.windows,
            decoded.rows.reshape(-1, self.config.head_dim),
            decoded.exponents.reshape(-1, self.config.blocks))
        store(memory, plan.bursts)
        return plan

    def registers(self):
        """Values of the job's registers."""
        policy = {name: int(value) for name, value in vars(self.policy).items()}
        return {
            "records": self.records_base, "schedule": self.schedule_base,
            "first_id": self.first_id, "job_chunks": self.grid.count,
            "blocks": self.grid.blocks, "layers": self.grid.layers, "heads": self.grid.heads,
            "stages": self.schedule.stages, "tick_log2": self.tick_log2,
            "rule": int(self.schedule.rule), **policy,
        }


def _aligned(value, unit=64):
    return -(-value // unit) * unit
