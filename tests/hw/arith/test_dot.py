import numpy as np
import pytest

from hw.arith.dot import PlaneDot, dot_latency
from tests.hw.arith.pipeline import run_pipeline


def draw(rng, lanes, bits):
    low, high = -(1 << (bits - 1)), 1 << (bits - 1)
    if rng.random() < 0.2:
        return np.full(lanes, rng.choice([low, high - 1]))
    return rng.integers(low, high, lanes)


@pytest.mark.parametrize("pause", [0.0, 0.4])
@pytest.mark.parametrize("lanes, latency", [(4, 2), (32, 3), (64, 4), (128, 4)])
def test_planes_gather(lanes, latency, pause):
    """Rows of one and of two beats, with beats that belong to none in between."""
    rng = np.random.default_rng(lanes)
    beats, sums, total = [], [], 0
    for _ in range(60):
        beat_count = rng.integers(0, 3)
        if beat_count == 0:
            beats.append({"valid": 0, "upper": int(rng.integers(2))})
            sums.append(total)
        for place in range(beat_count):
            a, b = draw(rng, lanes, 16), draw(rng, lanes, 5)
            total = int(a @ b) * (8 if place == 0 else 1) + (total if place else 0)
            beats.append({"valid": 1, "upper": int(place == 0), "a": a.tolist(), "b": b.tolist()})
            sums.append(total)
    assert dot_latency(lanes) == latency
    outputs = run_pipeline(PlaneDot(lanes=lanes, a_bits=16, b_bits=5, planes=1), beats, ["sum"],
                           latency=latency, pause_probability=pause)
    assert [output["sum"] for output in outputs] == sums


def test_whole_elements():
    rng = np.random.default_rng(9)
    vectors = [(draw(rng, 64, 8), draw(rng, 64, 8)) for _ in range(50)]
    outputs = run_pipeline(
        PlaneDot(lanes=64, a_bits=8, b_bits=8, planes=2),
        [{"valid": 1, "upper": 1, "a": a.tolist(), "b": b.tolist()} for a, b in vectors], ["sum"],
        latency=dot_latency(64))
    assert [output["sum"] for output in outputs] == [int(a @ b) for a, b in vectors]


def test_bad_arguments():
    with pytest.raises(ValueError, match="PlaneDot lanes must be a power of two, not 24"):
        PlaneDot(lanes=24, a_bits=16, b_bits=5, planes=1)
    with pytest.raises(ValueError, match="PlaneDot planes must be at most 2, not 3"):
        PlaneDot(lanes=32, a_bits=16, b_bits=5, planes=3)
