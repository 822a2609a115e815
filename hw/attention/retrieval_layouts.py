"""Payloads and signatures between the parts of the retrieval, and the sizes they share."""

from amaranth.lib import data
from amaranth.lib.wiring import Out, Signature
from amaranth.utils import ceil_log2

from hw.attention.layouts import Error, Select, exponents
from hw.attention.match_lane import match_lane_latency
from hw.config import PAGE_TOKENS, AttentionConfig

__all__ = [
    "Strobe", "check_config", "exponent_pair", "store_page_bits", "line_request", "code_line",
    "distance_line", "scope", "search_job", "threshold", "scan_job", "page_choice",
    "histogram_latency", "release_margin",
]

BEATS_BITS = 24
LANES_PER_COUNT = 4   # lanes whose matches are counted before the first register of a bin


class Strobe(Signature):
    """Items that are taken in the cycle they are offered: a stream whose ``ready`` is always high.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    """

    def __init__(self, shape):
        super().__init__({"valid": Out(1), "payload": Out(shape)})


def check_config(owner, config):
    """Return ``config`` if it is an `AttentionConfig`, otherwise raise `TypeError`."""
    if not isinstance(config, AttentionConfig):
        raise TypeError(f"{owner} config must be an AttentionConfig, not {config!r}")
    return config


def exponent_pair(config):
    """Exponents of a token, or of a page summary: those of K, then those of V."""
    return data.StructLayout({"keys": exponents(config), "values": exponents(config)})


def store_page_bits(config):
    """Width of a page number in the exponent store.

    Resident: a page of the whole store, all contexts. Streamed: a page of the context, and the bank
    of the query above it.
    """
    if config.code_source == "streamed":
        return config.page_bits + 1
    return ceil_log2(max(2, config.resident_tokens // PAGE_TOKENS))


def line_bits(config):
    """Width of the number of a line in a context."""
    return max(1, (config.max_lines - 1).bit_length())


def line_request(config):
    """A run of code lines: where it begins, and its last line, counted from there."""
    place = ({"address": config.address_bits} if config.code_source == "streamed"
             else {"first_line": ceil_log2(max(2, config.resident_tokens // config.lanes))})
    return data.StructLayout({
        **place,
        "last_line": line_bits(config),
        "bank": 1,
    })


def code_line(config):
    """``lanes`` codes; ``error`` and ``beats`` (bus beats read) mean something on the last line."""
    return data.StructLayout({
        "codes": data.ArrayLayout(config.code_bits, config.lanes),
        "last": 1,
        "error": Error,
        "beats": BEATS_BITS,
    })


def distance_line(config):
    """Distances of a line; ``visible`` lanes hold tokens, ``counted`` ones tokens not forced."""
    return data.StructLayout({
        "bank": 1,
        "line": line_bits(config),
        "distances": data.ArrayLayout(config.distance_bits, config.lanes),
        "visible": config.lanes,
        "counted": config.lanes,
    })


def scope(config):
    """What a query may read: positions below ``visible``; those below ``sink`` and from
    ``recent_start`` on are forced full. ``visit_all``: pages without a candidate matter too.
    ``base_page`` is the context's first page in the exponent store (resident codes).
    """
    return data.StructLayout({
        "bank": 1,
        "base_page": store_page_bits(config),
        "visible": config.token_bits,
        "sink": config.token_bits,
        "recent_start": config.token_bits,
        "summaries": 1,
        "visit_all": 1,
        "error": Error,
        "beats": BEATS_BITS,
    })


def search_job(config):
    """A matched query: its histogram is complete, and its thresholds are to be found.

    ``full_count``, ``selected_count`` and ``least_count`` are the searches of docs/numerics.md
    section 10, at most the number of counted tokens; the limits are those of DISTANCE.
    """
    return data.StructLayout({
        "scope": scope(config),
        "select": Select,
        "full_limit": config.distance_bits,
        "selected_limit": config.distance_bits,
        "full_count": config.token_bits,
        "selected_count": config.token_bits,
        "least_count": config.token_bits,
    })


def threshold(config):
    """Admits distances below ``bin``, and the ``ties`` most recent tokens at ``bin``."""
    return data.StructLayout({"bin": config.distance_bits, "ties": config.token_bits})


def scan_job(config):
    """A query with its thresholds; no distance of ``limit`` or more is admitted by either."""
    return data.StructLayout({
        "scope": scope(config),
        "full": threshold(config),
        "selected": threshold(config),
        "limit": config.distance_bits,
    })


def page_choice(config):
    """What a page gives; ``end`` closes a query and gives nothing.

    ``page`` counts from the start of the context, ``store_page`` in the exponent store.
    """
    return data.StructLayout({
        "end": 1,
        "error": Error,
        "beats": BEATS_BITS,
        "page": config.page_bits,
        "store_page": store_page_bits(config),
        "full": PAGE_TOKENS,
        "coarse": PAGE_TOKENS,
        "summary": 1,
    })


def histogram_latency(config):
    """Cycles from a line's distances to its counts in the bins."""
    return 2 if config.lanes <= 4 * LANES_PER_COUNT else 3


def release_margin(config):
    """Cycles from the start of a match to the first change of a bin."""
    code_read = 1
    lanes = match_lane_latency(config.code_bits, config.group)
    return code_read + lanes + histogram_latency(config) - 1
