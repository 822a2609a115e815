import pytest

from sim.scoreboard import Scoreboard


def test_passes_when_all_came_in_order():
    scoreboard = Scoreboard("o")
    scoreboard.expect([1, 2])
    scoreboard.check(1)
    scoreboard.check(2)
    scoreboard.drain()
    assert scoreboard.compared == 2


def test_fails_on_another_item():
    scoreboard = Scoreboard("o")
    scoreboard.expect([1])
    with pytest.raises(AssertionError, match="o: item 0 must be 1, not 2"):
        scoreboard.check(2)


def test_fails_on_an_item_too_many():
    with pytest.raises(AssertionError, match="o: item 0 was not expected: 5"):
        Scoreboard("o").check(5)


def test_fails_when_items_are_outstanding():
    scoreboard = Scoreboard("o")
    scoreboard.expect([1, 2])
    scoreboard.check(1)
    with pytest.raises(AssertionError, match="1 items did not come, after 1; the next is 2"):
        scoreboard.drain()


def test_fails_when_nothing_was_compared():
    with pytest.raises(AssertionError, match="nothing was compared"):
        Scoreboard("o").drain()
