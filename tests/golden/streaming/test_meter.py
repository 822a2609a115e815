"""Ratios and their window, by hand."""

from golden.streaming.meter import RATIO_MAX, Meter


def test_the_window_starts_with_ones():
    meter = Meter(2)
    assert meter.mean() == 256
    meter.record(300, 100)  # 3.0
    assert meter.mean() == (768 + 3 * 256) // 4


def test_a_ratio_is_the_time_since_the_last_end_and_is_rounded_down():
    meter = Meter(0)
    meter.restart(1000)
    meter.record(1010, 3)
    assert meter.mean() == 10 * 256 // 3
    meter.record(1013, 3)
    assert meter.mean() == 256
    meter.restart(2000)
    meter.record(2001, 1000)
    assert meter.mean() == 0


def test_the_oldest_ratio_leaves():
    meter = Meter(1)
    for now, expected in ((200, (512 + 256) // 2), (300, (512 + 256) // 2), (400, 256)):
        meter.record(now, 100)
        assert meter.mean() == expected


def test_ratios_saturate():
    meter = Meter(0)
    meter.record(1 << 31, 1)
    assert meter.mean() == RATIO_MAX


def test_a_request_in_flight_counts_once_it_is_slower_than_the_mean():
    meter = Meter(2)
    assert meter.estimate(50, 100) == 256
    assert meter.estimate(500, 100) == (3 * 256 + 1280) // 4
    assert meter.estimate(500, 0) == 256
    assert meter.mean() == 256
