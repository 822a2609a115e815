"""Copies against a byte at a time, and what is refused."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.streaming.chain import FENCE, LINKED, pack_descriptor, walk
from golden.streaming.copy import Copy, CopyError, CopyKind, Window, find_fault, run_copy

SIZE = 1 << 13
HALF = SIZE // 2
BITS = 13
SIZES = {"bus_bytes": 8, "burst_bytes": 64}
GRANT = {"address_bits": BITS, "windows": [Window(HALF, SIZE - 1)]}
CONTENTS = bytes((n * 37 + n // 251) % 256 for n in range(SIZE))


@st.composite
def copies(draw):
    """Commands from the lower half to the upper."""
    rows = draw(st.integers(1, 6))
    row_bytes = draw(st.integers(1, 300))
    stride = draw(st.integers(row_bytes, row_bytes + 60))
    return Copy(
        source=draw(st.integers(0, HALF - 6 * 360)), destination=HALF + draw(st.integers(0, 900)),
        row_bytes=row_bytes, rows=rows, source_stride=draw(st.integers(0, 360)),
        destination_stride=stride)


@given(copies())
def test_every_byte_of_every_row(command):
    memory, expected = bytearray(CONTENTS), bytearray(CONTENTS)
    for row in range(command.rows):
        for byte in range(command.row_bytes):
            expected[command.destination + row * command.destination_stride + byte] = CONTENTS[
                command.source + row * command.source_stride + byte]
    result = run_copy(memory, command, **GRANT, **SIZES)
    assert result.error == CopyError.NONE
    assert memory == expected
    for bursts in (result.reads, result.writes):
        assert sum(size for _, size in bursts) == command.rows * command.row_bytes


@given(copies(), st.integers(0, HALF), st.integers(0, 200))
def test_nothing_is_written_from_a_failed_read_on(command, low, size):
    memory = bytearray(CONTENTS)
    result = run_copy(memory, command, **GRANT, **SIZES,
                      read_fails=lambda address: low <= address < low + size)
    whole = bytearray(CONTENTS)
    complete = run_copy(whole, command, **GRANT, **SIZES)
    assert result.writes == complete.writes[:len(result.writes)]
    written = {byte for address, count in result.writes for byte in range(address, address + count)}
    assert all(memory[byte] == (whole if byte in written else CONTENTS)[byte]
               for byte in range(SIZE))
    failed = any(low <= address - address % 8 < low + size for address, _ in result.reads)
    assert result.error == (CopyError.READ if failed else CopyError.NONE)


@given(copies(), st.integers(HALF, SIZE), st.integers(0, 200))
def test_a_failed_write_does_not_keep_the_rest_from_being_written(command, low, size):
    memory, whole = bytearray(CONTENTS), bytearray(CONTENTS)
    result = run_copy(memory, command, **GRANT, **SIZES,
                      write_fails=lambda address: low <= address < low + size)
    assert result.writes == run_copy(whole, command, **GRANT, **SIZES).writes
    lost = [burst for burst in result.writes if low <= burst[0] < low + size]
    for address, count in lost:
        whole[address:address + count] = CONTENTS[address:address + count]
    assert memory == whole
    assert result.error == (CopyError.WRITE if lost else CopyError.NONE)


@given(st.integers(0, HALF - 300), st.integers(1, 300), st.integers(0, HALF))
def test_feed(source, size, failed):
    memory = bytearray(CONTENTS)
    command = Copy(kind=CopyKind.FEED, source=source, row_bytes=size)
    result = run_copy(memory, command, **GRANT, **SIZES,
                      read_fails=lambda address: address <= failed < address + 64)
    want = CONTENTS[source:source + size]
    if result.error == CopyError.NONE:
        assert result.feed == want
    else:
        assert result.error == CopyError.READ
        fed = result.feed or b""
        assert want.startswith(fed)
        assert len(fed) < size
        assert len(fed) % 8 == 0
    assert memory == CONTENTS


GOOD = Copy(source=100, row_bytes=50, destination=HALF, rows=2, source_stride=60,
            destination_stride=50)


@pytest.mark.parametrize("error, change", [
    ("KIND", {"kind": 2}),
    ("KIND", {"kind": CopyKind.FEED, "row_bytes": 0}),
    ("ZERO", {"row_bytes": 0}),
    ("ZERO", {"rows": 0, "window_mask": 0}),
    ("OVERLAP", {"source": HALF - 109, "window_mask": 0}),
    ("OVERLAP", {"source": HALF + 99}),
    ("OVERLAP", {"destination_stride": 49}),
    ("ADDRESS", {"source": SIZE - 109}),
    ("ADDRESS", {"destination": SIZE - 99}),
    ("WINDOW", {"destination": HALF - 1}),
    ("WINDOW", {"window_mask": 2}),
    ("NONE", {"source": HALF - 110}),
    ("NONE", {"source": HALF + 100}),
    ("NONE", {"source": SIZE - 110}),
    ("NONE", {"destination": SIZE - 100}),
    ("NONE", {"rows": 1, "destination_stride": 0}),
    ("NONE", {"kind": CopyKind.FEED, "rows": 1, "window_mask": 0, "destination": 100}),
])
def test_the_lowest_fault_is_told(error, change):
    command = dataclasses.replace(GOOD, **change)
    assert find_fault(command, **GRANT) == CopyError[error]
    if error not in ("NONE",):
        memory = bytearray(CONTENTS)
        result = run_copy(memory, command, **GRANT, **SIZES)
        assert (result.error, result.writes, result.feed) == (CopyError[error], [], None)
        assert memory == CONTENTS


def test_one_window_must_hold_all_of_the_destination():
    halves = [Window(HALF, HALF + 49), Window(HALF + 50, SIZE - 1), None]
    assert find_fault(dataclasses.replace(GOOD, window_mask=7), address_bits=BITS,
                      windows=halves) == CopyError.WINDOW


def make_chain(*commands, start=0, step=64):
    memory = bytearray(4096)
    for index, command in enumerate(commands):
        at = start + index * step
        following = at + step if index + 1 < len(commands) else None
        memory[at:at + 64] = pack_descriptor(command, following=following, fence=index % 2 == 1)
    return memory


@given(st.lists(copies(), min_size=1, max_size=5), st.sampled_from([64, 128, 640]))
def test_chain_comes_back(commands, step):
    found = walk(make_chain(*commands, step=step), 0, limit=5, tag=9, address_bits=BITS)
    assert found == [(command, CopyError.NONE) for command in commands]


def test_chains_that_are_refused():
    def errors(memory, address=0, limit=4, **options):
        return [(command.tag, error.name) for command, error in walk(
            memory, address, limit=limit, tag=9, address_bits=BITS, **options)]

    commands = [dataclasses.replace(GOOD, tag=tag) for tag in range(3)]
    memory = make_chain(*commands)
    good = [(tag, "NONE") for tag in range(3)]
    assert errors(memory) == good
    assert errors(memory, limit=2) == [*good[:2], (9, "CYCLE")]
    assert errors(memory, limit=0) == [(9, "CYCLE")]
    assert errors(memory, address=32) == [(9, "ADDRESS")]
    assert errors(memory, address=SIZE) == [(9, "ADDRESS")]
    assert errors(memory, read_fails=lambda address: address == 64) == [good[0], (9, "FETCH")]
    memory[65] |= 4
    assert errors(memory) == [good[0], (1, "KIND")]
    memory[65] = LINKED | FENCE
    memory[64] = 2
    assert errors(memory) == [good[0], (1, "KIND")]
    memory[64] = 0
    memory[64 + 16 + 2] = 1
    assert errors(memory) == [good[0], (1, "ADDRESS"), good[2]]
    memory[8] = 1
    assert errors(memory) == [good[0], (9, "ADDRESS")]
    memory[8] = 0   # the first links to itself
    assert errors(memory) == [good[0]] * 4 + [(9, "CYCLE")]
