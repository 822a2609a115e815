"""Captures real attention: the queries, keys and values of all-MiniLM-L6-v2 while it reads a text.

``python -m sim.capture`` writes the trace that ships with the project, bit for bit; its options
capture other heads or another text. The model's weights come with the optional extra ``real``.
"""

from collections.abc import Iterable

import numpy as np

from sim.trace import Trace

from .minilm import HEAD_COUNT, LAYER_COUNT, MAX_TOKENS, MiniLM
from .wordpiece import WordPiece

__all__ = ["HEADS", "QUERIES", "MiniLM", "WordPiece", "capture"]

HEADS = (0, 4, 8)
"""Heads kept of each layer: evenly spaced, not picked by how well they do."""

QUERIES = 16
"""Queries kept of each head."""


def _checked_indices(name, indices, count):
    indices = list(indices)
    bad = [index for index in indices if index not in range(count)]
    if bad or not indices:
        raise ValueError(f"Capture {name} must be one or more of 0 to {count - 1}, "
                         f"not {indices!r}")
    return indices


def capture(model, text, *, layers: Iterable[int] = range(LAYER_COUNT),
            heads: Iterable[int] = HEADS, tokens=MAX_TOKENS, queries=QUERIES):
    """Runs a model over a text and keeps what some of its attention heads read.

    The heads of the chosen layers follow each other along the trace's heads, layer by layer.
    Queries are those of evenly spaced tokens. The model attends in both directions, so each query
    sees every token.

    Parameters
    ----------
    model : :class:`MiniLM`
    text : :class:`str`
        Cut to ``tokens``, of which ``[CLS]`` is the first and ``[SEP]`` the last.
    layers, heads : iterable of :class:`int`
        Default to :data:`HEADS` of every layer, so that the trace stands for the whole model.
    tokens : :class:`int`
        Between 3 and 512.
    queries : :class:`int`
        Between 1 and ``tokens``.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the text is too short.
    """
    layers = _checked_indices("layers", layers, LAYER_COUNT)
    heads = _checked_indices("heads", heads, HEAD_COUNT)
    if tokens not in range(3, MAX_TOKENS + 1):
        raise ValueError(f"Capture tokens must be between 3 and {MAX_TOKENS}, not {tokens!r}")
    if queries not in range(1, tokens + 1):
        raise ValueError(f"Capture queries must be between 1 and {tokens}, not {queries!r}")
    _, attentions = model.forward(model.tokenizer.encode(text, token_count=tokens))
    # The middle token of each of as many equal spans.
    asking = (2 * np.arange(queries) + 1) * tokens // (2 * queries)

    def joined(role, rows):
        return np.concatenate(
            [getattr(attentions[layer], role)[rows][:, heads] for layer in layers], axis=1)

    return Trace(q=joined("q", asking), k=joined("k", slice(None)), v=joined("v", slice(None)),
                 labels=[f"layer {layer} head {head}" for layer in layers for head in heads])
