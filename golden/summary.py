"""Page summaries: the mean key and mean value of each complete page, numerics section 11.

What a query skips still counts through them. Source: ours.
"""

import numpy as np

from golden.checks import check_exponents, check_integers
from golden.fixed import rnd
from hw.config import PAGE_TOKENS, SUMMARY_GUARD_BITS

__all__ = ["page_summaries"]

SHIFT_MAX = 31
PAGE_TOKENS_LOG2 = PAGE_TOKENS.bit_length() - 1


def page_summaries(mantissas, exponents):
    """Summary rows of the complete pages of K, or of V.

    The sum of a page runs in token order; when a larger exponent comes it is shifted down (floor),
    so that one accumulator per element serves. The mean is rounded to nearest, ties towards plus
    infinity.

    Parameters
    ----------
    mantissas : integer array [n, d], -128..127
    exponents : integer array [n, blocks], 0..254

    Returns
    -------
    mantissas : int8 [n // 16, d]
    exponents : uint8 [n // 16, blocks]
        The largest of the page's token exponents, per block.
    """
    mantissas = check_integers("mantissas", mantissas, -128, 127, (None, None))
    exponents = check_exponents("exponents", exponents, (len(mantissas), None))
    dim, blocks = mantissas.shape[1], exponents.shape[1]
    if not blocks or not dim or dim % blocks:
        raise ValueError(f"exponents must have a count that divides {dim}, not {blocks}")
    pages = len(mantissas) // PAGE_TOKENS
    used = pages * PAGE_TOKENS
    tokens = mantissas[:used].reshape(pages, PAGE_TOKENS, blocks, dim // blocks)
    scales = exponents[:used].reshape(pages, PAGE_TOKENS, blocks, 1)
    exponent = np.zeros((pages, blocks, 1), np.int64)
    total = np.zeros((pages, blocks, dim // blocks), np.int64)
    # Starting from zero with exponent 0 equals starting from the first token.
    for token in range(PAGE_TOKENS):
        scale = scales[:, token]
        larger = np.maximum(exponent, scale)
        term = (tokens[:, token] << SUMMARY_GUARD_BITS) >> np.minimum(larger - scale, SHIFT_MAX)
        total = (total >> np.minimum(larger - exponent, SHIFT_MAX)) + term
        exponent = larger
    mean = rnd(total, SUMMARY_GUARD_BITS + PAGE_TOKENS_LOG2)
    return mean.reshape(pages, dim).astype(np.int8), exponent[..., 0].astype(np.uint8)
