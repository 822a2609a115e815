import random

import pytest

from hw.arith.extremum import Extremum
from tests.hw.arith.test_popcount import follow


@pytest.mark.parametrize("count, latency", [
    (1, 1), (2, 1), (4, 1), (5, 2), (8, 2), (16, 2), (17, 3)])
@pytest.mark.parametrize("largest", [False, True])
def test_one_result_per_cycle(count, latency, largest):
    rng = random.Random(count)
    unit = Extremum(bits=7, count=count, largest=largest)
    assert unit.latency == latency
    values = [[rng.randrange(128) for _ in range(count)] for _ in range(40)]
    best = max if largest else min
    assert follow(unit, values) == [best(numbers) for numbers in values]


@pytest.mark.parametrize("arguments, error", [
    ({"bits": 0, "count": 1, "largest": True}, ValueError),
    ({"bits": 1, "count": 0, "largest": True}, ValueError),
    ({"bits": 1, "count": 1, "largest": 1}, TypeError),
])
def test_refuses_bad_arguments(arguments, error):
    with pytest.raises(error, match="Extremum"):
        Extremum(**arguments)
