"""Exact attention in float64: what the bit-true models are measured against."""

import numpy as np

from golden.checks import check_int, check_reals, check_shape

__all__ = ["attention", "weighted_attention"]


def _softmax_sums(logits, weights, v):
    """Softmax over the last axis of ``logits`` with non-negative ``weights``; (output, LSE)."""
    live = weights > 0
    peak = np.where(live, logits, -np.inf).max(axis=-1, initial=-np.inf, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    terms = np.where(live, weights * np.exp(np.where(live, logits - peak, 0.0)), 0.0)
    total = terms.sum(axis=-1, keepdims=True)
    output = terms @ v / np.where(total > 0, total, 1.0)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + peak
    return output, lse[..., 0]


def _visible_counts(queries, tokens, causal, visible):
    if not isinstance(causal, bool):
        raise TypeError(f"causal must be a bool, not {causal!r}")
    if visible is None:
        visible = tokens
    visible = np.asarray(visible)
    if visible.dtype.kind not in "iu":
        raise TypeError(f"visible must be integers, not of dtype {visible.dtype}")
    if visible.ndim > 1 or visible.ndim == 1 and len(visible) != queries:
        raise ValueError(
            f"visible must be one number or one per query ({queries}), not shape {visible.shape}"
        )
    if (visible < 0).any() or (visible > tokens).any():
        raise ValueError(f"visible must be in 0..{tokens}, not {visible!r}")
    counts = np.broadcast_to(visible, queries)
    if causal:
        # The last query sees everything; each one before it a token less.
        counts = np.minimum(counts, np.arange(queries) + 1 + tokens - queries)
    return np.maximum(counts, 0)


def attention(q, k, v, *, causal=False, visible=None, window=None, scale=None):
    """Softmax attention, exact up to float64 rounding.

    Parameters
    ----------
    q : real array [..., queries, query_heads, d]
    k, v : real arrays [..., tokens, kv_heads, d]
        ``query_heads`` is a multiple of ``kv_heads`` (GQA): query head h reads KV head
        h // (query_heads // kv_heads). Leading batch dimensions agree.
    causal : bool
        The last query sees all tokens, each query before it one less.
    visible : int or integer array [queries] or None
        Tokens that each query sees at most, from position 0; ``None``: all.
    window : int or None
        Of its visible tokens a query sees the last ``window`` only.
    scale : float or None
        Multiplies q . k; ``None``: 1 / sqrt(d).

    Returns
    -------
    output : float64 [..., queries, query_heads, d]
        0 where a query sees no token.
    lse : float64 [..., queries, query_heads]
        Natural logarithm of the sum of exponentials; -inf where a query sees no token.

    Raises
    ------
    TypeError, ValueError
        Not real, not finite, or shapes that do not fit.
    """
    q, k, v = check_reals("q", q), check_reals("k", k), check_reals("v", v)
    if q.ndim < 3 or k.ndim != q.ndim:
        raise ValueError(
            f"q and k must have shapes [..., queries, heads, d] and [..., tokens, heads, d], "
            f"not {q.shape} and {k.shape}"
        )
    queries, query_heads, dim = q.shape[-3:]
    tokens, kv_heads, _ = k.shape[-3:]
    check_shape("k", k, (*q.shape[:-3], None, None, dim))
    check_shape("v", v, k.shape)
    if not kv_heads or query_heads % kv_heads:
        raise ValueError(
            f"query heads must be a multiple of the KV heads ({kv_heads}), not {query_heads}"
        )
    if scale is None:
        scale = 1 / np.sqrt(dim)
    counts = _visible_counts(queries, tokens, causal, visible)
    position = np.arange(tokens)
    seen = position < counts[:, np.newaxis]
    if window is not None:
        window = check_int("window", window, 1, 1 << 40)
        seen &= position >= counts[:, np.newaxis] - window
    # Heads in front of queries; a KV head is repeated for each query head of its group.
    group = query_heads // kv_heads
    q, k, v = (np.swapaxes(array, -3, -2) for array in (q, k, v))
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    logits = q @ np.swapaxes(k, -1, -2) * scale
    output, lse = _softmax_sums(logits, seen.astype(np.float64), v)
    return np.swapaxes(output, -3, -2), np.swapaxes(lse, -2, -1)


def weighted_attention(q, k, v, weights):
    """Base-2 softmax over decoded rows, each standing for ``weights`` tokens (numerics section 12).

    Parameters
    ----------
    q : real array [d]
        Dequantised query: its logit is q . k, in base 2, without another scale.
    k, v : real arrays [n, d]
        Decoded rows, coarse ones and summaries as the hardware reads them.
    weights : array [n], >= 0
        1 for a token, the number of skipped tokens for a page summary.

    Returns
    -------
    output : float64 [d]
        0 over no rows.
    lse : float
        Natural logarithm of the weighted sum of 2**logit; -inf over no rows.
    """
    q, k, v = check_reals("q", q), check_reals("k", k), check_reals("v", v)
    weights = check_reals("weights", weights)
    check_shape("q", q, (None,))
    check_shape("k", k, (None, len(q)))
    check_shape("v", v, (len(k), None))
    check_shape("weights", weights, (len(k),))
    if (weights < 0).any():
        raise ValueError(f"weights must be at least 0, not {weights.min()}")
    output, lse = _softmax_sums(k @ q * np.log(2), weights, v)
    return output, float(lse)
