"""Operations as the unit takes them: the fields of a command, and the beats of its data."""

import numpy as np

from golden.mxint import pack_row
from sim.attention.operations import Append, Query, Raw, Weights

__all__ = ["encode"]


def encode(config, operation):
    """Fields of ``command`` (all but the tag), and the values of ``data_beat`` that go with it."""
    if isinstance(operation, Raw):
        return operation.fields, operation.beats
    encoders = {Weights: _weights, Append: _append, Query: _query}
    fields, records = encoders[type(operation)](config, operation)
    return fields, to_beats(records, config.memory_bytes)


def to_beats(records, width):
    """Records as data beats; each starts a beat, and the last beat of all is marked."""
    beats = []
    for record in records:
        padded = bytes(record) + bytes(-len(record) % width)
        beats += [padded[at:at + width] for at in range(0, len(padded), width)]
    return [{"data": int.from_bytes(beat, "little"), "last": int(index == len(beats) - 1)}
            for index, beat in enumerate(beats)]


def _little_endian(bits):
    """Bits [n, width] (bit 0 first) as bytes, each row padded to whole bytes."""
    return np.packbits(np.asarray(bits, dtype=np.uint8), axis=-1, bitorder="little")


def _weights(config, operation):
    first = (2 * operation.weight_set + operation.is_key) * config.code_bits
    matrix = np.asarray(operation.matrix, dtype=np.int8)
    return ({"opcode": "WEIGHTS", "count": len(matrix), "index": first},
            [row.tobytes() for row in matrix])


def _append(config, operation):
    parts = [pack_row(operation.keys), pack_row(operation.values),
             operation.key_exponents, operation.value_exponents]
    if operation.codes is not None:
        parts.append(_little_endian(operation.codes))
    records = np.concatenate([np.asarray(part, dtype=np.uint8) for part in parts], axis=-1)
    return ({"opcode": "APPEND", "context": operation.context, "count": len(records),
             "has_code": int(operation.codes is not None)},
            [record.tobytes() for record in records])


def _query(config, operation):
    selection = operation.selection
    kind = {8: "<i1", 16: "<i2"}[config.query_bits]
    records = [row.astype(kind).tobytes() for row in np.asarray(operation.mantissas)]
    if operation.codes is not None:
        records.append(_little_endian(operation.codes).tobytes())
    return {
        "opcode": "QUERY", "context": operation.context,
        "has_code": int(operation.codes is not None),
        "select": int(selection.select),
        "logits_only": int(operation.logits_only), "summaries": int(selection.summaries),
        "want_output": int(operation.want_output), "want_state": int(operation.want_state),
        "visible": operation.visible,
        "full": selection.full, "coarse": selection.coarse, "sink": selection.sink,
        "recent": selection.recent, "minimum": selection.minimum,
        "exponents": [int(exponent) for exponent in operation.exponents],
    }, records
