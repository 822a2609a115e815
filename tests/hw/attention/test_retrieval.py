import pytest

from golden.selection import Select
from hw.attention.retrieval import Retrieval
from tests.hw.attention.loaded import Loaded
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel
from tests.retrieval_scenes import (
    Scene,
    config_name,
    make_config,
    plain_counts,
    plain_item,
)

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
def test_random_queries(config):
    scene = Scene(config, seed=15)
    contexts = [scene.add_context(tokens) for tokens in (50, 17)]
    queries = [scene.make_query(context, visible=scene.rng.randrange(1, len(context) + 1))
               for _ in range(5) for context in contexts]
    run_queries(scene, queries, stall_probability=0.3)


def match_cycles(config, visible):
    """N / lanes + chunks of the histogram."""
    return -(-visible // config.lanes) + -(-config.distance_bins // config.bins_per_cycle)


def budget_query(scene, visible):
    """A query whose most recent token is read, and few others."""
    return scene.make_query(scene.contexts[0], visible=visible, select=Select.BUDGET, full=2,
                            coarse=0, sink=0, recent=1, minimum=0, summaries=0)


@pytest.mark.parametrize("changes, extra", [
    ({"lanes": 4, "code_bits": 64}, 0),
    ({"lanes": 16}, 0),
    ({"lanes": 16, "group": 3}, 1),            # a stage of the popcount
    ({"lanes": 32}, 1),                        # a stage of the bins
    ({"lanes": 16, "bins_per_cycle": 16}, 1),  # a stage of the running sums
])
def test_latency(changes, extra):
    config = make_config(**changes)
    scene = Scene(config, seed=2)
    scene.add_context(33)
    result = run_queries(scene, [budget_query(scene, 33)])
    latency = result.output_cycles["o_token"][0] - result.input_cycles["i"][0]
    assert latency == match_cycles(config, 33) + 14 + extra


def test_latency_of_a_dense_query():
    scene = Scene(CONFIGS[0], seed=3)
    context = scene.add_context(33)
    result = run_queries(scene, [scene.make_query(context, select=Select.DENSE)])
    cycles = result.output_cycles["o_token"]
    # The most recent page is a partial one.
    assert cycles[0] - result.input_cycles["i"][0] == 14
    # A token per cycle, and the end.
    assert cycles == list(range(cycles[0], cycles[0] + 33 + 1))


@pytest.mark.parametrize("lanes", [4, 16])
def test_back_to_back_queries_are_matched_without_a_pause(lanes):
    config = make_config(lanes=lanes, bins_per_cycle=2)
    scene = Scene(config, seed=4)
    scene.add_context(90)
    result = run_queries(scene, [budget_query(scene, 90) for _ in range(4)])
    starts = result.input_cycles["i"]
    periods = [b - a for a, b in zip(starts, starts[1:], strict=False)]
    assert periods == [match_cycles(config, 90)] * 3


@pytest.mark.parametrize("changes", [{"lanes": 16, "bins_per_cycle": 64}, {"lanes": 32}])
def test_short_queries_wait_for_the_two_banks(changes):
    config = make_config(**changes)
    scene = Scene(config, seed=5)
    scene.add_context(20)
    starts = run_queries(scene, [budget_query(scene, 20) for _ in range(6)]).input_cycles["i"]
    # Two queries are in flight at any time.
    assert starts[5] - starts[3] <= match_cycles(config, 20) + 24


def test_refuses_what_is_no_configuration():
    with pytest.raises(TypeError, match="Retrieval config must be an AttentionConfig, not None"):
        Retrieval(None)
