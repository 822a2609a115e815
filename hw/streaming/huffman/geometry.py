"""Sizes and payloads that the parts of the entropy decoder share."""

from amaranth.hdl import signed
from amaranth.lib import data

from hw.config import PAGE_TOKENS, StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.wire import ROWS_PER_PAGE, SCALE_BYTES

__all__ = [
    "LANES", "LONGEST", "WORD_BITS", "WORD_BYTES",
    "check_coded", "code_table", "coded_row", "largest_bits", "page_item", "pages_held",
    "payload_word", "stream_bits",
]

LANES = 8       # sub-streams, and elements decoded in a cycle
LONGEST = 12    # bits of a code word
WORD_BYTES = 8  # sub-streams are whole words
WORD_BITS = 8 * WORD_BYTES

_LANE_WORDS = 512  # as many as fit two block RAMs of 18 Kbit


def check_coded(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if it is a `StreamingConfig` with a coded format, otherwise raise."""
    config = check_config(owner, config)
    if not config.huffman_bits:
        raise ValueError(f"{owner} config.formats must have an entropy-coded format, "
                         f"not {config.formats!r}")
    return config


def pages_held(head_dim: int) -> int:
    """Pages that the lanes' memories hold: one that is decoded, and others that arrive. More than
    two let the next chunk's tables be built, and hide what a page takes between its last word and
    its first symbol."""
    return max(2, min(4, _LANE_WORDS // head_dim))


def largest_bits(head_dim: int) -> int:
    """Bits of the longest sub-stream of a page."""
    return LONGEST * ROWS_PER_PAGE * head_dim // LANES


def stream_bits(head_dim: int) -> int:
    """Width of a sub-stream's length in bits."""
    return largest_bits(head_dim).bit_length()


def payload_word() -> data.StructLayout:
    """Eight bytes of a payload. ``last``: the payload ends here; ``cut``: too early, and the word
    holds nothing."""
    return data.StructLayout({"data": WORD_BITS, "last": 1, "cut": 1})


def code_table(symbol_bits: int) -> data.StructLayout:
    """A canonical code. ``limits[f"of_{n}"]`` is the smallest number that n bits of a sub-stream
    may make and that is beyond all codes of up to n bits; the code of n bits with value c stands
    for the symbol of rank ``c + offsets[n - 1]`` (modulo 2**symbol_bits)."""
    return data.StructLayout({
        "limits": data.StructLayout({f"of_{n}": n + 1 for n in range(1, LONGEST)}),
        "offsets": data.ArrayLayout(symbol_bits, LONGEST),
    })


def page_item(config: StreamingConfig) -> data.StructLayout:
    """A page that is in the lanes' memories; or, marked ``is_end``, the end of a frame.

    ``is_first``: nothing of the frame came before. ``is_cut``: the payload was over too early.
    ``is_refused``: a directory was wrong."""
    return data.StructLayout({
        "bits": data.ArrayLayout(stream_bits(config.head_dim), LANES),
        "tokens": range(PAGE_TOKENS + 1),
        "is_first": 1,
        "is_end": 1,
        "is_cut": 1,
        "is_refused": 1,
    })


def coded_row(config: StreamingConfig) -> data.StructLayout:
    """Eight elements of a row and its scale; or, marked ``is_end``, no elements but the end of a
    frame, and what was wrong with it (`Reason` without ``NONFINITE``)."""
    return data.StructLayout({
        "q": data.ArrayLayout(signed(config.huffman_bits), LANES),
        "scale": 8 * SCALE_BYTES,
        "last": 1,     # of the row
        "is_end": 1,
        "reason": 5,
    })
