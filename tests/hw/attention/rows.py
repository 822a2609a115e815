"""Rows and beats for the tests of the datapath, and what golden says about them."""

from dataclasses import dataclass

import numpy as np

from golden.exp2 import weigh
from golden.mxint import canonical, pack_row
from golden.pipeline import Kind as RowKind
from golden.pipeline import accumulate, decode, logits
from hw.attention.layouts import Kind
from hw.config import AttentionConfig

KINDS = {RowKind.FULL: Kind.FULL, RowKind.COARSE: Kind.COARSE, RowKind.SUMMARY: Kind.SUMMARY}


def make_config(**changes):
    """A small configuration with the given fields changed; one plane per beat unless told."""
    fields = {"head_dim": 32, "code_bits": 64, "lanes": 16, "max_tokens": 1024, **changes}
    fields.setdefault("memory_bytes", fields["head_dim"] // 2)
    return AttentionConfig(**fields)


# The shapes of the datapath: head_dim, exponent blocks, planes per beat and query width.
SHAPES = [
    make_config(),
    make_config(head_dim=64, query_bits=8),
    make_config(head_dim=64, exponent_block=64, memory_bytes=64),
    make_config(head_dim=128, exponent_block=128, result_lanes=16),
    make_config(head_dim=128, memory_bytes=128, query_bits=8, result_lanes=8),
]


def shape_name(config):
    return (f"d{config.head_dim}-b{config.exponent_block}-"
            f"p{config.planes_per_beat}-q{config.query_bits}")


@dataclass
class Rows:
    """Stored rows of K or V with the class that each is read in."""

    mantissas: np.ndarray
    exponents: np.ndarray
    kinds: np.ndarray
    weights: np.ndarray
    positions: np.ndarray

    def __len__(self):
        return len(self.kinds)

    @property
    def decoded(self):
        return decode(self.mantissas, self.kinds)


@dataclass
class Query:
    """A query head with the rows it reads."""

    slot: int
    vector: np.ndarray
    exponent: int
    keys: Rows
    values: Rows
    logits_only: bool = False

    def logits(self, config):
        return logits(self.vector, self.exponent, self.keys.decoded, self.keys.exponents,
                      config.query_bits)

    def state(self, config):
        return accumulate(self.logits(config).values, self.values.weights, self.values.decoded,
                          self.values.exponents)

    def vector_item(self):
        return {"slot": self.slot, "vector": self.vector.tolist(), "exponent": self.exponent}

    def logit_items(self, config):
        """What the scorer makes of the query."""
        golden = self.logits(config)
        common = {"logits_only": int(self.logits_only)}
        rows = zip(golden.values.tolist(), golden.saturated.tolist(), self.keys.kinds,
                   self.keys.weights.tolist(), self.keys.positions.tolist(), strict=True)
        return [
            {"kind": KINDS[kind], "logit": logit, "weight": weight, "position": position,
             "saturated": int(saturated), **common}
            for logit, saturated, kind, weight, position in rows
        ] + [{"kind": Kind.END, "logit": 0, "weight": 0, "position": 0, "saturated": 0, **common}]

    def softmax_total(self, config):
        """What the softmax says of the query at its END."""
        state = self.state(config)
        return {"maximum": state.maximum, "weight_sum": state.weight_sum,
                "saturated": int(self.logits(config).saturated.any())}

    def state_beats(self, config):
        """What a head delivers of the query."""
        state = self.state(config)
        groups = state.values.reshape(-1, config.result_lanes).tolist()
        saturated = int(self.logits(config).saturated.any())
        return [
            {"maximum": state.maximum, "weight_sum": state.weight_sum, "exponent": state.exponent,
             "values": group, "last": int(place == len(groups) - 1), "saturated": saturated}
            for place, group in enumerate(groups)
        ]


def softmax_items(logits, weights):
    """What the softmax makes of logits."""
    octaves, mantissas = weigh(np.array(logits, np.int64), np.array(weights, np.int64))
    maximum = np.maximum.accumulate(octaves)
    rises = np.minimum(np.diff(maximum, prepend=maximum[:1]), 63)
    falls = np.minimum(maximum - octaves, 63)
    return [
        {"mantissa": int(mantissa), "rise": int(rise), "fall": int(fall)}
        for mantissa, rise, fall in zip(mantissas, rises, falls, strict=True)
    ]


def make_rows(rng, config, count, *, exponents=(110, 140), zeros=0.1):
    """Rows with every element pattern, all-zero blocks among them."""
    mantissas = rng.integers(-128, 128, (count, config.head_dim))
    blocks = mantissas.reshape(count, config.blocks, config.exponent_block)
    blocks[rng.random((count, config.blocks)) < zeros] = 0
    kinds = rng.choice([RowKind.FULL, RowKind.COARSE, RowKind.SUMMARY], count).astype(np.uint8)
    drawn = rng.integers(*exponents, (count, config.blocks), endpoint=True)
    return Rows(
        mantissas=mantissas,
        exponents=canonical(mantissas, drawn),
        kinds=kinds,
        weights=np.where(kinds == RowKind.SUMMARY, rng.integers(1, 17, count), 1),
        positions=rng.integers(0, config.max_tokens, count),
    )


def make_query(rng, config, count, *, slot=None, exponent=None, **ranges):
    """A query with ``count`` rows; K and V agree in kinds, weights and positions."""
    keys = make_rows(rng, config, count, **ranges)
    values = make_rows(rng, config, count, **ranges)
    limit = 1 << (config.query_bits - 1)
    return Query(
        slot=int(rng.integers(config.query_slots)) if slot is None else slot,
        vector=rng.integers(-limit, limit, config.head_dim),
        exponent=int(rng.integers(112, 136)) if exponent is None else exponent,
        keys=keys,
        values=Rows(values.mantissas, values.exponents, keys.kinds, keys.weights, keys.positions),
    )


def row_beats(config, rows, *, slot=0, logits_only=False):
    """The beats of a query's rows, with the END that closes them."""
    beats = []
    for index in range(len(rows)):
        stored = pack_row(rows.mantissas[index])
        upper, lower = (half.tobytes() for half in np.split(stored, 2))
        is_coarse = rows.kinds[index] == RowKind.COARSE
        if config.planes_per_beat == 2:
            # Nothing may depend on the lower plane of a coarse row.
            parts = [upper + (bytes(~np.frombuffer(lower, np.uint8)) if is_coarse else lower)]
        else:
            parts = [upper] if is_coarse else [upper, lower]
        beats += [
            {"data": int.from_bytes(part, "little"), "kind": KINDS[rows.kinds[index]],
             "last": int(place == len(parts) - 1), "slot": slot, "logits_only": int(logits_only),
             "weight": int(rows.weights[index]), "position": int(rows.positions[index]),
             "exponents": rows.exponents[index].tolist()}
            for place, part in enumerate(parts)
        ]
    return beats + [{"kind": Kind.END, "last": 1, "slot": slot, "logits_only": int(logits_only)}]
