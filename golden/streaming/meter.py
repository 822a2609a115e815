"""How fast a route is against its prediction: scheduling section 5.

Source: SparKV (arXiv 2604.21231) for the sliding-window mean of actual over predicted time. Fixed
point, the window's start and the request in flight are ours.
"""

__all__ = ["RATIO_ONE", "RATIO_MAX", "Meter"]

RATIO_ONE = 1 << 8  # ratios are unsigned 8.8 fixed point
RATIO_MAX = (1 << 16) - 1


class Meter:
    """Mean of the last 2^``window_log2`` ratios of a route.

    A ratio is the time since the route last ended something, or since it left idleness, over the
    predicted time of what ended now. The window starts filled with ones: predictions are believed
    until measured.
    """

    def __init__(self, window_log2):
        self.window_log2 = window_log2
        self.window = [RATIO_ONE] * (1 << window_log2)
        self.next = 0
        self.sum = RATIO_ONE << window_log2
        self.since = 0

    def restart(self, now):
        """The route leaves idleness, or has ended something that says nothing about its speed."""
        self.since = now

    def ratio(self, now, predicted):
        return min(((now - self.since) << 8) // predicted, RATIO_MAX)

    def record(self, now, predicted):
        """Something has ended whose predicted time was ``predicted``."""
        ratio = self.ratio(now, predicted)
        self.sum += ratio - self.window[self.next]
        self.window[self.next] = ratio
        self.next = (self.next + 1) % len(self.window)
        self.since = now

    def mean(self):
        """The window's mean, rounded down."""
        return self.sum >> self.window_log2

    def estimate(self, now, predicted):
        """The mean, or what it would be if the request in flight ended now, if that is more.

        ``predicted`` is the predicted time of the oldest request in flight, 0 if there is none. So
        a link that falls silent is seen before its request ends.
        """
        if predicted == 0:
            return self.mean()
        pending = self.sum - self.window[self.next] + self.ratio(now, predicted)
        return max(self.mean(), pending >> self.window_log2)
