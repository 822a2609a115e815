"""The float64 reference against a loop over heads, queries and tokens."""

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.reference import attention, weighted_attention


def slow_head(q, k, v, seen, scale):
    """One query of one head, exponentials without any rescaling."""
    seen = [t for t in range(len(k)) if t in seen]
    if not seen:
        return [0.0] * v.shape[1], -inf
    terms = [exp(scale * sum(a * b for a, b in zip(q, k[t], strict=True))) for t in seen]
    total = sum(terms)
    output = [sum(w * v[t][j] for w, t in zip(terms, seen, strict=True)) / total
              for j in range(v.shape[1])]
    return output, log(total)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([None, 1, 3]),
       st.sampled_from([(1, 1), (2, 2), (4, 1), (6, 2)]), st.booleans(), st.integers(0, 7))
def test_equals_the_loop(seed, causal, window, heads, per_query, tokens):
    rng = np.random.default_rng(seed)
    query_heads, kv_heads = heads
    q = rng.standard_normal((2, 4, query_heads, 3))
    k, v = rng.standard_normal((2, 2, tokens, kv_heads, 3))
    visible = rng.integers(0, tokens + 1, 4) if per_query else None
    output, lse = attention(q, k, v, causal=causal, visible=visible, window=window)
    for batch in range(2):
        for i in range(4):
            count = tokens if visible is None else int(visible[i])
            if causal:
                count = max(min(count, tokens - 3 + i), 0)
            seen = range(max(count - (window or tokens), 0), count)
            for head in range(query_heads):
                kv = head * kv_heads // query_heads
                want = slow_head(q[batch, i, head], k[batch, :, kv], v[batch, :, kv], seen,
                                 1 / sqrt(3))
                assert output[batch, i, head] == pytest.approx(want[0])
                assert lse[batch, i, head] == pytest.approx(want[1])


def test_no_tokens_give_zero_and_minus_infinity():
    output, lse = attention(np.ones((1, 2, 4)), np.ones((0, 1, 4)), np.ones((0, 1, 4)))
    assert not output.any() and (lse == -inf).all()
    output, lse = weighted_attention(np.ones(4), np.ones((0, 4)), np.ones((0, 4)), np.ones(0))
    assert not output.any() and lse == -inf


def test_large_logits_do_not_overflow():
    output, lse = attention(np.full((1, 1, 1), 1e4), np.array([[[1.0]], [[2.0]]]),
                            np.array([[[5.0]], [[7.0]]]), scale=1.0)
    assert output == 7.0 and lse == 2e4


@given(st.integers(0, 2**32 - 1))
def test_a_weight_is_that_many_equal_tokens(seed):
    rng = np.random.default_rng(seed)
    q, k, v = rng.standard_normal(3), rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    weights = rng.integers(0, 4, 5)
    repeated = np.repeat(np.arange(5), weights)
    output, lse = weighted_attention(q, k, v, weights)
    want, want_lse = attention(q[None, None], k[repeated, None], v[repeated, None], scale=log(2))
    assert output == pytest.approx(want[0, 0])
    assert lse == pytest.approx(want_lse[0, 0])


@pytest.mark.parametrize("change, error, text", [
    ({"q": np.full((1, 2, 4), np.nan)}, ValueError, "q must be finite, not NaN or infinite"),
    ({"q": np.ones((1, 3, 4))}, ValueError, "multiple of the KV heads (2), not 3"),
    ({"k": np.ones((5, 2, 3))}, ValueError, "k must have shape (any, any, 4), not (5, 2, 3)"),
    ({"v": np.ones((4, 2, 4))}, ValueError, "v must have shape (5, 2, 4), not (4, 2, 4)"),
    ({"q": np.ones((2, 4))}, ValueError, "q and k must have shapes"),
    ({"visible": 6}, ValueError, "visible must be in 0..5"),
    ({"visible": 1.5}, TypeError, "visible must be integers"),
    ({"visible": [1, 2]}, ValueError, "one per query (1)"),
    ({"causal": 1}, TypeError, "causal must be a bool, not 1"),
    ({"window": 0}, ValueError, "window must be in 1.."),
])
def test_refusals(change, error, text):
    arguments = {"q": np.ones((1, 2, 4)), "k": np.ones((5, 2, 4)), "v": np.ones((5, 2, 4))}
    with pytest.raises(error) as caught:
        attention(**(arguments | change))
    assert text in str(caught.value)
