"""Payload of a chunk: encoder and decoder of every format.

Source: sections 2 to 4 of ``docs/wire_format.md``. Rows are arrays [tokens, 2, d]: K then V.
"""

import numpy as np

from golden import mxint
from golden.checks import check_reals, check_shape
from golden.streaming import huffman
from golden.streaming.elements import BF16, FLOATS, pack_nibbles, quantise_rows, unpack_nibbles
from golden.streaming.errors import FrameError, Reason
from golden.streaming.layout import (
    DIRECTORY_BYTES,
    ROWS_PER_PAGE,
    SIDE_OF_SCALES,
    SMALLEST_PAGE_BYTES,
    SUB_STREAM_ALIGN,
    SUB_STREAMS,
    Format,
    check_geometry,
    coded_page_bytes,
    max_sub_stream_bits,
    padded,
    page_bytes,
    pages,
    payload_bounds,
    row_bytes,
    side_bytes,
    table_bytes,
)
from hw.config import ELEMENT_FRACTION_BITS, EXPONENT_BIAS, EXPONENT_NAN, PAGE_TOKENS

__all__ = ["encode_payload", "decode_payload", "encode_symbols", "assemble_pages"]


def _paged(rows, tokens):
    """Arrays of rows [tokens, 2, ...] by page, [pages, 32, ...], absent rows zero."""
    full = np.zeros((pages(tokens) * PAGE_TOKENS, *rows.shape[1:]), rows.dtype)
    full[:tokens] = rows
    return full.reshape(pages(tokens), ROWS_PER_PAGE, *rows.shape[2:])


def _unpaged(rows, tokens):
    return rows.reshape(-1, 2, *rows.shape[2:])[:tokens]


def _as_bytes(codes):
    """The last axis as little-endian bytes."""
    return np.ascontiguousarray(codes).view(np.uint8)


def encode_payload(fmt, k, v, *, exponent_block, lengths=None):
    """K and V of a chunk as a sender puts them on the wire.

    Parameters
    ----------
    fmt : Format
    k, v : real arrays [tokens, d]
        Finite.
    exponent_block : int
        Elements that share an exponent in the stored rows.
    lengths : pair of integer arrays [2**b], optional
        Code lengths for K and V of an entropy-coded format; by default the optimal ones.

    Returns
    -------
    bytes

    Raises
    ------
    TypeError, ValueError
        Not a format, not such rows, or a symbol without a code.
    """
    fmt = Format(fmt)
    k, v = check_reals("k", k), check_reals("v", v)
    check_shape("k", k, (None, None))
    check_shape("v", v, k.shape)
    tokens, head_dim = k.shape
    if not tokens:
        raise ValueError("k must have at least one token, not none")
    check_geometry(head_dim, exponent_block)
    x = np.stack([k, v], axis=1)
    if fmt.is_coded:
        scales, q = quantise_rows(x, fmt.element_bits)
        symbols = q + (1 << (fmt.element_bits - 1))
        return encode_symbols(fmt, scales, symbols, lengths=lengths)
    if fmt.is_float:
        side, rows = np.zeros((tokens, 2, 0), np.uint8), FLOATS[fmt].pack(x)
    elif fmt == Format.MXINT8:
        mantissas, side = mxint.quantise(x, exponent_block)
        rows = mxint.pack_row(mantissas)
    else:
        scales, q = quantise_rows(x, fmt.element_bits)
        side = scales[..., np.newaxis]
        rows = q.astype(np.int8) if fmt == Format.INT8 else pack_nibbles(q)
    return assemble_pages(fmt, _as_bytes(side), _as_bytes(rows), exponent_block)


def assemble_pages(fmt, side, rows, exponent_block):
    """Pages of a fixed-rate format from raw bytes, whatever they mean.

    Parameters
    ----------
    fmt : Format
    side : uint8 [tokens, 2, bytes of a row's side information]
    rows : uint8 [tokens, 2, bytes of a row]
    exponent_block : int

    Returns
    -------
    bytes
    """
    tokens, head_dim = len(rows), 8 * rows.shape[-1] // fmt.element_bits
    side, rows = (_paged(part, tokens).reshape(pages(tokens), -1) for part in (side, rows))
    gap = side_bytes(fmt, head_dim, exponent_block) - side.shape[1]
    side = np.pad(side, ((0, 0), (0, gap)))
    size, _ = payload_bounds(fmt, tokens, head_dim, exponent_block)
    # The absent rows of the last page come last: cutting them off leaves its padding, zero.
    return np.concatenate([side, rows], axis=1).tobytes()[:size]


def _sub_streams(rows):
    """Rows by page [pages, 32, d] as sub-streams [pages, 8, 4d]."""
    count, _, head_dim = rows.shape
    lanes = rows.reshape(count, ROWS_PER_PAGE, head_dim // SUB_STREAMS, SUB_STREAMS)
    return np.moveaxis(lanes, -1, 1).reshape(count, SUB_STREAMS, -1)


def _from_sub_streams(lanes, head_dim):
    """Inverse of :func:`_sub_streams`."""
    count = len(lanes)
    rows = lanes.reshape(count, SUB_STREAMS, ROWS_PER_PAGE, head_dim // SUB_STREAMS)
    return np.moveaxis(rows, 1, -1).reshape(count, ROWS_PER_PAGE, head_dim)


def encode_symbols(fmt, scales, symbols, *, lengths=None):
    """Payload of an entropy-coded format from quantised rows.

    Parameters
    ----------
    fmt : Format
    scales : uint16 [tokens, 2]
        Codes of bfloat16.
    symbols : integer array [tokens, 2, d]
        0..2**b - 1.
    lengths : pair of integer arrays [2**b], optional
        As of :func:`encode_payload`.

    Returns
    -------
    bytes
    """
    tokens, _, head_dim = symbols.shape
    if lengths is None:
        alphabet = 1 << fmt.element_bits
        lengths = [
            huffman.code_lengths(np.bincount(symbols[:, side].ravel(), minlength=alphabet))
            for side in (0, 1)
        ]
    bits, words = np.zeros(symbols.shape, np.int64), np.zeros(symbols.shape, np.int64)
    for side, table in enumerate(lengths):
        bits[:, side] = np.asarray(table)[symbols[:, side]]
        words[:, side] = huffman.code_words(table)[symbols[:, side]]
    if not bits.all():
        raise ValueError("lengths must give each symbol that occurs a code")

    bits, words = (_sub_streams(_paged(part, tokens)) for part in (bits, words))
    directory = bits.sum(axis=-1)
    sizes = coded_page_bytes(directory)
    tables = b"".join(
        huffman.pack_table(table).tobytes().ljust(table_bytes(fmt), b"\0") for table in lengths
    )
    starts = len(tables) + np.cumsum(sizes) - sizes
    size = len(tables) + int(sizes.sum())
    within = np.cumsum(bits, axis=-1) - bits
    first = 8 * _sub_stream_starts(starts, directory)
    payload = huffman.write_codes(words, bits, first[..., np.newaxis] + within, size)
    payload[: len(tables)] = np.frombuffer(tables, np.uint8)
    heads = np.concatenate(
        [_as_bytes(_paged(scales.astype("<u2"), tokens)), _as_bytes(directory.astype("<u2"))],
        axis=1,
    )
    payload[starts[:, np.newaxis] + np.arange(heads.shape[1])] = heads
    return payload.tobytes()


def _sub_stream_starts(page_starts, directory):
    """Bytes [pages, 8] where sub-streams begin, from the bytes where their pages do."""
    sizes = padded(-(-directory // 8), SUB_STREAM_ALIGN)
    offsets = np.cumsum(sizes, axis=-1) - sizes
    return page_starts[:, np.newaxis] + SIDE_OF_SCALES + DIRECTORY_BYTES + offsets


def decode_payload(fmt, payload, *, tokens, head_dim, exponent_block):
    """Elements of a chunk, exactly: ``significand * 2**exponent``.

    Parameters
    ----------
    fmt : Format
    payload : bytes
        Of a length within :func:`golden.streaming.layout.payload_bounds`.
    tokens, head_dim, exponent_block : int

    Returns
    -------
    significands, exponents : int64 [tokens, 2, d]

    Raises
    ------
    FrameError
        With its offset counted from the start of the payload.
    """
    data = np.frombuffer(payload, np.uint8)
    if fmt.is_coded:
        symbols, side, side_starts = _read_coded(fmt, data, tokens, head_dim)
        q = symbols.astype(np.int64) - (1 << (fmt.element_bits - 1))
        return _scaled(q, side, side_starts)
    full = page_bytes(fmt, head_dim, exponent_block)
    whole = np.zeros((pages(tokens), full), np.uint8)
    whole.reshape(-1)[: data.size] = data
    starts = full * np.arange(pages(tokens))
    side_size, row_size = side_bytes(fmt, head_dim, exponent_block), row_bytes(fmt, head_dim)
    side = whole[:, :side_size]
    rows = whole[:, side_size : side_size + ROWS_PER_PAGE * row_size]
    rows = _unpaged(rows.reshape(len(rows), ROWS_PER_PAGE, row_size), tokens)
    if fmt.is_float:
        codes = np.ascontiguousarray(rows).view(FLOATS[fmt].dtype)
        bad = ~FLOATS[fmt].is_finite(codes).all(axis=-1)
        _refuse_rows(bad, starts + side_size, row_size)
        return FLOATS[fmt].unpack(codes)
    if fmt == Format.MXINT8:
        return _stored(rows, side, starts, exponent_block)
    q = rows.view(np.int8).astype(np.int64) if fmt == Format.INT8 else unpack_nibbles(rows)
    return _scaled(q, side, starts)


def _refuse_rows(bad, page_starts, stride):
    """NONFINITE at the first bad row; [tokens, 2], ``stride`` bytes apart within a page."""
    if bad.any():
        page, row = divmod(int(np.flatnonzero(bad)[0]), ROWS_PER_PAGE)
        raise FrameError(Reason.NONFINITE, int(page_starts[page]) + row * stride)


def _scaled(q, side, page_starts):
    """Elements q times their row's scale, from the side blocks [pages, 64]."""
    tokens = len(q)
    scales = _unpaged(np.ascontiguousarray(side).view("<u2")[..., np.newaxis], tokens)
    _refuse_rows((scales[..., 0] > BF16.largest), page_starts, scales.itemsize)
    significand, exponent = BF16.unpack(scales)
    return q * significand, np.broadcast_to(exponent, q.shape)


def _stored(rows, side, page_starts, exponent_block):
    """Elements of stored rows, from the side blocks."""
    tokens, _, head_dim = rows.shape
    blocks = head_dim // exponent_block
    exponents = side[:, : ROWS_PER_PAGE * blocks].reshape(len(side), ROWS_PER_PAGE, blocks)
    exponents = _unpaged(exponents, tokens)
    _refuse_rows((exponents == EXPONENT_NAN).any(axis=-1), page_starts, blocks)
    scale = exponents.astype(np.int64) - EXPONENT_BIAS - ELEMENT_FRACTION_BITS
    return mxint.unpack_row(rows).astype(np.int64), np.repeat(scale, exponent_block, axis=-1)


def _read_tables(fmt, data):
    tables = []
    for side in (0, 1):
        start = side * table_bytes(fmt)
        packed = data[start : start + (1 << fmt.element_bits) // 2]
        lengths = huffman.unpack_table(packed)
        if not huffman.is_complete(lengths):
            raise FrameError(Reason.TABLE, start)
        tables.append(huffman.decode_table(lengths))
    return tables


def _read_directory(fmt, data, count, head_dim):
    """Where pages begin [pages] and how many bits their sub-streams have [pages, 8]."""
    starts, directory = np.zeros(count, np.int64), np.zeros((count, SUB_STREAMS), np.int64)
    position = 2 * table_bytes(fmt)
    for page in range(count):
        at = position + SIDE_OF_SCALES
        lengths = data[at : at + DIRECTORY_BYTES].view("<u2").astype(np.int64)
        left = data.size - position - int(coded_page_bytes(lengths))
        last = page == count - 1
        fits = left == 0 if last else left >= SMALLEST_PAGE_BYTES
        if not fits or (lengths > max_sub_stream_bits(head_dim)).any():
            raise FrameError(Reason.DIRECTORY, at)
        starts[page], directory[page] = position, lengths
        position = data.size - left
    return starts, directory


def _read_coded(fmt, data, tokens, head_dim):
    """Symbols uint8 [tokens, 2, d], side blocks [pages, 64] and the bytes where those begin."""
    tables = _read_tables(fmt, data)
    page_starts, directory = _read_directory(fmt, data, pages(tokens), head_dim)
    starts = _sub_stream_starts(page_starts, directory)
    per_row = head_dim // SUB_STREAMS
    table_of_step = np.arange(ROWS_PER_PAGE * per_row) // per_row % 2
    lanes, used = huffman.read_codes(data, 8 * starts, table_of_step.tolist(), tables)
    total = used[..., -1]
    rest = tokens % PAGE_TOKENS
    if rest:
        total[-1] = used[-1, :, 2 * rest * per_row - 1]
    for reason, bad in (
        (Reason.OVERRUN, total > directory), (Reason.UNDERRUN, total < directory)
    ):
        if bad.any():
            raise FrameError(reason, int(starts[bad][0]))
    symbols = _unpaged(_from_sub_streams(lanes, head_dim), tokens)
    return symbols, data[page_starts[:, np.newaxis] + np.arange(SIDE_OF_SCALES)], page_starts
