"""Random work for the attention unit, for tests and regressions."""

import numpy as np

from golden.hashing import random_weights
from golden.mxint import quantise, quantise_query
from golden.selection import Select, Selection
from sim.attention.operations import Append, Query, Weights

__all__ = ["random_append", "random_query", "random_rows", "random_selection", "weights"]


def weights(config, *, seed=0, weight_set=0):
    """Operations that load the default encoders: one random rotation for queries and keys."""
    matrix = random_weights(config.code_bits, config.head_dim, seed)
    return [Weights(weight_set=weight_set, is_key=is_key, matrix=matrix)
            for is_key in (False, True)]


def random_rows(config, rng, count, *, spread=2.0, zeros=0.05):
    """Rows as stored: mantissas and exponents, with scales spread over octaves and some zeros."""
    scale = np.exp2(rng.normal(0, spread, (count, config.blocks))).repeat(
        config.exponent_block, axis=1)
    rows = rng.normal(0, 1, (count, config.head_dim)) * scale
    rows[rng.random(count) < zeros] = 0
    return quantise(rows, config.exponent_block)


def random_append(config, rng, context, count, *, with_codes=False):
    keys, values = random_rows(config, rng, count), random_rows(config, rng, count)
    codes = rng.integers(0, 2, (count, config.code_bits), dtype=np.uint8) if with_codes else None
    return Append(context=context, keys=keys[0], key_exponents=keys[1], values=values[0],
                  value_exponents=values[1], codes=codes)


def random_selection(config, rng, visible, *, summaries=None):
    """Any selection that ``visible`` tokens allow."""
    select = Select(int(rng.integers(0, 4)))
    full = coarse = 0
    if select == Select.BUDGET:
        full = int(rng.integers(0, visible + 1))
        coarse = int(rng.integers(0, visible - full + 1))
    elif select == Select.PERCENTILE:
        full, coarse = (int(value) for value in rng.integers(0, 40000, 2))
    elif select == Select.DISTANCE:
        full, coarse = (int(value) for value in rng.integers(0, config.distance_bins + 2, 2))
    window = min(visible + 3, config.max_tokens)
    return Selection(
        select=select, full=full, coarse=coarse,
        sink=int(rng.integers(0, 1 + min(window, 6))),
        recent=int(rng.integers(0, 1 + min(window, 20))),
        minimum=int(rng.integers(0, 1 + min(window, 40))) if rng.random() < 0.5 else 0,
        summaries=bool(rng.random() < 0.5) if summaries is None else summaries)


def random_query(config, rng, context, length, *, selection=None, **fields):
    """A query over a context of ``length`` tokens, of which some may be hidden."""
    visible = int(rng.integers(1, length + 1)) if rng.random() < 0.5 else 0
    visible = fields.pop("visible", visible)
    if selection is None:
        selection = random_selection(config, rng, visible or length)
    scale = 2.0 ** rng.normal(0, 2)
    mantissas, exponents = quantise_query(
        rng.normal(0, scale, (config.group, config.head_dim)), config.query_bits)
    if "codes" not in fields and rng.random() < 0.2:
        fields["codes"] = rng.integers(0, 2, (config.group, config.code_bits), dtype=np.uint8)
    choice = {"logits_only": bool(rng.random() < 0.2), "want_state": bool(rng.random() < 0.5),
              "want_output": bool(rng.random() < 0.9)}
    return Query(context=context, mantissas=mantissas, exponents=exponents, selection=selection,
                 visible=visible, **{**choice, **fields})
