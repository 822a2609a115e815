import pytest

from hw.attention.merge import Merge
from hw.config import AttentionConfig
from sim.build import build_and_run


@pytest.mark.parametrize("head_dim, result_lanes", [(32, 4), (64, 8)])
def test_merge(head_dim, result_lanes):
    config = AttentionConfig(head_dim=head_dim, code_bits=64, lanes=4, max_tokens=1024,
                             memory_bytes=16, result_lanes=result_lanes)
    build_and_run(Merge(config), name=f"merge_{result_lanes}",
                  bench="tests.rtl.merge.bench_merge",
                  arguments={"head_dim": head_dim, "result_lanes": result_lanes})
