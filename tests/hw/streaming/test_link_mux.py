import random

import pytest

from hw.config import StreamingConfig
from hw.streaming.link_mux import LinkMux
from tests.hw.harness import run_stream_test

CONFIG = StreamingConfig(head_dim=32, bus_bytes=8)


def packets(rng, mark, count):
    """Beats of packets; the source is in the low byte."""
    beats = []
    for _ in range(count):
        length = rng.randint(1, 5)
        beats += [{"data": rng.getrandbits(48) << 8 | mark, "keep": 255, "last": beat == length - 1}
                  for beat in range(length)]
    return beats


@pytest.mark.parametrize("seed, stall", [(1, 0.0), (2, 0.4), (3, 0.7)])
def test_packets_stay_whole_and_in_order(seed, stall):
    rng = random.Random(seed)
    feeds = [packets(rng, mark, 12) for mark in (0, 1)]
    result = run_stream_test(
        LinkMux(CONFIG), feeds={"i.0": feeds[0], "i.1": feeds[1]},
        sinks={"o": sum(map(len, feeds))}, seed=seed, stall_probability=stall)
    found = result.outputs["o"]
    for mark, beats in enumerate(feeds):
        assert [beat for beat in found if beat["data"] & 255 == mark] == beats
    owner = None
    for beat in found:
        assert owner in (None, beat["data"] & 255), "a packet was cut by another"
        owner = None if beat["last"] else beat["data"] & 255
    if not stall:
        assert result.output_cycles["o"] == list(range(1, 1 + len(found)))
        owners = [beat["data"] & 255 for beat in found if beat["last"]]
        assert all(left != right for left, right in zip(owners, owners[1:], strict=False))
