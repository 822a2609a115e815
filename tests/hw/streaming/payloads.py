"""Payloads of the fixed-rate formats, and what golden makes of them."""

import numpy as np

from golden import mxint
from golden.streaming.convert import stored_rows
from golden.streaming.elements import BF16
from golden.streaming.errors import FrameError
from golden.streaming.layout import Format, row_bytes
from golden.streaming.payload import assemble_pages, decode_payload
from hw.config import WIRE_FORMATS
from hw.streaming.layouts import Reason

FIXED = tuple(name for name in WIRE_FORMATS if not name.startswith("HUFFMAN"))


def make_payload(config, name, tokens, rng, *, finite=True):
    """Rows of random bytes: every code comes, and side information of any kind."""
    fmt = Format[name]
    rows = rng.integers(0, 256, (tokens, 2, row_bytes(fmt, config.head_dim)), np.uint8)
    entry = 2 if fmt.has_scales else config.blocks if name == "MXINT8" else 0
    side = rng.integers(0, 256, (tokens, 2, entry), np.uint8)
    if finite and fmt.has_scales:
        side = (side.view("<u2") % (BF16.largest + 1)).astype("<u2").view(np.uint8)
    elif finite and name == "MXINT8":
        side %= 255
    elif finite:
        # Exponents of ones mean infinity in three formats, and all ones NaN in the other.
        rows &= np.uint8(0xFB if name == "FP8_E5M2" else 0xBF)
    return assemble_pages(fmt, side, rows, config.exponent_block)


def golden_elements(config, name, payload, tokens):
    """Reason, significands and exponents."""
    try:
        p, e = decode_payload(Format[name], bytes(payload), tokens=tokens,
                              head_dim=config.head_dim, exponent_block=config.exponent_block)
    except FrameError as error:
        return Reason(error.reason.value), None, None
    return Reason.NONE, p, e


def stored_beats(config, rows, exponents):
    """Beats of stored rows: uint8 [..., d] in planes, and their exponents [..., blocks]."""
    data = np.ascontiguousarray(rows).reshape(-1, config.bus_bytes)
    exponents = exponents.reshape(-1, config.blocks).repeat(config.row_beats, axis=0).tolist()
    return [{"data": int.from_bytes(beat.tobytes(), "little"), "exponents": row,
             "last": index % config.row_beats == config.row_beats - 1}
            for index, (beat, row) in enumerate(zip(data, exponents, strict=True))]


def golden_stored(config, name, payload, tokens):
    """Reason, and beats of stored rows if it is `NONE`."""
    reason, p, e = golden_elements(config, name, payload, tokens)
    if reason != Reason.NONE:
        return reason, []
    mantissas, exponents = stored_rows(Format[name], p, e, config.exponent_block)
    return reason, stored_beats(config, mxint.pack_row(mantissas), exponents)


def begin_of(config, name, payload, tokens):
    return {"index": 0, "format": WIRE_FORMATS[name], "tokens": tokens,
            "payload_beats": len(payload) // config.bus_bytes}


def payload_beats(config, payload):
    size = config.bus_bytes
    return [{"data": int.from_bytes(payload[at:at + size], "little"),
             "last": at + size >= len(payload), "cut": 0} for at in range(0, len(payload), size)]


def cut_beats(beats, place):
    """Payload beats of a packet that ended before beat ``place`` was there."""
    return [*beats[:place], {"data": 0, "last": 1, "cut": 1}]
