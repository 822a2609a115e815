"""How fast the models run: ``python -m golden.bench``."""

from time import perf_counter

import numpy as np

from golden import mxint, pipeline
from golden.selection import FULL

__all__ = ["pipeline_seconds"]


def pipeline_seconds(tokens=32768, head_dim=128, repeats=3):
    """Seconds of the fastest of some dense queries of one head (budget: 0.5 at the defaults)."""
    rng = np.random.default_rng(1)
    keys, values = (mxint.quantise(rng.standard_normal((tokens, head_dim)), 32) for _ in range(2))
    query, exponent = mxint.quantise_query(rng.standard_normal(head_dim) / 8, 16)
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        chosen = pipeline.items(np.full(tokens, FULL))
        pipeline.attend(query, int(exponent), keys, values, chosen, 16)
        best = min(best, perf_counter() - start)
    return best


if __name__ == "__main__":
    print(f"a query over 32,768 tokens of 128 elements: {pipeline_seconds():.3f} s")
