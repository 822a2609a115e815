"""Places contexts in memory: regions, strides, block table, code lines."""

import random
from dataclasses import dataclass

from hw.config import PAGE_TOKENS, AttentionConfig
from sim.attention.operations import Context, Table

__all__ = ["Placement", "place"]


@dataclass(frozen=True)
class Placement:
    """Operations that enter the contexts, and the memory they need."""

    operations: list
    memory_size: int


def place(config: AttentionConfig, capacities, *, seed=None, row_gap=0, page_gap=0, base=0):
    """Place contexts 0, 1, ... with these capacities.

    Each context has its own pages, in the order of the block table or, with a ``seed``, shuffled.
    K rows, V rows and summaries of all contexts lie in three regions, one behind the other.

    Parameters
    ----------
    config : AttentionConfig
    capacities : list of int
        Tokens of each context.
    seed : int or None
        Shuffle the physical pages.
    row_gap, page_gap : int
        Rows left free behind each row, and behind each page: strides need not be dense.
    base : int
        First byte used.

    Raises
    ------
    ValueError
        The contexts do not fit the block table or the code memory.
    """
    row = config.row_bytes
    pages = [-(-capacity // PAGE_TOKENS) for capacity in capacities]
    total = sum(pages)
    if total > config.table_pages:
        raise ValueError(f"contexts must need at most {config.table_pages} pages, not {total}")
    line_pages = max(1, config.lanes // PAGE_TOKENS)
    row_stride = row * (1 + row_gap)
    page_stride = PAGE_TOKENS * row_stride + page_gap * row
    region = total * page_stride
    summary_stride = 2 * row * (1 + row_gap)
    start = -(-base // row) * row
    key, value = start, start + region
    summary = value + region
    code = -(-(summary + total * summary_stride) // 4096) * 4096
    physical = list(range(total))
    if seed is not None:
        random.Random(seed).shuffle(physical)

    operations = [Table(base=0, pages=physical)]
    table_base = tokens = code_address = 0
    code_address = code
    for index, (capacity, count) in enumerate(zip(capacities, pages, strict=True)):
        entry = {
            "length": 0, "capacity": capacity, "table_base": table_base, "weight_set": 0,
            "code_line": tokens // config.lanes, "code_address": code_address,
            "key_base": key, "key_limit": key + region,
            "key_page_stride": page_stride, "key_row_stride": row_stride,
            "value_base": value, "value_limit": value + region,
            "value_page_stride": page_stride, "value_row_stride": row_stride,
            "summary_base": summary, "summary_limit": summary + total * summary_stride,
            "summary_page_stride": summary_stride,
        }
        operations.append(Context(index=index, entry=entry))
        table_base += count
        tokens += -(-count // line_pages) * line_pages * PAGE_TOKENS
        code_address += -(-capacity // config.lanes) * config.code_line_bytes
    if config.code_source == "resident":
        code_address = code
        if tokens > config.resident_tokens:
            raise ValueError(f"contexts must need at most {config.resident_tokens} tokens of code "
                             f"memory, not {tokens}")
    size = 1 << max(12, (code_address - 1).bit_length())
    return Placement(operations, size)
