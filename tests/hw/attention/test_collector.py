import numpy as np
import pytest

from hw.attention.collector import StateCollector
from hw.attention.layouts import ResultKind
from hw.attention.normaliser import Normaliser
from hw.attention.state_words import StateWords
from tests.hw.attention.rows import make_config, make_query
from tests.hw.attention.state_beats import output_words, state_words
from tests.hw.harness import run_stream_test

CONFIGS = [
    make_config(),
    make_config(group=4, result_lanes=8, query_slots=2),
    make_config(group=8, result_lanes=32),
    make_config(head_dim=64, group=2, exponent_block=64, result_lanes=16),
]
WANTS = [(1, 1), (1, 0), (0, 1), (0, 0)]


def head_beats(config, query, want_output, want_state):
    """What the collector should give of a head."""
    state = query.state(config)
    saturated = int(query.logits(config).saturated.any())
    runs = [(ResultKind.STATE, state_words(config, state))] if want_state else []
    runs += [(ResultKind.OUTPUT, output_words(config, state))] if want_output else []
    beats = [{"kind": kind, "words": words, "last": int(place == len(run) - 1),
              "last_of_head": 0, "saturated": 0, "empty": 0}
             for kind, run in runs for place, words in enumerate(run)]
    beats = beats or [{"kind": ResultKind.STATUS, "words": [0] * config.result_lanes, "last": 1,
                       "empty": 1}]
    beats[-1] |= {"last_of_head": 1, "saturated": saturated}
    return beats


def make_heads(config, rng, count):
    """Heads of several queries: empty states and clipped logits among them."""
    return [[make_query(rng, config, int(rng.integers(0, 6)),
                        exponent=int(rng.choice([112, 124, 160])))
             for _ in range(config.group)] for _ in range(count)]


def run(config, queries, wants, **options):
    feeds = {"i": [{"want_output": output, "want_state": state} for output, state in wants]}
    for head in range(config.group):
        feeds[f"i_state.{head}"] = [
            beat for heads in queries for beat in heads[head].state_beats(config)]
    expected = [beat for heads, want in zip(queries, wants, strict=True)
                for query in heads for beat in head_beats(config, query, *want)]
    result = run_stream_test(StateCollector(config), feeds=feeds, sinks={"o": len(expected)},
                             **options)
    assert result.outputs["o"] == expected
    return result


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: (
    f"d{config.head_dim}-g{config.group}-r{config.result_lanes}"))
def test_beats_equal_golden(config, stall):
    rng = np.random.default_rng(config.group)
    wants = WANTS + [WANTS[place] for place in rng.integers(0, 4, 6)]
    queries = make_heads(config, rng, len(wants))
    saturated = [query.logits(config).saturated.any() for heads in queries for query in heads]
    assert {bool(one) for one in saturated} == {False, True}
    run(config, queries, wants, seed=4, stall_probability=stall)


@pytest.mark.parametrize("group", [1, 4])
def test_latency_and_throughput(group):
    config = make_config(group=group, result_lanes=8)
    queries = make_heads(config, np.random.default_rng(2), 1)
    beats = config.head_dim // config.result_lanes
    # The state queue and its header; then everything a beat per cycle.
    result = run(config, queries, [(0, 1)], seed=0)
    first = result.input_cycles["i"][0] + 2
    per_head = 1 + 2 * beats
    assert result.output_cycles["o"] == list(range(first, first + group * per_head))

    result = run(config, queries, [(1, 0)], seed=0)
    start = result.input_cycles["i_state.0"][0]
    latency = Normaliser(config).latency + 1
    assert result.output_cycles["o"][:beats] == list(
        range(start + latency, start + latency + beats))
    # The next head divides as soon as the one before went into the multipliers.
    if group > 1:
        heads = result.output_cycles["o"][::beats]
        assert {late - early for early, late in zip(heads, heads[1:], strict=False)} == {
            Normaliser(config).latency - 5 + beats}


def test_beats_of_the_heads_before_hide_the_division():
    config = make_config(head_dim=64, group=2)
    queries = make_heads(config, np.random.default_rng(3), 3)
    result = run(config, queries, [(1, 1)] * 3, seed=0)
    cycles = result.output_cycles["o"]
    gaps = [late - early - 1 for early, late in zip(cycles, cycles[1:], strict=False)]
    # Two state beats go with the first division, which the third waits for.
    assert gaps[:4] + gaps[5:] == [0] * (len(gaps) - 1)
    assert gaps[4] == 13


def test_no_state_is_taken_before_its_query_is_known():
    config = make_config()
    heads = make_heads(config, np.random.default_rng(3), 1)
    with pytest.raises(TimeoutError, match="i_state.0 took 0 of"):
        run_stream_test(StateCollector(config),
                        feeds={"i_state.0": heads[0][0].state_beats(config)}, sinks={}, seed=0,
                        timeout_cycles=60)


def test_bad_config():
    with pytest.raises(TypeError, match="StateCollector config must be an AttentionConfig, not 1"):
        StateCollector(1)
    with pytest.raises(TypeError, match="StateWords config must be an AttentionConfig, not 1"):
        StateWords(1)
