"""How much of the bus copies use, and how soon they begin."""

import pytest

from sim.streaming.copy_use import WIDTHS, measure

pytestmark = pytest.mark.regress


def test_no_cycle_is_lost():
    figures = measure()
    for bits in WIDTHS:
        assert figures[f"streaming.copy.{bits}.use"] == 1
        assert figures[f"streaming.copy64b.{bits}.use"] == 1
    assert figures["streaming.launch.resident.cycles"] == 7
    assert figures["streaming.launch.fetched.cycles"] == 100 + 13
