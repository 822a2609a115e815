import numpy as np
import pytest

from hw.attention.layouts import Kind
from hw.attention.row_scale import RowScale
from tests.hw.attention.rows import SHAPES, make_config, make_rows, row_beats, shape_name
from tests.hw.harness import run_stream_test


def expected(beats):
    maximum, empty, scaled = 0, True, []
    for beat in beats:
        is_end = beat["kind"] == Kind.END
        exponents = beat.get("exponents")
        raised = maximum if is_end else max(maximum, *exponents, 0)
        entry = {"kind": beat["kind"], "last": beat["last"], "logits_only": beat["logits_only"],
                 "exponent": raised, "rise": 0 if empty else min(raised - maximum, 63)}
        if not is_end:
            entry |= {"data": beat["data"],
                      "falls": [min(raised - exponent, 63) for exponent in exponents]}
        maximum, empty = (0, True) if is_end else (raised, False)
        scaled.append(entry)
    return scaled


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_running_maximum(config, stall):
    rng = np.random.default_rng(8)
    beats = []
    for count, exponents in [
        (9, (0, 254)), (0, (0, 0)), (6, (100, 110)), (5, (0, 3)), (9, (0, 254))
    ]:
        beats += row_beats(config, make_rows(rng, config, count, exponents=exponents))
    result = run_stream_test(RowScale(config), feeds={"i": beats}, sinks={"o": len(beats)}, seed=1,
                             stall_probability=stall)
    wanted = expected(beats)
    got = [{name: output[name] for name in entry}
           for output, entry in zip(result.outputs["o"], wanted, strict=True)]
    assert got == wanted
    if stall == 0:
        assert result.input_cycles["i"] == list(range(len(beats)))
        assert result.output_cycles["o"] == [cycle + 2 for cycle in result.input_cycles["i"]]


def test_bad_config():
    assert RowScale(make_config()).LATENCY == 2
    with pytest.raises(TypeError, match="RowScale config must be an AttentionConfig, not 1"):
        RowScale(1)
