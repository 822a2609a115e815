"""The demo on a user's trace, from the command line to the report, through the RTL."""

import json

import numpy as np
from safetensors.numpy import save_file

from sim.demo.__main__ import main


def test_user_trace_with_query_groups(tmp_path, capsys):
    """Two KV heads of two query heads each, causal, ending within a page and within a code line."""
    rng = np.random.default_rng(5)
    arrays = {"q": 2 * rng.standard_normal((3, 4, 32)), "k": rng.standard_normal((91, 2, 32)),
              "v": rng.standard_normal((91, 2, 32)), "visible": np.array([1, 40, 91])}
    path = tmp_path / "trace.safetensors"
    save_file(arrays, path)
    assert main(["--trace", str(path), "--output", str(tmp_path / "out"), "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert "head 0" in printed
    assert "head 1" in printed
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    # Per head: the length after the append; 3 queries in 3 modes, 5 counts and 2 x 32 words each.
    assert figures["attention.demo.values_compared"] == 2 * (1 + 9 * (5 + 64))
    assert figures["attention.demo.error.max"] < 5e-5
    assert figures["attention.demo.cycles.hash"] > figures["attention.demo.cycles.limit"]
    assert (tmp_path / "out" / "timeline.json").stat().st_size > 1000
