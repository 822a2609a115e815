"""How far the bit-true pipeline may be from float64: 5e-5 of max |v| (numerics section 12).

Run with ``-s`` to see the errors.
"""

import numpy as np
import pytest

from golden.shapes import CASES, LIMIT, error_of, opposite_tokens, random_rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_error(case, record_property):
    error = error_of(*case(np.random.default_rng(11)))
    record_property("error", error)
    print(f"{case.__name__}: {error:.2e}")
    assert error <= LIMIT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("query_bits", [8, 16])
@pytest.mark.parametrize("block", [32, 128])
def test_mixed_classes_and_summaries(seed, query_bits, block, record_property):
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, 4097, p=[0.8, 0.15, 0.05])
    query = rng.standard_normal(128) * rng.choice([0.1, 0.5, 2.0])
    error = error_of(query, random_rows(rng, 4097, 128, block), random_rows(rng, 4097, 128, block),
                     classes, True, query_bits)
    record_property("error", error)
    print(f"mixed classes, {query_bits}-bit query, block {block}: {error:.2e}")
    assert error <= LIMIT


def test_a_summary_whose_page_cancels():
    """Its mean is zero at the scale of its tokens, 2**40 above the rest."""
    rng = np.random.default_rng(13)
    mantissas, exponents = random_rows(rng, 64, 64)
    mantissas[1], mantissas[2:16] = -mantissas[0], 0
    exponents[:2] += 40
    classes = np.repeat([0, 2], 32)
    keys = random_rows(rng, 64, 64)
    assert error_of(rng.standard_normal(64), keys, (mantissas, exponents), classes, True) <= LIMIT


def test_opposite_tokens_cancel_exactly():
    assert error_of(*opposite_tokens(np.random.default_rng(12))) == 0
