import random

import pytest

from hw.stream import Downsizer, Upsizer
from tests.hw.harness import run_stream_test


def make_packets(seed, ratio, count=40):
    """Narrow beats of packets of 1 to 3 * ratio beats."""
    rng = random.Random(seed)
    beats = []
    for _ in range(count):
        length = rng.randint(1, 3 * ratio)
        beats += [{"data": rng.randrange(256), "last": int(n == length - 1)} for n in range(length)]
    return beats


def gather(beats, ratio):
    """The wide beats that an `Upsizer` makes of narrow ones."""
    wide, lanes = [], []
    for beat in beats:
        lanes.append(beat["data"])
        if beat["last"] or len(lanes) == ratio:
            wide.append({"data": sum(lane << 8 * n for n, lane in enumerate(lanes)),
                         "keep": (1 << len(lanes)) - 1, "last": beat["last"]})
            lanes = []
    return wide


@pytest.mark.parametrize("ratio", [1, 2, 3, 4])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_upsizer_gathers(ratio, stall):
    narrow = make_packets(ratio, ratio)
    wide = gather(narrow, ratio)
    result = run_stream_test(Upsizer(in_bits=8, ratio=ratio), feeds={"i": narrow},
                             sinks={"o": len(wide)}, seed=ratio, stall_probability=stall)
    assert result.outputs["o"] == wide
    if stall == 0:
        assert result.input_cycles["i"] == list(range(len(narrow)))


@pytest.mark.parametrize("ratio", [1, 2, 3, 4])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_downsizer_splits(ratio, stall):
    narrow = make_packets(ratio, ratio)
    result = run_stream_test(Downsizer(out_bits=8, ratio=ratio),
                             feeds={"i": gather(narrow, ratio)}, sinks={"o": len(narrow)},
                             seed=ratio, stall_probability=stall)
    assert result.outputs["o"] == narrow
    if stall == 0:
        assert result.output_cycles["o"] == list(range(len(narrow)))


def test_upsizer_latency():
    result = run_stream_test(Upsizer(in_bits=8, ratio=4),
                             feeds={"i": [{"data": n, "last": 0} for n in range(8)]},
                             sinks={"o": 2}, seed=0)
    assert result.output_cycles["o"] == [4, 8]


def test_bad_arguments():
    with pytest.raises(ValueError, match="Upsizer ratio must be at least 1, not 0"):
        Upsizer(in_bits=8, ratio=0)
    with pytest.raises(TypeError, match="Downsizer out_bits must be an integer, not None"):
        Downsizer(out_bits=None, ratio=2)
