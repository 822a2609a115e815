"""The hardware's tables of the wire format equal those of the golden models."""

from struct import calcsize

import pytest

from golden.streaming import crc, layout, wire
from golden.streaming.elements import FLOATS as GOLDEN_FLOATS
from golden.streaming.errors import Reason as GoldenReason
from golden.streaming.layout import Format
from hw.config import WIRE_FORMATS
from hw.streaming.layouts import Reason
from hw.streaming.wire import (
    CRC_ONES,
    CRC_POLYNOMIAL,
    FLOATS,
    HEADER_FIELDS,
    MAGIC,
    ROWS_PER_PAGE,
    SCALE_BYTES,
    SMALLEST_PAGE_BYTES,
    UNIT_BYTES,
    VERSION,
    element_bits,
    has_scales,
    is_coded,
    largest_coded_page,
    row_bytes,
    side_bytes,
    table_bytes,
)


def test_reasons():
    assert {reason.name: reason.value for reason in Reason} == {
        reason.name: reason.value for reason in GoldenReason}


def test_constants():
    assert (UNIT_BYTES, ROWS_PER_PAGE, SCALE_BYTES, SMALLEST_PAGE_BYTES) == (
        layout.UNIT_BYTES, layout.ROWS_PER_PAGE, layout.SCALE_BYTES, layout.SMALLEST_PAGE_BYTES)
    assert (MAGIC, VERSION) == (wire.MAGIC, wire.VERSION)
    assert (CRC_POLYNOMIAL, CRC_ONES) == (crc.POLYNOMIAL, crc.INVERSION)


def test_header_fields():
    assert sum(HEADER_FIELDS.values()) == wire.HEADER_BYTES == calcsize("<IBBHIHHIHHH2xI28x") + 4
    values = range(1, 100)
    names = [name for name in HEADER_FIELDS if name not in ("ignored", "reserved", "header_crc")]
    header = wire.Header(*values[:len(names)]).pack()
    at = 0
    for name, size in HEADER_FIELDS.items():
        if name in names:
            value = int.from_bytes(header[at:at + size], "little")
            assert value == getattr(wire.Header(*values[:len(names)]), name), name
        at += size


def test_format_codes():
    assert {fmt.name: fmt.value for fmt in Format} == WIRE_FORMATS


@pytest.mark.parametrize("name", FLOATS)
def test_float_formats(name):
    ours, golden = FLOATS[name], GOLDEN_FLOATS[Format[name]]
    assert (ours.exponent_bits, ours.mantissa_bits, ours.has_infinity, ours.bits, ours.bias) == (
        golden.exponent_bits, golden.mantissa_bits, golden.has_infinity, golden.bits, golden.bias)


@pytest.mark.parametrize("name", WIRE_FORMATS)
@pytest.mark.parametrize("head_dim", [32, 64, 128, 256])
def test_sizes(name, head_dim):
    fmt = Format[name]
    assert element_bits(name) == fmt.element_bits
    assert (is_coded(name), has_scales(name)) == (fmt.is_coded, fmt.has_scales)
    assert table_bytes(name) == layout.table_bytes(fmt)
    for block in {32, head_dim}:
        assert side_bytes(name, head_dim // block) == layout.side_bytes(fmt, head_dim, block)
    if fmt.is_coded:
        pages = 7
        _, largest = layout.payload_bounds(fmt, 16 * pages, head_dim, 32)
        assert 2 * table_bytes(name) + pages * largest_coded_page(head_dim) == largest
    else:
        assert row_bytes(name, head_dim) == layout.row_bytes(fmt, head_dim)
