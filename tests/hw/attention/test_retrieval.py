import pytest

from hw.attention.retrieval import Retrieval
from tests.hw.attention.loaded import Loaded
from tests.retrieval_scenes import (
    Scene,
    boundary_lengths,
    config_name,
    make_config,
    plain_counts,
    plain_item,
)
from tests.hw.harness import run_stream_test
from tests.hw.memory import MemoryModel

CONFIGS = [
    make_config(lanes=4, code_bits=64),
    make_config(lanes=16, group=3, bins_per_cycle=4),
    make_config(lanes=32, exponent_block=32, head_dim=64, memory_bytes=32, bins_per_cycle=16),
    make_config(lanes=16, code_source="streamed", group=8, bins_per_cycle=1),
    make_config(lanes=32, code_source="streamed", head_dim=64, memory_bytes=16),
]


def run_queries(scene, queries, *, seed=1, stall_probability=0.0, latency=5, **options):
    """Ask queries, compare all that comes out with golden, and return the harness's result."""
    config = scene.config
    expected = [scene.expected(query) for query in queries]
    feeds = {"i": queries}
    testbenches = []
    if config.code_source == "resident":
        feeds["i_code"] = list(scene.code_writes())
    dut = Loaded(Retrieval(config), loads="i_code", count=len(feeds.get("i_code", ())))
    if config.code_source == "streamed":
        image = scene.memory_image()
        memory = MemoryModel(size=len(image), latency=latency, seed=seed)
        memory.data[:] = image
        testbenches.append(memory.serve_read_port(dut.bus))
    tokens = [item for items, _ in expected for item in items]
    result = run_stream_test(
        dut, feeds=feeds, seed=seed, stall_probability=stall_probability,
        sinks={"o_job": len(queries), "o_token": len(tokens), "o_counts": len(queries)},
        testbenches=testbenches, timeout_cycles=40_000, **options)
    assert [job["tag"] for job in result.outputs["o_job"]] == [q["job"]["tag"] for q in queries]
    found = [plain_item(item) for item in result.outputs["o_token"]]
    for place, (item, wanted) in enumerate(zip(found, tokens, strict=True)):
        assert item == wanted, f"item {place} must be {wanted}, not {item}"
    counts = [plain_counts(counts) for counts in result.outputs["o_counts"]]
    assert counts == [counts for _, counts in expected]
    assert_in_step(result)
    return result


def assert_in_step(result):
    """A job leaves before its tokens, and the counts after its END."""
    ends = [cycle for item, cycle in zip(result.outputs["o_token"], result.output_cycles["o_token"],
                                         strict=True) if plain_item(item) == {"kind": 3}]
    begins = [result.output_cycles["o_token"][0]]
    for cycle in ends[:-1]:
        begins.append(next(c for c in result.output_cycles["o_token"] if c > cycle))
    for job, begin, end, counts in zip(result.output_cycles["o_job"], begins, ends,
                                       result.output_cycles["o_counts"], strict=True):
        assert job < begin
        assert end < counts


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
@pytest.mark.parametrize("stall_probability", [0.0, 0.4])
def test_random_queries(config, stall_probability):
    scene = Scene(config, seed=11 + round(10 * stall_probability))
    contexts = [scene.add_context(tokens) for tokens in (70, 33)]
    queries = [scene.make_query(context, visible=scene.rng.randrange(1, len(context) + 1))
               for _ in range(8) for context in contexts]
    run_queries(scene, queries, stall_probability=stall_probability)
