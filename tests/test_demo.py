"""The demo without a simulator: its work, its figures, and what it refuses.

Results "of the hardware" are those of the golden model, with cycles made up.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from golden.reference import attention
from golden.selection import Select
from hw.presets import PRESETS
from sim.attention import Append, Query, QueryResult, Status
from sim.attention.twin import expected_results
from sim.demo.__main__ import main
from sim.demo.measure import Mismatch, cosine, measure
from sim.demo.summary import HEADER, Summary
from sim.demo.timeline import write_timeline
from sim.demo.work import Settings, fit_config, plan, prepare
from sim.trace import SHIPPED_TRACE, Trace, load_trace, save_trace

TINY = PRESETS["tiny"].attention


def random_trace(*, queries=3, tokens=100, group=2, kv_heads=3, head_dim=32, seed=1, visible=None):
    rng = np.random.default_rng(seed)
    return Trace(q=2 * rng.standard_normal((queries, group * kv_heads, head_dim)),
                 k=rng.standard_normal((tokens, kv_heads, head_dim)),
                 v=rng.standard_normal((tokens, kv_heads, head_dim)), visible=visible)


def jobs_of(trace, settings=Settings(), preset=TINY, **kept):
    config = fit_config(preset, trace)
    return plan(prepare(trace, config, **kept), config, settings)


def hardware_results(operations, twins):
    """What a unit without faults answers, one command after the other."""
    results, now = [], 0
    for operation, twin in zip(operations, twins, strict=True):
        result = None
        if isinstance(operation, Append):
            result = Status(error=0, start_cycle=now, end_cycle=now + 100, length=twin.length)
        elif isinstance(operation, Query):
            took = 50 + twin.beats
            result = QueryResult(
                error=int(twin.error), start_cycle=now, end_cycle=now + took + 1,
                output_cycle=now + took, full=twin.full, coarse=twin.coarse,
                summaries=twin.summaries, beats=twin.beats, saturated=twin.saturated,
                outputs=twin.outputs)
        results.append(result)
        now = result.end_cycle if result else now
    return results


def run(job):
    twins = expected_results(job.session.config, job.session.operations)
    return hardware_results(job.session.operations, twins), twins


class TestSettings:
    def test_shares(self):
        selection = Settings().selection(512)
        assert (selection.select, selection.full, selection.coarse) == (Select.BUDGET, 40, 104)
        assert (selection.sink, selection.recent, selection.summaries) == (4, 0, True)

    @pytest.mark.parametrize("visible", [1, 3, 16, 100])
    def test_counts_never_exceed_what_is_visible(self, visible):
        selection = Settings(full=60, coarse=60, sink=50, recent=50).selection(visible)
        assert selection.full == min(60, visible)
        assert selection.full + selection.coarse == min(120, visible)
        assert max(selection.sink, selection.recent) <= visible


class TestConfig:
    def test_shipped_trace_runs_on_the_preset_itself(self):
        assert fit_config(TINY, load_trace(SHIPPED_TRACE)) == TINY

    def test_follows_the_trace(self):
        config = fit_config(TINY, random_trace(head_dim=64, group=4, tokens=5000, kv_heads=1))
        assert (config.head_dim, config.group, config.exponent_block) == (64, 4, 32)
        assert config.max_tokens == config.resident_tokens == 5120
        assert config.distance_shift == 1
        assert config.table_pages == 313
        config = fit_config(PRESETS["server"].attention, random_trace())
        assert (config.head_dim, config.exponent_block, config.memory_bytes) == (32, 32, 16)

    def test_refuses_what_no_unit_has(self):
        with pytest.raises(ValueError, match=r"group must be in 1\.\.8, not 9"):
            fit_config(TINY, random_trace(group=9, kv_heads=1))


class TestPlan:
    def test_heads_fill_the_sessions(self):
        jobs = jobs_of(load_trace(SHIPPED_TRACE))
        assert [len(job.heads) for job in jobs] == [2] * 9
        assert len({job.session.memory_size for job in jobs}) == 1
        labels = [head.label for job in jobs for head in job.heads]
        assert labels == list(load_trace(SHIPPED_TRACE).labels)

    def test_places_name_the_operations(self):
        job = jobs_of(random_trace(kv_heads=1))[0]
        operations = [job.session.operations[at] for at in job.hashed[0]]
        assert all(operation.selection.select == Select.BUDGET for operation in operations)
        assert len(operations) == len(job.burst[0]) == len(job.dense[0]) == 3
        assert all(job.session.operations[at].selection.select == Select.DENSE
                   for at in job.dense[0])
        assert len(job.commands(0)) == 10

    def test_keeps_evenly_spaced_ones(self):
        trace = load_trace(SHIPPED_TRACE)
        heads = prepare(trace, TINY, heads=3, queries=4)
        assert [head.label for head in heads] == [trace.labels[index] for index in (3, 9, 15)]
        assert (heads[0].trace.q[:, 0] == trace.q[[2, 6, 10, 14], 3]).all()
        assert len(prepare(trace, TINY, heads=100)) == 18


class TestMeasure:
    def test_figures(self):
        trace = random_trace(visible=[100, 1, 50])
        job = jobs_of(trace, Settings(full=10, coarse=20))[0]
        figures = measure(job, 1, *run(job))
        assert figures.label == "head 1"
        assert (figures.full + figures.coarse + figures.skipped == [100, 1, 50]).all()
        # Tokens 96..99 and 48..49 lie in an unfinished page: always full, beside the sinks.
        assert figures.full.tolist() == [10, 1, 10]
        assert figures.dense_bytes.tolist() == [100 * 64, 64, 50 * 64]
        beats = 4 * (figures.full + figures.summaries) + 2 * figures.coarse
        assert (figures.hash_bytes == beats * 16).all()
        assert (figures.hash_cycles == 50 + beats).all()
        assert figures.limit.tolist()[1] == 1 + beats[1]
        assert figures.errors.shape == figures.cosines.shape == (3, 2)
        assert figures.errors.max() < 5e-5
        assert figures.mass.sum(axis=-1) == pytest.approx(np.ones((3, 2)))
        assert (figures.dense_cosines > 0.999).all()
        assert figures.distances.sum() == 100
        assert figures.distances.sum(axis=1).tolist() == [70, 20, 10]

    def test_cosine_is_with_the_unquantised_trace(self):
        trace = random_trace(kv_heads=1)
        job = jobs_of(trace)[0]
        results, twins = run(job)
        exact, _ = attention(trace.q, trace.k, trace.v)
        figures = measure(job, 0, results, twins)
        outputs = results[job.hashed[0][2]].outputs.view(np.float32).astype(float)
        wanted = outputs[1] @ exact[2, 1] / np.linalg.norm(outputs[1]) / np.linalg.norm(exact[2, 1])
        assert figures.cosines[2, 1] == pytest.approx(wanted, abs=1e-12)

    @pytest.mark.parametrize("mode", ["hashed", "burst", "dense"])
    def test_one_wrong_bit_is_seen(self, mode):
        job = jobs_of(random_trace(kv_heads=2))[0]
        results, twins = run(job)
        at = getattr(job, mode)[0][1]
        outputs = results[at].outputs.copy()
        outputs[1, 5] ^= 1
        results[at] = replace(results[at], outputs=outputs)
        with pytest.raises(Mismatch, match=r"head 0: .*1 of 64 output words differ"):
            measure(job, 0, results, twins)

    def test_wrong_count_is_seen(self):
        job = jobs_of(random_trace(kv_heads=1))[0]
        results, twins = run(job)
        at = job.hashed[0][0]
        results[at] = replace(results[at], beats=results[at].beats + 1)
        with pytest.raises(Mismatch, match="beats"):
            measure(job, 0, results, twins)

    def test_cosine_of_zeros(self):
        ones, zeros = np.ones((1, 4)), np.zeros((1, 4))
        assert cosine(zeros, zeros) == 1
        assert cosine(ones, zeros) == 0
        assert cosine(ones, -ones) == pytest.approx(-1)


def test_shipped_trace_reaches_its_targets():
    figures = []
    for job in jobs_of(load_trace(SHIPPED_TRACE)):
        results, twins = run(job)
        figures += [measure(job, index, results, twins) for index in range(len(job.heads))]
    summary = Summary(figures)
    assert summary.misses() == []
    assert summary.cosine == pytest.approx(0.9936, abs=2e-4)
    assert summary.byte_share == pytest.approx(0.2416, abs=2e-4)
    assert summary.error < 5e-6
    assert len(summary.rows()) == 18
    assert {len(row) for row in [*summary.rows(), summary.total()]} == {len(HEADER)}
    keys = summary.figures()
    assert keys["attention.demo.cosine"] == summary.cosine
    assert keys["attention.demo.byte_share"] == summary.byte_share


def test_timeline_has_every_command_and_no_overlap_on_a_track(tmp_path):
    job = jobs_of(random_trace(kv_heads=2))[0]
    results, _ = run(job)
    # The second burst query starts while the first runs.
    first, second = job.burst[0][:2]
    results[second] = replace(results[second], start_cycle=results[first].start_cycle + 1)
    write_timeline(tmp_path / "timeline.json", job, results)
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    assert len(events) == sum(result is not None for result in results)
    assert {event["name"] for event in events} > {"append", "query 0, hashed", "query 2, dense"}
    assert {event["tid"] for event in events} == {0, 1}
    for track in (0, 1):
        spans = sorted((event["ts"], event["dur"]) for event in events if event["tid"] == track)
        assert all(start + length <= after
                   for (start, length), (after, _) in zip(spans, spans[1:], strict=False))


def test_misses_are_named():
    job = jobs_of(random_trace(kv_heads=1), Settings(full=80, coarse=0))[0]
    misses = Summary([measure(job, 0, *run(job))]).misses()
    assert any("bytes read must be at most 25% of dense" in line for line in misses)
    job = jobs_of(random_trace(kv_heads=1), Settings(full=0, coarse=1))[0]
    misses = Summary([measure(job, 0, *run(job))]).misses()
    assert any("mean cosine must be at least 0.993" in line for line in misses)


class TestCommandLine:
    def refusal(self, capsys, *arguments):
        assert main([str(argument) for argument in arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    def test_refuses_files_that_are_no_traces(self, capsys, tmp_path):
        assert "No such file" in self.refusal(capsys, "--trace", tmp_path / "none.npz")
        (tmp_path / "text.npz").write_text("no archive")
        assert "must be an .npz archive" in self.refusal(capsys, "--trace", tmp_path / "text.npz")

    def test_refuses_shapes_without_hardware(self, capsys, tmp_path):
        path = tmp_path / "trace.npz"
        save_trace(path, random_trace(head_dim=96))
        assert "head_dim must be one of 32, 64, 128, 256, not 96" in self.refusal(
            capsys, "--trace", path)
        save_trace(path, random_trace(group=9))
        assert "group must be in 1..8, not 9" in self.refusal(capsys, "--trace", path)

    @pytest.mark.parametrize("arguments", [
        ["--full", "-1"], ["--coarse", "x"], ["--heads", "0"], ["--queries", "1.5"],
        ["--preset", "huge"], ["--seed", "²"]])
    def test_refuses_options(self, capsys, arguments):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 2
        assert arguments[0] in capsys.readouterr().err
