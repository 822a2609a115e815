"""docs/performance.md is what its figures say, so nobody writes a figure by hand."""

from sim.bench import figures


def test_the_page_is_written_from_the_figures():
    assert figures.PAGE.read_text(encoding="utf-8") == figures.to_page(figures.read_figures())


def test_a_part_that_is_measured_keeps_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "bench" / "figures.json")
    figures.KEPT.write_text('{"synth.b.tiny.lut": 1, "synth.a.tiny.lut": 2}', encoding="utf-8")
    found = figures.merge_figures({"synth.b.tiny.lut": 3})
    assert found == figures.read_figures() == {"synth.a.tiny.lut": 2, "synth.b.tiny.lut": 3}
    assert figures.FIGURES.read_bytes() == figures.KEPT.read_bytes()
