"""The golden twin of a session: what every operation must give, bit for bit."""

import numpy as np

from golden.errors import Error
from golden.unit import AppendResult, AttentionModel, Result
from sim.attention.operations import Append, Context, Counters, Query, Reset, Weights

__all__ = ["compare", "expected_results"]


def expected_results(config, operations, faults=None):
    """Carry operations out on the golden model: one `golden.unit` result per command, else None.

    After a Reset the contexts are gone, as in the hardware; encoder weights stay in their memory.

    Parameters
    ----------
    config : AttentionConfig
    operations : list
    faults : dict of int to Error, or None
        By index, commands that fail for what golden knows nothing of (the memory, malformed data),
        and how. They change nothing. A Context among them leaves its context invalid.
    """
    model = AttentionModel(config)
    faults = {} if faults is None else faults
    expected = []
    for index, operation in enumerate(operations):
        if index not in faults:
            expected.append(_carry_out(model, operation))
        elif isinstance(operation, Context):
            model.close(operation.index)
            expected.append(None)
        elif isinstance(operation, Query):
            expected.append(Result(error=faults[index]))
        else:
            length = model.length(operation.context) if isinstance(operation, Append) else 0
            expected.append(AppendResult(error=faults[index], length=length))
    return expected


def _carry_out(model, operation):
    match operation:
        case Weights():
            model.load_weights(operation.weight_set, operation.is_key, operation.matrix)
            return AppendResult(error=Error.NONE)
        case Context(valid=True, entry=entry):
            model.open(operation.index, entry["capacity"], entry.get("weight_set", 0),
                       entry.get("length", 0))
        case Context():
            model.close(operation.index)
        case Reset():
            for context in range(model.config.contexts):
                model.close(context)
        case Append():
            return model.append(
                operation.context, operation.keys, operation.key_exponents, operation.values,
                operation.value_exponents, operation.codes)
        case Query():
            return model.query(
                operation.context, operation.mantissas, operation.exponents, operation.selection,
                operation.visible, operation.logits_only, operation.codes)
    return None


def compare(operations, results, expected):
    """Check every command's result against its golden twin, and return how many values agreed.

    Counters are checked too: the commands closed since they were last cleared, the errors of each
    kind and, if there were none, the beats read.

    Raises
    ------
    AssertionError
        Anything differs, or nothing was compared.
    """
    compared = 0
    closed = []
    for index, (operation, result, twin) in enumerate(
            zip(operations, results, expected, strict=True)):
        where = f"operation {index} ({type(operation).__name__})"
        if isinstance(operation, Reset):
            closed = []
        elif isinstance(operation, Counters):
            compared += _compare_counters(where, result, closed)
            closed = [] if operation.clear else closed
        elif twin is not None and result is not None:
            closed.append(result)
            compared += _compare_command(where, operation, result, twin)
    assert compared, "nothing was compared"
    return compared


def _compare_command(where, operation, result, twin):
    assert result.error == twin.error, f"{where}: error {result.error}, golden {twin.error!r}"
    if isinstance(operation, (Append, Weights)):
        assert result.length == twin.length, f"{where}: length {result.length}, {twin.length}"
    elif isinstance(operation, Query):
        if twin.error == Error.NONE:
            return _compare_query(where, operation, result, twin)
        assert result.outputs is None, f"{where} failed, but delivered outputs"
        assert not result.states, f"{where} failed, but delivered states"
    return 1


def _compare_counters(where, counters, closed):
    assert counters["commands"] == len(closed), (
        f"{where}: {counters['commands']} commands counted, {len(closed)} closed")
    errors = [Error(result.error) for result in closed]
    for error in Error:
        if error != Error.NONE:
            count, wanted = counters[f"errors_{error.name.lower()}"], errors.count(error)
            assert count == wanted, f"{where}: {count} errors {error.name} counted, not {wanted}"
    if any(errors):
        return 1 + len(Error)
    beats = sum(getattr(result, "beats", 0) for result in closed)
    assert counters["beats_read"] == beats, (
        f"{where}: {counters['beats_read']} beats counted, {beats} reported")
    return 2 + len(Error)


def _compare_query(where, operation, result, twin):
    for name in ("full", "coarse", "summaries", "beats", "saturated"):
        got, want = getattr(result, name), getattr(twin, name)
        assert got == want, f"{where}: {name} is {got}, golden {want}"
    compared = 5
    if operation.logits_only:
        assert result.outputs is None, f"{where}: outputs of a logits-only query"
        assert not result.states, f"{where}: states of a logits-only query"
        for head, logits in enumerate(result.logits):
            assert logits == twin.logit_list(head), f"{where}: logits of head {head} differ"
            compared += len(logits)
        return compared
    assert not any(result.logits), f"{where}: logits that nobody asked for"
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
