"""The golden twin of a session: what every operation must give, bit for bit."""

import numpy as np

from golden.unit import AttentionModel
from sim.attention.operations import Append, Context, Query, Reset, Weights

__all__ = ["compare", "expected_results"]


def expected_results(config, operations):
    """Carry operations out on the golden model: one `golden.unit` result per command, else None.

    After a Reset the contexts are gone, as in the hardware; encoder weights stay in their memory.
    """
    model = AttentionModel(config)
    expected = []
    for operation in operations:
        result = None
        if isinstance(operation, Weights):
            model.load_weights(operation.weight_set, operation.is_key, operation.matrix)
        elif isinstance(operation, Context) and operation.valid:
            model.open(operation.index, operation.entry["capacity"],
                       operation.entry.get("weight_set", 0))
        elif isinstance(operation, Context):
            model.close(operation.index)
        elif isinstance(operation, Reset):
            for context in range(config.contexts):
                model.close(context)
        elif isinstance(operation, Append):
            result = model.append(
                operation.context, operation.keys, operation.key_exponents, operation.values,
                operation.value_exponents, operation.codes)
        elif isinstance(operation, Query):
            result = model.query(
                operation.context, operation.mantissas, operation.exponents, operation.selection,
                operation.visible, operation.logits_only, operation.codes)
        expected.append(result)
    return expected


def compare(operations, results, expected):
    """Check every command's result against its golden twin, and return how many values agreed.

    Raises
    ------
    AssertionError
        Anything differs, or nothing was compared.
    """
    compared = 0
    for index, (operation, result, twin) in enumerate(
            zip(operations, results, expected, strict=True)):
        if result is None or isinstance(operation, (Weights,)) or twin is None:
            continue
        where = f"operation {index} ({type(operation).__name__})"
        assert result.error == twin.error, f"{where}: error {result.error}, golden {twin.error!r}"
        if isinstance(operation, Append):
            assert result.length == twin.length, f"{where}: length {result.length}, {twin.length}"
            compared += 1
        elif twin.error == 0:
            compared += _compare_query(where, operation, result, twin)
        else:
            assert result.outputs is None and not result.states
            compared += 1
    assert compared, "nothing was compared"
    return compared


def _compare_query(where, operation, result, twin):
    for name in ("full", "coarse", "summaries", "beats", "saturated"):
        got, want = getattr(result, name), getattr(twin, name)
        assert got == want, f"{where}: {name} is {got}, golden {want}"
    compared = 5
    if operation.logits_only:
        for head, logits in enumerate(result.logits):
            assert logits == twin.logit_list(head), f"{where}: logits of head {head} differ"
            compared += len(logits)
        return compared
    assert (result.outputs is not None) == operation.want_output, where
    assert bool(result.states) == operation.want_state, where
    if operation.want_output:
        differing = np.argwhere(result.outputs != twin.outputs)
        assert not len(differing), (
            f"{where}: {len(differing)} of {twin.outputs.size} output words differ, "
            f"first at [head, element] {differing[0].tolist()}")
        compared += twin.outputs.size
    for head, state in enumerate(result.states):
        want = twin.states[head]
        assert state[:3] == (want.maximum, want.exponent, want.weight_sum), (
            f"{where}: state of head {head} is {state[:3]}, golden {want}")
        assert (state[3] == want.values).all(), f"{where}: o of head {head} differs"
        compared += 3 + len(state[3])
    return compared
