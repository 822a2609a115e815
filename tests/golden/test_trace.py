"""Trace files: what is accepted comes back exactly, what is not is refused with the reason."""

import io
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save_file

from sim.trace import SHIPPED_TRACE, Trace, load_trace, save_trace

NPZ_DTYPES = (np.float16, np.float32, np.float64)
DTYPES = (*NPZ_DTYPES, ml_dtypes.bfloat16)


def arrays(*, queries=3, tokens=5, query_heads=4, kv_heads=2, head_dim=32, dtype=np.float32):
    random = np.random.default_rng(7)
    shapes = {"q": (queries, query_heads, head_dim), "k": (tokens, kv_heads, head_dim),
              "v": (tokens, kv_heads, head_dim)}
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


@st.composite
def contents(draw, dtypes):
    """Arrays of a valid trace, GQA included."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    tokens, queries = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    head_dim = 32 * draw(st.integers(1, 3))
    elements = st.floats(-60000, 60000, width=16)

    def rows(*shape):
        return draw(hnp.arrays(np.float64, shape, elements=elements, fill=elements)).astype(dtype)

    content = {"q": rows(queries, kv_heads * group, head_dim),
               "k": rows(tokens, kv_heads, head_dim), "v": rows(tokens, kv_heads, head_dim)}
    if draw(st.booleans()):
        content["visible"] = draw(hnp.arrays(np.int32, queries, elements=st.integers(1, tokens)))
    return content


def assert_holds(trace, content):
    for name in ("q", "k", "v"):
        assert getattr(trace, name).dtype == np.float64
        np.testing.assert_array_equal(getattr(trace, name), content[name].astype(np.float64))
    np.testing.assert_array_equal(
        trace.visible, content.get("visible", np.full(len(content["q"]), len(content["k"]))))


class TestShipped:
    def test_describes_every_layer(self):
        trace = load_trace(SHIPPED_TRACE)
        assert trace.q.shape == (16, 18, 32)
        assert trace.k.shape == trace.v.shape == (512, 18, 32)
        assert trace.group == 1
        assert trace.labels == tuple(
            f"layer {layer} head {head}" for layer in range(6) for head in (0, 4, 8))
        np.testing.assert_array_equal(trace.visible, 512)

    def test_is_small(self):
        assert SHIPPED_TRACE.stat().st_size < 2_000_000

    def test_heads_are_real_and_distinct(self):
        # Of a trained head, attention is neither flat nor on one token, and no two heads agree.
        trace = load_trace(SHIPPED_TRACE)
        logits = np.einsum("qhd,thd->hqt", trace.q, trace.k) / np.sqrt(trace.head_dim)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        tokens_attended = np.exp(-(weights * np.log(weights)).sum(axis=-1)).mean(axis=-1)
        assert (tokens_attended > 2).all() and (tokens_attended < 480).all(), tokens_attended
        flat = weights.reshape(trace.kv_heads, -1)
        assert (np.corrcoef(flat)[~np.eye(trace.kv_heads, dtype=bool)] < 0.95).all()


class TestRoundTrip:
    @given(content=contents(NPZ_DTYPES))
    @settings(deadline=None, max_examples=50)
    def test_npz(self, tmp_path_factory, content):
        path = tmp_path_factory.mktemp("trace") / "trace.npz"
        np.savez(path, **content)
        trace = load_trace(path)
        assert_holds(trace, content)
        save_trace(path, trace, dtype=content["q"].dtype)
        assert_holds(load_trace(path), content)

    @given(content=contents(DTYPES))
    @settings(deadline=None, max_examples=50)
    def test_safetensors(self, tmp_path_factory, content):
        path = tmp_path_factory.mktemp("trace") / "trace.safetensors"
        save_file(content, path)
        assert_holds(load_trace(path), content)

    def test_same_bytes_each_time(self, tmp_path):
        trace = Trace(**arrays())
        save_trace(tmp_path / "a.npz", trace)
        save_trace(tmp_path / "b.npz", trace)
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    def test_labels(self, tmp_path):
        save_trace(tmp_path / "a.npz", Trace(**arrays(), labels=("first", "zweiter")))
        assert load_trace(tmp_path / "a.npz").labels == ("first", "zweiter")

    def test_rounds_to_nearest_even(self, tmp_path):
        content = arrays(dtype=np.float64)
        content["q"][0, 0, :2] = 2049, 2051
        save_trace(tmp_path / "a.npz", Trace(**content), dtype=np.float16)
        assert load_trace(tmp_path / "a.npz").q[0, 0, :2].tolist() == [2048, 2052]

    @pytest.mark.parametrize("name, dtype, error, message", [
        ("a.npy", np.float32, ValueError, "Trace file to write must end in .npz, not 'a.npy'"),
        ("a.npz", np.int8, TypeError, "Trace dtype must be float16, float32 or float64, not int8"),
        ("a.npz", np.float16, ValueError, "Trace v must be within the range of float16, "
                                          "not 70000.0"),
    ])
    def test_refuses_to_write(self, tmp_path, name, dtype, error, message):
        content = arrays()
        content["v"][1, 1, 1] = -70000
        with pytest.raises(error) as raised:
            save_trace(tmp_path / name, Trace(**content), dtype=dtype)
        assert str(raised.value) == message
        assert not (tmp_path / name).exists()


class TestTrace:
    def test_one_head_shorthand(self):
        content = {name: array[:, 0] for name, array in arrays().items()}
        trace = Trace(**content)
        assert trace.q.shape == (3, 1, 32) and trace.k.shape == (5, 1, 32)
        np.testing.assert_array_equal(trace.k[:, 0], content["k"])

    def test_kv_head_takes_its_group(self):
        content = arrays(query_heads=6)
        trace = Trace(**content, visible=[1, 5, 2], labels=("a", "b")).kv_head(1)
        np.testing.assert_array_equal(trace.q, content["q"][:, 3:6])
        np.testing.assert_array_equal(trace.k, content["k"][:, 1:2])
        np.testing.assert_array_equal(trace.v, content["v"][:, 1:2])
        assert trace.visible.tolist() == [1, 5, 2] and trace.labels == ("b",)

    @pytest.mark.parametrize("index", [-1, 2])
    def test_kv_head_out_of_range(self, index):
        with pytest.raises(IndexError, match=f"^KV head must be between 0 and 1, not {index}$"):
            Trace(**arrays()).kv_head(index)

    def test_cannot_change(self):
        content = arrays(dtype=np.float64)
        trace = Trace(**content)
        content["k"][:] = 0
        assert trace.k.any()
        with pytest.raises(ValueError, match="read-only"):
            trace.k[0, 0, 0] = 1
        with pytest.raises(AttributeError):
            trace.k = content["k"]

    def test_zero_rows_and_extremes_are_valid(self):
        content = arrays()
        content["k"][:] = 0
        content["v"][0] = np.finfo(np.float32).max
        content["v"][1] = np.finfo(np.float32).smallest_subnormal
        assert_holds(Trace(**content), content)

    @pytest.mark.parametrize("name", ["q", "k", "v"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
    def test_refuses_values(self, name, value):
        content = arrays(dtype=np.float64)
        content[name][2, 1, 30] = value
        with pytest.raises(ValueError) as raised:
            Trace(**content)
        assert str(raised.value) == (f"Trace {name} must be finite and within the range of "
                                     f"float32, not {value!r} at [2, 1, 30]")

    @pytest.mark.parametrize("change, message", [
        ({"q": np.zeros((3, 4, 32), np.int8)},
         "Trace q must be an array of float16, bfloat16, float32 or float64, not int8"),
        ({"v": np.zeros((5, 2, 32), complex)},
         "Trace v must be an array of float16, bfloat16, float32 or float64, not complex128"),
        ({"k": "keys"},
         "Trace k must be an array of float16, bfloat16, float32 or float64, not str128"),
        ({"visible": np.ones(3)}, "Trace visible must be an array of integers, not float64"),
        ({"visible": np.ones(3, bool)}, "Trace visible must be an array of integers, not bool"),
        ({"labels": [1, 2]}, "Trace labels must be an array of text, not int64"),
    ])
    def test_refuses_dtypes(self, change, message):
        with pytest.raises(TypeError) as raised:
            Trace(**(arrays() | change))
        assert str(raised.value) == message

    @pytest.mark.parametrize("change, message", [
        ({"q": np.zeros((3, 32))},
         "Trace q must have 3 dimensions, or 2 like each of q, k and v, not shape (3, 32)"),
        ({"k": np.zeros((1, 5, 2, 32))},
         "Trace k must have 3 dimensions, or 2 like each of q, k and v, not shape (1, 5, 2, 32)"),
        ({"k": np.zeros((0, 2, 32)), "v": np.zeros((0, 2, 32))},
         "Trace k must hold at least one row and one head, not shape (0, 2, 32)"),
        ({"q": np.zeros((0, 4, 32))},
         "Trace q must hold at least one row and one head, not shape (0, 4, 32)"),
        ({"q": np.zeros((3, 0, 32))},
         "Trace q must hold at least one row and one head, not shape (3, 0, 32)"),
        ({"q": np.zeros((3, 4, 48))},
         "Trace q must have a head_dim that is a positive multiple of 32, not 48"),
        ({"v": np.zeros((5, 2, 0))},
         "Trace v must have a head_dim that is a positive multiple of 32, not 0"),
        ({"q": np.zeros((3, 4, 64))}, "Trace q must have the head_dim of k, 32, not 64"),
        ({"v": np.zeros((4, 2, 32))},
         "Trace v must have the shape of k, (5, 2, 32), not (4, 2, 32)"),
        ({"v": np.zeros((5, 1, 32))},
         "Trace v must have the shape of k, (5, 2, 32), not (5, 1, 32)"),
        ({"q": np.zeros((3, 3, 32))},
         "Trace q must have a multiple of the 2 KV heads, not 3 heads"),
        ({"q": np.zeros((3, 1, 32))},
         "Trace q must have a multiple of the 2 KV heads, not 1 heads"),
        ({"visible": [1, 2]},
         "Trace visible must have one entry for each of 3 queries, not shape (2,)"),
        ({"visible": [1, 0, 2]}, "Trace visible must be between 1 and the 5 tokens, not 0"),
        ({"visible": [1, 6, 2]}, "Trace visible must be between 1 and the 5 tokens, not 6"),
        ({"labels": ["a"]},
         "Trace labels must have one entry for each of 2 KV heads, not shape (1,)"),
        ({"labels": np.array("ab")},
         "Trace labels must have one entry for each of 2 KV heads, not shape ()"),
    ])
    def test_refuses_shapes(self, change, message):
        with pytest.raises(ValueError) as raised:
            Trace(**(arrays() | change))
        assert str(raised.value) == message


class TestFile:
    def test_absent(self, tmp_path):
        for name in ("a.npz", "a.safetensors"):
            with pytest.raises(FileNotFoundError):
                load_trace(tmp_path / name)

    def test_suffix(self, tmp_path):
        with pytest.raises(ValueError, match=r"^Trace file must end in .npz or .safetensors, "
                                             "not 'a.bin'$"):
            load_trace(tmp_path / "a.bin")

    @pytest.mark.parametrize("lacking", ["q", "k", "v"])
    def test_lacks(self, tmp_path, lacking):
        content = arrays()
        del content[lacking]
        np.savez(tmp_path / "a.npz", **content)
        with pytest.raises(ValueError, match=f"must hold q, k and v, but lacks {lacking}$"):
            load_trace(tmp_path / "a.npz")

    def test_unknown_array(self, tmp_path):
        np.savez(tmp_path / "a.npz", **arrays(), visable=np.ones(3, int))
        with pytest.raises(ValueError, match=r"^Trace file may hold q, k, v, visible, labels, "
                                             "not visable$"):
            load_trace(tmp_path / "a.npz")

    def test_npy_is_not_npz(self, tmp_path):
        with open(tmp_path / "a.npz", "wb") as file:
            np.save(file, arrays()["q"])
        with pytest.raises(ValueError, match=r"must be an .npz archive of arrays, and a.npz is"):
            load_trace(tmp_path / "a.npz")

    def test_pickles_are_not_run(self, tmp_path):
        np.savez(tmp_path / "a.npz", **(arrays() | {"q": np.array([{}], dtype=object)}))
        with pytest.raises(ValueError, match="must hold intact arrays of numbers"):
            load_trace(tmp_path / "a.npz")

    def test_member_that_is_no_array(self, tmp_path):
        np.savez(tmp_path / "a.npz", k=arrays()["k"], v=arrays()["v"])
        with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
            archive.writestr("q", b"queries")
        with pytest.raises(TypeError, match=r"^Trace q must be an array"):
            load_trace(tmp_path / "a.npz")

    def test_npz_without_bfloat16(self, tmp_path):
        # NumPy stores it as unnamed 16-bit words, which may be anything.
        np.savez(tmp_path / "a.npz", **arrays(dtype=ml_dtypes.bfloat16))
        with pytest.raises(TypeError, match=r"^Trace q must be an array .* not void16$"):
            load_trace(tmp_path / "a.npz")

    @given(data=st.data())
    @settings(deadline=None)
    def test_damaged_npz(self, tmp_path_factory, data):
        path = tmp_path_factory.mktemp("trace") / "trace.npz"
        save_trace(path, Trace(**arrays()))
        intact = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(intact)) as archive:
            start = archive.getinfo("k.npy").header_offset + 128
        if data.draw(st.booleans(), "cut"):
            damaged = intact[:data.draw(st.integers(0, len(intact) - 1), "length")]
        else:
            # Within the first array after q: rows, their header, or their checksum.
            damaged = bytearray(intact)
            damaged[data.draw(st.integers(start, start + 1000), "offset")] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"^Trace file"):
            load_trace(path)

    @given(data=st.data())
    @settings(deadline=None)
    def test_cut_safetensors(self, tmp_path_factory, data):
        path = tmp_path_factory.mktemp("trace") / "trace.safetensors"
        save_file(arrays(), path)
        intact = path.read_bytes()
        path.write_bytes(intact[:data.draw(st.integers(0, len(intact) - 1), "length")])
        with pytest.raises(ValueError, match=r"must be an intact .safetensors file"):
            load_trace(path)

    def test_safetensors_of_another_format(self, tmp_path):
        save_file(arrays(dtype=ml_dtypes.float8_e4m3fn), tmp_path / "a.safetensors")
        with pytest.raises(TypeError, match=r"^Trace . must be in one of .* not F8_E4M3$"):
            load_trace(tmp_path / "a.safetensors")
