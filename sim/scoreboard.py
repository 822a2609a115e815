"""Compare what a unit gave with what its golden model says, in order, and count."""

from collections import deque

__all__ = ["Scoreboard"]


class Scoreboard:
    """Queue of expected items.

    ::

        scoreboard = Scoreboard("logits")
        StreamSink(dut, "o", on_item=scoreboard.check)
        scoreboard.expect(golden.logits(...))
        ...
        scoreboard.drain()

    Parameters
    ----------
    name : str
        Named in error messages.
    """

    def __init__(self, name):
        self.name = name
        self.compared = 0
        self._expected = deque()

    @property
    def outstanding(self):
        """Number of items expected that have not come yet."""
        return len(self._expected)

    def expect(self, items):
        """Add items to the expected ones, in order."""
        self._expected.extend(items)

    def check(self, item):
        """Compare the next item.

        Raises
        ------
        AssertionError
            It differs from the one expected, or none was expected.
        """
        if not self._expected:
            raise AssertionError(f"{self.name}: item {self.compared} was not expected: {item!r}")
        expected = self._expected.popleft()
        if item != expected:
            raise AssertionError(f"{self.name}: item {self.compared} must be {expected!r}, "
                                 f"not {item!r}")
        self.compared += 1

    def drain(self):
        """End the test: everything expected must have come, and something must have.

        Raises
        ------
        AssertionError
            Items are outstanding, or none was ever compared.
        """
        if self._expected:
            raise AssertionError(f"{self.name}: {len(self._expected)} items did not come, after "
                                 f"{self.compared}; the next is {self._expected[0]!r}")
        if not self.compared:
            raise AssertionError(f"{self.name}: nothing was compared")
