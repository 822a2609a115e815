"""The capture: its tokenizer, its forward pass against published figures, and that it repeats."""

import numpy as np
import pytest

from sim.capture import MiniLM, WordPiece, capture
from sim.capture.__main__ import main
from sim.trace import SHIPPED_TRACE

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##want", "##ed", "runn", "##ing", ",",
              "$", "cafe", "中", "a", "##a"]

PROSE = SHIPPED_TRACE.parent / "prose.txt"

needs_model = pytest.mark.skipif(not MiniLM.is_installed(), reason="needs the extra 'real'")


@pytest.fixture(scope="module")
def model():
    return MiniLM.from_package()


class TestWordPiece:
    @pytest.mark.parametrize("text, pieces", [
        ("", []),
        ("UNwanted, running", ["un", "##want", "##ed", ",", "runn", "##ing"]),
        ("unwanted,running", ["un", "##want", "##ed", ",", "runn", "##ing"]),
        ("un\t\nun\u00a0un", ["un", "un", "un"]),
        ("u\u200bn\x07\ufffd", ["un"]),
        ("CAFÉ cafe\u0301", ["cafe", "cafe"]),
        ("a$a", ["a", "$", "a"]),
        ("a中a", ["a", "中", "a"]),
        ("wanted unwant un", ["[UNK]", "un", "##want", "un"]),
        ("a" * 100, ["a", *["##a"] * 99]),
        ("a" * 101, ["[UNK]"]),
    ])
    def test_pieces(self, text, pieces):
        ids = WordPiece(VOCABULARY).encode(text)
        assert [VOCABULARY[index] for index in ids] == ["[CLS]", *pieces, "[SEP]"]

    def test_cut(self):
        assert WordPiece(VOCABULARY).encode("un a a", token_count=4) == [2, 4, 13, 3]

    def test_too_short(self):
        with pytest.raises(ValueError, match=r"^Text must be at least 4 tokens long, not 3$"):
            WordPiece(VOCABULARY).encode("un a a", token_count=6)

    def test_vocabulary_without_special_pieces(self):
        with pytest.raises(ValueError, match=r"but lacks \['\[SEP\]'\]$"):
            WordPiece(["[CLS]", "[UNK]", "a"])


@needs_model
class TestMiniLM:
    @pytest.mark.parametrize("sentence, similarity", [
        ("That is a happy dog", 0.695),
        ("That is a very happy person", 0.943),
        ("Today is a sunny day", 0.257),
    ])
    def test_published_similarities(self, model, sentence, similarity):
        # Figures of the model's own page, for "That is a happy person".
        measured = model.embed("That is a happy person") @ model.embed(sentence)
        assert measured == pytest.approx(similarity, abs=5e-4)

    def test_output_is_attention_over_all_tokens(self, model):
        _, attentions = model.forward(model.tokenizer.encode("The harbour wakes early."))
        for attention in attentions:
            for head in range(12):
                q, k, v = (getattr(attention, role)[:, head] for role in "qkv")
                weights = np.exp(q @ k.T / np.sqrt(32))
                expected = weights @ v / weights.sum(axis=1, keepdims=True)
                np.testing.assert_allclose(attention.output[:, head], expected, atol=1e-12)

    @pytest.mark.parametrize("shape", [(0,), (513,), (1, 4)])
    def test_refuses_tokens(self, model, shape):
        with pytest.raises(ValueError, match=r"^Tokens must be a sequence of 1 to 512 ids,"):
            model.forward(np.zeros(shape, int))


@needs_model
class TestCapture:
    def test_shipped_trace_is_what_the_command_writes(self, tmp_path):
        main(["--output", str(tmp_path / "again.npz")])
        assert (tmp_path / "again.npz").read_bytes() == SHIPPED_TRACE.read_bytes()

    def test_takes_the_heads_asked_for(self, model):
        text = PROSE.read_text(encoding="utf-8")
        trace = capture(model, text, layers=[3, 1], heads=[7], tokens=48, queries=3)
        _, attentions = model.forward(model.tokenizer.encode(text, token_count=48))
        assert trace.labels == ("layer 3 head 7", "layer 1 head 7")
        for index, layer in enumerate((3, 1)):
            np.testing.assert_array_equal(trace.k[:, index], attentions[layer].k[:, 7])
            np.testing.assert_array_equal(trace.v[:, index], attentions[layer].v[:, 7])
            np.testing.assert_array_equal(trace.q[:, index], attentions[layer].q[[8, 24, 40], 7])

    @pytest.mark.parametrize("change, message", [
        ({"layers": [6]}, "Capture layers must be one or more of 0 to 5, not [6]"),
        ({"heads": [0, 12]}, "Capture heads must be one or more of 0 to 11, not [0, 12]"),
        ({"heads": []}, "Capture heads must be one or more of 0 to 11, not []"),
        ({"tokens": 513}, "Capture tokens must be between 3 and 512, not 513"),
        ({"tokens": 8, "queries": 9}, "Capture queries must be between 1 and 8, not 9"),
        ({"queries": 0}, "Capture queries must be between 1 and 512, not 0"),
        ({"tokens": 16}, "Text must be at least 14 tokens long, not 4"),
    ])
    def test_refuses(self, model, change, message):
        with pytest.raises(ValueError) as raised:
            capture(model, "Too short a text", **change)
        assert str(raised.value) == message

    def test_command_names_the_error(self, tmp_path):
        with pytest.raises(SystemExit, match=r"^sim.capture: Capture heads must be one or more"):
            main(["--heads", "12", "--output", str(tmp_path / "a.npz")])
        assert not (tmp_path / "a.npz").exists()
