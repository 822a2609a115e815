"""The golden page writer against addresses worked out byte by byte."""

import numpy as np
import pytest

from golden.streaming.writer import (
    Burst,
    Outcome,
    Placement,
    Window,
    outcome_of,
    plan_writes,
    store,
)
from hw.config import StreamingConfig

CONFIG = StreamingConfig(head_dim=64, bus_bytes=16, chunk_tokens=64, table_pages=8,
                         address_bits=16)
TABLE = [5, 3, 7, 0, 1, 6, 2, 4]
ALL = (Window(True, 0, (1 << 16) - 1),)
SIZE = 1 << 16


def make_placement(**fields):
    return Placement(**{
        "tokens": 20, "table_index": 1, "key_base": 0x1030, "value_base": 0x4050,
        "exponent_base": 0x8070, "page_stride": 0x600, "row_stride": 80, "exponent_stride": 0x90,
        "has_exponents": True, "window_mask": 1, **fields})


def make_rows(count, *, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 256, (count, CONFIG.head_dim), np.uint8),
            rng.integers(1, 255, (count, CONFIG.blocks), np.uint8))


def plan(placement, count, *, windows=ALL):
    return plan_writes(CONFIG, placement, TABLE, windows, *make_rows(count))


def written(plan):
    memory = bytearray(SIZE)
    store(memory, plan.bursts)
    return memory


def by_byte(placement, count):
    """The memory, from the formula for the address of each byte."""
    rows, exponents = make_rows(count)
    memory = bytearray(SIZE)
    for row in range(count):
        token, side = divmod(row, 2)
        page = TABLE[placement.table_index + token // 16]
        base = (placement.key_base, placement.value_base)[side]
        for byte in range(CONFIG.head_dim):
            memory[base + page * placement.page_stride + token % 16 * placement.row_stride
                   + byte] = rows[row, byte]
        if placement.has_exponents:
            for block in range(CONFIG.blocks):
                place = row % 32 * CONFIG.blocks + block
                memory[placement.exponent_base + page * placement.exponent_stride
                       + place] = exponents[row, block]
    return memory


@pytest.mark.parametrize("has_exponents", [False, True])
@pytest.mark.parametrize("tokens", [1, 15, 16, 17, 33])
def test_each_byte_lies_where_it_should(tokens, has_exponents):
    placement = make_placement(tokens=tokens, has_exponents=has_exponents)
    found = plan(placement, 2 * tokens)
    assert written(found) == by_byte(placement, 2 * tokens)
    assert outcome_of(found, refused=False, failed=False) == Outcome.DONE
    assert found.beats == 2 * tokens * 4 + has_exponents * sum(
        -(-min(16, tokens - first) * 4 // 16) for first in range(0, tokens, 16))


def test_no_burst_crosses_a_boundary_and_order_is_that_of_the_rows():
    found = plan(make_placement(tokens=64, key_base=0xFD0), 128)
    assert len(found.bursts) > 132
    assert all(burst.address // 4096 == (burst.address + len(burst.contents) - 1) // 4096
               for burst in found.bursts)
    rows, exponents = make_rows(128)
    joined = b"".join(burst.contents for burst in found.bursts)
    expected = b"".join(rows[at:at + 32].tobytes() + exponents[at:at + 32].tobytes()
                        for at in range(0, 128, 32))
    assert joined == expected


@pytest.mark.parametrize("count, pages", [(0, 0), (31, 0), (32, 1), (33, 1), (39, 1), (40, 2)])
def test_exponents_of_a_page_follow_its_last_row(count, pages):
    found = plan(make_placement(), count)
    at = [burst.address for burst in found.bursts if burst.address >= 0x8070]
    assert at == [0x8070 + 0x90 * page for page in TABLE[1:1 + pages]]
    assert found.missing == 40 - count
    expected = Outcome.REFUSED if count < 40 else Outcome.DONE
    assert outcome_of(found, refused=False, failed=False) == expected


def test_a_row_is_written_within_one_window_or_not_at_all():
    # Row 0 ends with the first window, row 2 begins with the second, row 4 lies over its end.
    base = 0x1030 + 3 * 0x600
    windows = (Window(True, base, base + 63), Window(True, base + 80, base + 80 + 64 + 78),
               Window(True, base + 160 + 63, SIZE - 1), Window(False, 0, SIZE - 1))
    found = plan(make_placement(tokens=3, window_mask=15, has_exponents=False), 6,
                 windows=windows)
    assert found.refused == (4,)
    assert outcome_of(found, refused=False, failed=True) == Outcome.WINDOW
    found = plan(make_placement(tokens=3, window_mask=13, has_exponents=False), 6,
                 windows=windows)
    assert found.refused == (2, 4)


@pytest.mark.parametrize("fields, refused, pages", [
    ({"window_mask": 0}, 40, 2),
    ({"table_index": 7}, 8, 1),        # the second page is not in the table
    ({"key_base": 0x1031}, 20, 0),     # not aligned
    ({"exponent_base": SIZE - 32}, 0, 2),   # past the end of the address space
    ({"exponent_base": SIZE - 32, "has_exponents": False}, 0, 0),
])
def test_what_must_not_be_written(fields, refused, pages):
    found = plan(make_placement(**fields), 40)
    assert (len(found.refused), len(found.refused_pages)) == (refused, pages)


def test_exponents_need_all_of_their_region():
    end = 0x8070 + 3 * 0x90 + 64
    for last, pages in ((end - 1, ()), (end - 2, (0,))):
        found = plan(make_placement(tokens=1), 2, windows=(Window(True, 0, last),))
        assert found.refused_pages == pages


def test_order_of_outcomes():
    found = plan(make_placement(), 40)
    for refused, failed, outcome in ((0, 0, Outcome.DONE), (0, 1, Outcome.WRITE),
                                     (1, 1, Outcome.REFUSED)):
        assert outcome_of(found, refused=bool(refused), failed=bool(failed)) == outcome


def test_refuses():
    with pytest.raises(ValueError, match=r"^tokens must be in 1\.\.64, not 0$"):
        plan(make_placement(tokens=0), 0)
    with pytest.raises(ValueError, match=r"^rows must be in 0\.\.40, not 41$"):
        plan(make_placement(), 41)
    with pytest.raises(ValueError, match=r"within the memory \(16\), not at 17$"):
        store(bytearray(16), [Burst(14, b"abc")])
