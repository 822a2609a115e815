"""The whole attention unit, a command at a time: twin of ``hw.attention.unit.AttentionUnit``.

It keeps each context's stored rows, codes and page summaries, and answers every command with what
the hardware's result stream says: the error code, the counts, the bus beats read, and each head's
output, state and logits, bit for bit. Faults of the memory (window, bus) have no place here.
"""

from dataclasses import dataclass, field

import numpy as np

from golden import hashing, pipeline
from golden.checks import check_int, check_integers
from golden.errors import BudgetError, Error
from golden.mxint import canonical
from golden.pipeline import Items, Kind
from golden.selection import Choice, Select, Selection, select
from golden.state import State
from golden.summary import page_summaries
from hw.config import EXPONENT_NAN, PAGE_TOKENS, AttentionConfig

__all__ = ["AppendResult", "AttentionModel", "Result"]

INDEX_MAX = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class AppendResult:
    """Outcome of an append: ``error``, and the context's ``length`` after it."""

    error: Error
    length: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Outcome of a query.

    Members
    -------
    error : Error
        With any but ``NONE`` the rest is empty.
    full, coarse, summaries : int
        Items read of each kind.
    row_beats, code_beats : int
        Bus beats of K and V rows, and of streamed code lines.
    saturated : bool
        A logit of any head was clipped.
    outputs : uint32 [group, d] or None
        Bit patterns of float32; ``None`` for logits-only queries.
    states : list of State, per head
    items : Items or None
        What was read, in order.
    logits : int32 [group, items] or None
        The hardware sends them only for logits-only queries.
    choice : Choice or None
        Classes and thresholds.
    """

    error: Error = Error.NONE
    full: int = 0
    coarse: int = 0
    summaries: int = 0
    row_beats: int = 0
    code_beats: int = 0
    saturated: bool = False
    outputs: np.ndarray | None = None
    states: list[State] = field(default_factory=list)
    items: Items | None = None
    logits: np.ndarray | None = None
    choice: Choice | None = None

    @property
    def beats(self):
        """Bus beats read, as the status reports them."""
        return self.row_beats + self.code_beats

    def logit_list(self, head):
        """The LOGIT beats of a head: (position, kind, weight, logit) each."""
        if self.items is None or self.logits is None:
            raise ValueError(f"logits must come from a query without error, not {self.error!r}")
        columns = (self.items.positions, self.items.kinds, self.items.weights, self.logits[head])
        return list(zip(*(column.tolist() for column in columns), strict=True))


class _Rows:
    """K, or V, of a context as memory holds it: token rows, and summaries of complete pages."""

    def __init__(self, config, capacity):
        self._rows = (np.zeros((capacity, config.head_dim), np.int8),
                      np.zeros((capacity, config.blocks), np.uint8))
        self._summaries = tuple(
            np.zeros((capacity // PAGE_TOKENS, part.shape[1]), part.dtype) for part in self._rows)

    def write(self, position, *rows):
        end = position + len(rows[0])
        for stored, part in zip(self._rows, rows, strict=True):
            stored[position:end] = part
        first, last = position // PAGE_TOKENS, end // PAGE_TOKENS
        tokens = slice(first * PAGE_TOKENS, last * PAGE_TOKENS)
        whole = page_summaries(*(part[tokens] for part in self._rows))
        for stored, part in zip(self._summaries, whole, strict=True):
            stored[first:last] = part

    def read(self, length):
        return tuple(stored[:length] for stored in self._rows)

    def gather(self, chosen):
        return pipeline.gather(chosen, self._rows, self._summaries)


class _Context:
    """One (sequence, layer, KV head)."""

    def __init__(self, config, capacity, weight_set):
        self.capacity = capacity
        self.weight_set = weight_set
        self.length = 0
        self.keys = _Rows(config, capacity)
        self.values = _Rows(config, capacity)
        self.codes = np.zeros((capacity, config.code_bits), np.uint8)

    def keep(self, other, length):
        """Take over the first tokens of another."""
        for mine, its in ((self.keys, other.keys), (self.values, other.values)):
            mine.write(0, *its.read(length))
        self.codes[:length] = other.codes[:length]
        self.length = length


class AttentionModel:
    """Transaction-level model of the unit.

    Commands that the hardware refuses return its error code; arguments that no command can express
    (wrong shapes, mantissas out of range) raise TypeError or ValueError. Weights not loaded are
    zero.

    Parameters
    ----------
    config : AttentionConfig
    """

    def __init__(self, config):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"AttentionModel config must be an AttentionConfig, not {config!r}")
        self._config = config
        self._contexts = {}
        shape = (config.encoder_sets, 2, config.code_bits, config.head_dim)
        self._weights = np.zeros(shape, np.int8)

    @property
    def config(self):
        return self._config

    def load_weights(self, weight_set, is_key, matrix):
        """Load one encoder matrix, int8 [code_bits, head_dim], for keys or for queries."""
        config = self.config
        weight_set = check_int("weight_set", weight_set, 0, config.encoder_sets - 1)
        if not isinstance(is_key, bool):
            raise TypeError(f"is_key must be a bool, not {is_key!r}")
        shape = (config.code_bits, config.head_dim)
        self._weights[weight_set, int(is_key)] = check_integers(
            "matrix", matrix, -128, 127, shape)

    def open(self, context, capacity, weight_set=0, length=0):
        """Enter a context in place of what its index held, whose first ``length`` tokens stay.

        Only whole pages may stay, or all tokens: the sums of a page begin with its first token.
        """
        config = self.config
        context = check_int("context", context, 0, config.contexts - 1)
        capacity = check_int("capacity", capacity, 1, config.max_tokens)
        weight_set = check_int("weight_set", weight_set, 0, config.encoder_sets - 1)
        entry = _Context(config, capacity, weight_set)
        length = check_int("length", length, 0, min(capacity, self.length(context)))
        if length % PAGE_TOKENS and length != self.length(context):
            raise ValueError(f"length must be of whole pages or {self.length(context)}, "
                             f"not {length!r}")
        if length:
            entry.keep(self._contexts[context], length)
        self._contexts[context] = entry

    def close(self, context):
        """Forget a context: commands on it fail until it is opened again."""
        self._contexts.pop(check_int("context", context, 0, self.config.contexts - 1), None)

    def length(self, context):
        """Tokens of a context; 0 when it is not open."""
        entry = self._contexts.get(context)
        return entry.length if entry else 0

    def append(self, context, keys, key_exponents, values, value_exponents, codes=None):
        """Append tokens, all or none.

        Parameters
        ----------
        context : int
        keys, values : integer arrays [tokens, d], -128..127
        key_exponents, value_exponents : integer arrays [tokens, blocks], 0..255
            255 (NaN) is refused with ``Error.EXPONENT``.
        codes : uint8 [tokens, b] or None
            ``None``: the keys are encoded with the context's matrix.

        Returns
        -------
        AppendResult
        """
        config = self.config
        context = check_int("context", context, 0, INDEX_MAX)
        keys = check_integers("keys", keys, -128, 127, (None, config.head_dim))
        count = len(keys)
        values = check_integers("values", values, -128, 127, keys.shape)
        sides = (count, config.blocks)
        key_exponents = check_integers("key_exponents", key_exponents, 0, 255, sides)
        value_exponents = check_integers("value_exponents", value_exponents, 0, 255, sides)
        if codes is not None:
            codes = check_integers("codes", codes, 0, 1, (count, config.code_bits))
        entry = self._contexts.get(context)
        if entry is None:
            return AppendResult(error=Error.CONTEXT)
        if entry.length + count > entry.capacity:
            return AppendResult(error=Error.CAPACITY, length=entry.length)
        if count == 0:
            return AppendResult(error=Error.DATA, length=entry.length)
        if (key_exponents == EXPONENT_NAN).any() or (value_exponents == EXPONENT_NAN).any():
            return AppendResult(error=Error.EXPONENT, length=entry.length)
        key_exponents = canonical(keys, key_exponents)
        if codes is None:
            codes = hashing.encode_keys(self._weights[entry.weight_set, 1], keys, key_exponents)
        entry.keys.write(entry.length, keys, key_exponents)
        entry.values.write(entry.length, values, canonical(values, value_exponents))
        entry.codes[entry.length : entry.length + count] = codes
        entry.length += count
        return AppendResult(error=Error.NONE, length=entry.length)

    def query(self, context, mantissas, exponents, selection, visible=0, logits_only=False,
              codes=None):
        """One query of all heads of a group.

        Parameters
        ----------
        context : int
        mantissas : integer array [group, d], ``query_bits`` wide
        exponents : integer array [group], 0..254
        selection : Selection
        visible : int
            Tokens that may be read; 0 means the whole context.
        logits_only : bool
            Read keys only, and return neither output nor state.
        codes : uint8 [group, b] or None
            ``None``: the query is encoded with the context's matrix.

        Returns
        -------
        Result
        """
        config = self.config
        context = check_int("context", context, 0, INDEX_MAX)
        limit = 1 << (config.query_bits - 1)
        shape = (config.group, config.head_dim)
        mantissas = check_integers("mantissas", mantissas, -limit, limit - 1, shape)
        exponents = check_integers("exponents", exponents, 0, 254, (config.group,))
        if not isinstance(selection, Selection):
            raise TypeError(f"selection must be a Selection, not {selection!r}")
        visible = check_int("visible", visible, 0, INDEX_MAX)
        if codes is not None:
            codes = check_integers("codes", codes, 0, 1, (config.group, config.code_bits))
        entry = self._contexts.get(context)
        if entry is None:
            return Result(error=Error.CONTEXT)
        if entry.length == 0:
            return Result(error=Error.EMPTY)
        if visible > entry.length:
            return Result(error=Error.VISIBLE)
        try:
            choice = self._choose(entry, mantissas, selection, visible or entry.length, codes)
        except BudgetError:
            return Result(error=Error.BUDGET)
        return self._read(entry, mantissas, exponents, choice, selection.summaries, logits_only)

    def _choose(self, entry, mantissas, selection, visible, codes):
        config = self.config
        distances = None
        if selection.select != Select.DENSE:
            if codes is None:
                codes = hashing.encode_queries(self._weights[entry.weight_set, 0], mantissas)
            distances = hashing.distance(codes, entry.codes[:visible], config.distance_shift)
        return select(distances, visible, selection, config.distance_bins)

    def _read(self, entry, mantissas, exponents, choice, summaries, logits_only):
        config = self.config
        chosen = pipeline.items(choice.classes, summaries)
        rows, scales = entry.keys.gather(chosen)
        scores = [
            pipeline.logits(query, exponent, rows, scales, config.query_bits)
            for query, exponent in zip(mantissas, exponents, strict=True)
        ]
        states, outputs = [], None
        if not logits_only:
            rows, scales = entry.values.gather(chosen)
            states = [
                pipeline.accumulate(score.values, chosen.weights, rows, scales) for score in scores
            ]
            outputs = np.stack([pipeline.normalise(state).view(np.uint32) for state in states])
        full, coarse, means = (chosen.count(kind) for kind in Kind)
        beats = (full + means) * config.full_beats + coarse * config.coarse_beats
        lines = -(-len(choice.classes) // config.lanes)
        streamed = config.code_source == "streamed"
        return Result(
            full=full, coarse=coarse, summaries=means,
            row_beats=beats * (1 if logits_only else 2),
            # A code line carries the exponents too, so that dense queries read them as well.
            code_beats=lines * config.code_line_beats if streamed else 0,
            saturated=any(bool(score.saturated.any()) for score in scores),
            outputs=outputs, states=states, items=chosen,
            logits=np.stack([score.values for score in scores]), choice=choice,
        )
