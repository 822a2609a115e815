"""The bit-true datapath of one query head: rows to logits to a state to an output.

Numerics sections 3 to 6, vectorised over the items of a query. Source: online softmax in base 2
with an integer running maximum (so that rescaling is a shift); widths and roundings are ours.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from golden.checks import check_exponents, check_int, check_integers, check_shape
from golden.exp2 import probability, weigh
from golden.fixed import bit_length, rnd, sat, saturates, shift_left_sat
from golden.mxint import coarse
from golden.selection import FULL, SKIPPED
from golden.state import State
from hw.config import (
    BLOCK_LOGIT_BITS,
    ELEMENT_FRACTION_BITS,
    EXPONENT_BIAS,
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    LOGIT_GUARD_BITS,
    PAGE_TOKENS,
)

__all__ = [
    "Attention",
    "Items",
    "Kind",
    "Logits",
    "accumulate",
    "attend",
    "decode",
    "gather",
    "items",
    "logits",
    "normalise",
]

SHIFT_MAX = 63


class Kind(IntEnum):
    """What an item is; the numbers are those of the row and logit streams."""

    FULL = 0
    COARSE = 1
    SUMMARY = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """What a query reads, in the normative order.

    Members
    -------
    positions : int64 [n]
        Token position; for a summary, the first position of its page.
    kinds : uint8 [n], of :class:`Kind`
    weights : uint8 [n]
        1 for a token; for a summary the skipped tokens of its page, 1..16.
    """

    positions: np.ndarray
    kinds: np.ndarray
    weights: np.ndarray

    def __len__(self):
        return len(self.positions)

    def count(self, kind):
        """Items of a kind."""
        return int((self.kinds == kind).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Logits:
    """Logits int32 [n], 16 fraction bits, base 2, and whether each was clipped, bool [n]."""

    values: np.ndarray
    saturated: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention:
    """Result of one query head: ``output`` float32 [d], ``state``, ``logits`` per item."""

    output: np.ndarray
    state: State
    logits: Logits


def items(classes, summaries=False):
    """Items of a query from the class of each visible position.

    Order: positions descending; the summary of a page after the tokens of that page.

    Parameters
    ----------
    classes : integer array [visible]
        ``selection.SKIPPED``, ``COARSE`` or ``FULL``.
    summaries : bool
        Add a summary for each complete page with skipped tokens.
    """
    classes = check_integers("classes", classes, SKIPPED, FULL, (None,))
    positions = np.flatnonzero(classes != SKIPPED)
    kinds = np.where(classes[positions] == FULL, Kind.FULL, Kind.COARSE)
    weights = np.ones(len(positions), np.int64)
    keys = 2 * positions
    if summaries:
        pages = len(classes) // PAGE_TOKENS
        whole = classes[: pages * PAGE_TOKENS].reshape(pages, PAGE_TOKENS)
        skipped = (whole == SKIPPED).sum(axis=1)
        firsts = np.flatnonzero(skipped) * PAGE_TOKENS
        positions = np.concatenate([positions, firsts])
        kinds = np.concatenate([kinds, np.full(len(firsts), Kind.SUMMARY)])
        weights = np.concatenate([weights, skipped[skipped > 0]])
        keys = np.concatenate([keys, 2 * firsts - 1])
    order = np.argsort(-keys)
    return Items(
        positions=positions[order],
        kinds=kinds[order].astype(np.uint8),
        weights=weights[order].astype(np.uint8),
    )


def decode(mantissas, kinds):
    """Mantissas [n, d] as their kinds [n] read them: int8, coarse rows as 16 u + 8."""
    mantissas = check_integers("mantissas", mantissas, -128, 127, (None, None))
    kinds = check_integers("kinds", kinds, Kind.FULL, Kind.SUMMARY, (len(mantissas),))
    is_coarse = (kinds == Kind.COARSE)[:, np.newaxis]
    return np.where(is_coarse, coarse(mantissas), mantissas).astype(np.int8)


def _check_rows(rows, exponents):
    rows = np.asarray(rows)
    if rows.dtype != np.int8:
        rows = check_integers("rows", rows, -128, 127).astype(np.int8)
    check_shape("rows", rows, (None, None))
    exponents = check_exponents("exponents", exponents, (len(rows), None))
    if not exponents.shape[1] or not rows.shape[1] or rows.shape[1] % exponents.shape[1]:
        raise ValueError(
            f"exponents must have a count that divides {rows.shape[1]}, not {exponents.shape[1]}"
        )
    return rows, exponents


def logits(query, query_exponent, rows, exponents, query_bits):
    """Logits of one query head against decoded key rows.

    Per block the exact dot product is aligned to 2**-20, rounded to nearest (ties towards plus
    infinity) and clipped to 40 bits; the sum is rounded to 2**-16 and clipped to 32.

    Parameters
    ----------
    query : integer array [d], ``query_bits`` wide
    query_exponent : int, 0..254
    rows : int8 [n, d]
        As :func:`decode` gives them.
    exponents : integer array [n, blocks], 0..254
    query_bits : int, 8 or 16

    Returns
    -------
    Logits
    """
    if check_int("query_bits", query_bits, 8, 16) not in (8, 16):
        raise ValueError(f"query_bits must be 8 or 16, not {query_bits!r}")
    rows, exponents = _check_rows(rows, exponents)
    limit = 1 << (query_bits - 1)
    query = check_integers("query", query, -limit, limit - 1, (rows.shape[1],))
    query_exponent = check_int("query_exponent", query_exponent, 0, 254)
    blocks = exponents.shape[1]
    fraction = LOGIT_FRACTION_BITS + LOGIT_GUARD_BITS
    offset = fraction + query_exponent - 2 * EXPONENT_BIAS
    offset -= query_bits - 2 + ELEMENT_FRACTION_BITS
    total = np.zeros(len(rows), np.int64)
    saturated = np.zeros(len(rows), bool)
    for block, part in enumerate(np.split(query.astype(np.float64), blocks)):
        start = block * len(part)
        # Exact in float64 (at most 31 bits), where the product is many times faster than in int64.
        dot = (rows[:, start : start + len(part)].astype(np.float64) @ part).astype(np.int64)
        shift = exponents[:, block] + offset
        left, clipped = shift_left_sat(dot, np.maximum(shift, 0), BLOCK_LOGIT_BITS)
        aligned = np.where(shift >= 0, left, rnd(dot, np.maximum(-shift, 0)))
        total += sat(aligned, BLOCK_LOGIT_BITS)
        saturated |= (shift >= 0) & clipped
    rounded = rnd(total, LOGIT_GUARD_BITS)
    saturated |= saturates(rounded, LOGIT_BITS)
    return Logits(values=sat(rounded, LOGIT_BITS).astype(np.int32), saturated=saturated)


def accumulate(logits, weights, rows, exponents):
    """Online softmax over items in order: their state.

    Within a run of items that raise neither running maximum the sums are plain; where one rises,
    what was summed is shifted down first (floor). Widths: numerics section 5.

    Parameters
    ----------
    logits : int32 [n]
    weights : integer array [n], 1..16
    rows : int8 [n, d]
        Decoded value rows.
    exponents : integer array [n, blocks], 0..254

    Returns
    -------
    State
    """
    rows, exponents = _check_rows(rows, exponents)
    count, dim = rows.shape
    check_shape("logits", np.asarray(logits), (count,))
    check_shape("weights", np.asarray(weights), (count,))
    if count == 0:
        return State.empty(dim)
    octaves, mantissas = weigh(logits, weights)
    maximum = np.maximum.accumulate(octaves)
    exponent = np.maximum.accumulate(exponents.max(axis=1))
    rises = (np.diff(maximum) > 0) | (np.diff(exponent) > 0)
    starts = np.concatenate([[0], np.flatnonzero(rises) + 1])
    below = maximum - octaves
    sums = np.add.reduceat(probability(mantissas, below), starts)
    values = _segment_products(
        probability(mantissas[:, np.newaxis], below[:, np.newaxis] + exponent[:, np.newaxis]
                    - exponents),
        rows, starts,
    )
    weight_sum, total = 0, np.zeros(dim, np.int64)
    m, ev = int(maximum[0]), int(exponent[0])
    for segment, start in enumerate(starts):
        up, up_values = int(maximum[start]) - m, int(exponent[start]) - ev
        m, ev = m + up, ev + up_values
        weight_sum = (weight_sum >> min(up, SHIFT_MAX)) + int(sums[segment])
        total = (total >> min(up + up_values, SHIFT_MAX)) + values[segment]
    return State(maximum=m, weight_sum=weight_sum, exponent=ev, values=total)


def _segment_products(probabilities, rows, starts):
    """Sums of probability * element per segment, int64 [segments, d]; below 2**62, so exact."""
    blocks = probabilities.shape[1]
    size = rows.shape[1] // blocks
    sums = np.empty((len(starts), rows.shape[1]), np.int64)
    for block in range(blocks):
        columns = slice(block * size, (block + 1) * size)
        products = probabilities[:, block, np.newaxis] * rows[:, columns].astype(np.int64)
        sums[:, columns] = np.add.reduceat(products, starts, axis=0)
    return sums


def normalise(state):
    """Output of a state: o / l as float32, bit patterns exact.

    The reciprocal of l has 26 significant bits and |o| is cut to 26; their product is exact, and is
    rounded half to even to float32, gradual underflow included (a value that rounds to zero keeps
    its sign). Above the float32 range: the largest finite value. An empty state and zeros give
    +0.0.

    Returns
    -------
    float32 [d]
    """
    if not isinstance(state, State):
        raise TypeError(f"state must be a State, not {state!r}")
    values = state.values
    if state.is_empty:
        return np.zeros(len(values), np.float32)
    kl = state.weight_sum.bit_length() - 1
    ln = state.weight_sum << (31 - kl) if kl <= 31 else state.weight_sum >> (kl - 31)
    reciprocal = np.uint64((1 << 57) // ln)
    # -(2**63) negated as uint64 is 2**63, which int64 could not hold.
    magnitude = np.where(values < 0, -values.view(np.uint64), values.view(np.uint64))
    ko = bit_length(magnitude) - 1
    up, down = np.maximum(25 - ko, 0), np.maximum(ko - 25, 0)
    up = np.minimum(up, 25)  # a zero magnitude has no leading bit to bring up
    an = magnitude << up.astype(np.uint64) >> down.astype(np.uint64)
    product = (an * reciprocal).astype(np.float64)  # at most 2**52: exact
    exact = np.ldexp(product, ko - kl - 51 + state.exponent - EXPONENT_BIAS - ELEMENT_FRACTION_BITS)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(np.float32)
    rounded = np.minimum(rounded, np.finfo(np.float32).max)
    return np.where(values < 0, -rounded, rounded)


def attend(query, query_exponent, keys, values, chosen, query_bits, key_summaries=None,
           value_summaries=None):
    """One query head over chosen items: logits, state and output.

    Parameters
    ----------
    query : integer array [d]
    query_exponent : int
    keys, values : (mantissas int8 [tokens, d], exponents uint8 [tokens, blocks])
        Stored rows of the context.
    chosen : Items
    query_bits : int, 8 or 16
    key_summaries, value_summaries : (mantissas, exponents) or None
        Of :func:`golden.summary.page_summaries`; needed when ``chosen`` has summaries.

    Returns
    -------
    Attention
    """
    key_rows, key_exponents = gather(chosen, keys, key_summaries)
    value_rows, value_exponents = gather(chosen, values, value_summaries)
    scores = logits(query, query_exponent, key_rows, key_exponents, query_bits)
    state = accumulate(scores.values, chosen.weights, value_rows, value_exponents)
    return Attention(output=normalise(state), state=state, logits=scores)


def gather(chosen, rows, summaries=None):
    """Decoded rows int8 [n, d] and exponents int64 [n, blocks] of items.

    Parameters
    ----------
    chosen : Items
    rows : (mantissas int8 [tokens, d], exponents uint8 [tokens, blocks])
    summaries : (mantissas int8 [pages, d], exponents uint8 [pages, blocks]) or None
    """
    if not isinstance(chosen, Items):
        raise TypeError(f"chosen must be Items, not {chosen!r}")
    mantissas, exponents = (np.asarray(part)[chosen.positions] for part in rows)
    is_summary = chosen.kinds == Kind.SUMMARY
    if is_summary.any():
        if summaries is None:
            raise ValueError("summaries must be given when items have summaries, not None")
        pages = chosen.positions[is_summary] // PAGE_TOKENS
        mantissas[is_summary] = np.asarray(summaries[0])[pages]
        exponents[is_summary] = np.asarray(summaries[1])[pages]
    return decode(mantissas, chosen.kinds), check_exponents("exponents", exponents)
