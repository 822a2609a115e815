"""Attention traces: the queries, keys and values of a model, as files.

A trace file is an ``.npz`` archive or a ``.safetensors`` file that holds these arrays:

=========== ======================================== =============================================
name        shape                                    meaning
=========== ======================================== =============================================
``q``       ``[queries, query_heads, head_dim]``     queries
``k``       ``[tokens, kv_heads, head_dim]``         keys, oldest token first
``v``       ``[tokens, kv_heads, head_dim]``         values
``visible`` ``[queries]``, integers, optional        how many of the first tokens each query sees;
                                                     without it, every query sees every token
``labels``  ``[kv_heads]``, text, optional,          a name of each KV head, for reports
            ``.npz`` only
=========== ======================================== =============================================

Where all of q, k and v are two-dimensional they are one head: ``[queries, head_dim]`` and
``[tokens, head_dim]``. In grouped-query attention query head ``i`` reads KV head
``i // (query_heads // kv_heads)``.

q is the query as the model projects it, after any rotary embedding and before any scaling: whoever
feeds it to the hardware folds ``log2(e) / sqrt(head_dim)`` into it. A model that scales by another
factor needs its q multiplied by the ratio of the two.

Elements are float16, bfloat16 (``.safetensors`` only), float32 or float64.
"""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike
from safetensors import SafetensorError, deserialize

__all__ = ["SHIPPED_TRACE", "Trace", "load_trace", "save_trace"]

SHIPPED_TRACE = Path(__file__).parent / "data" / "minilm.npz"
"""The trace that ships with the project: heads of every layer of all-MiniLM-L6-v2."""

_REQUIRED = ("q", "k", "v")
_OPTIONAL = ("visible", "labels")
_BLOCK_ELEMENTS = 32
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_SAFETENSORS_DTYPES = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "I32": "<i4",
                       "I64": "<i8", "U32": "<u4", "U64": "<u8"}
_LARGEST = float(np.finfo(np.float32).max)


def _read_only(array):
    array.flags.writeable = False
    return array


def _checked_rows(name, array):
    """Rows as float64, which holds each accepted format exactly."""
    array = np.asarray(array)
    if array.dtype.name not in _FLOATS:
        raise TypeError(f"Trace {name} must be an array of {', '.join(_FLOATS[:-1])} or "
                        f"{_FLOATS[-1]}, not {array.dtype.name}")
    if array.ndim != 3:
        raise ValueError(f"Trace {name} must have 3 dimensions, or 2 like each of q, k and v, "
                         f"not shape {array.shape!r}")
    if 0 in array.shape[:2]:
        raise ValueError(f"Trace {name} must hold at least one row and one head, "
                         f"not shape {array.shape!r}")
    if array.shape[2] == 0 or array.shape[2] % _BLOCK_ELEMENTS:
        raise ValueError(f"Trace {name} must have a head_dim that is a positive multiple of "
                         f"{_BLOCK_ELEMENTS}, not {array.shape[2]}")
    rows = array.astype(np.float64)
    bad = ~(np.abs(rows) <= _LARGEST)
    if bad.any():
        where = tuple(int(axis) for axis in np.argwhere(bad)[0])
        raise ValueError(f"Trace {name} must be finite and within the range of float32, "
                         f"not {float(rows[where])!r} at {list(where)!r}")
    return _read_only(rows)


def _checked_visible(visible, queries, tokens):
    visible = np.asarray(visible)
    if visible.dtype.kind not in "iu":
        raise TypeError(f"Trace visible must be an array of integers, not {visible.dtype.name}")
    if visible.shape != (queries,):
        raise ValueError(f"Trace visible must have one entry for each of {queries} queries, "
                         f"not shape {visible.shape!r}")
    bad = (visible < 1) | (visible > tokens)
    if bad.any():
        raise ValueError(f"Trace visible must be between 1 and the {tokens} tokens, "
                         f"not {int(visible[bad][0])!r}")
    return _read_only(visible.astype(np.int64))


def _checked_labels(labels, kv_heads):
    labels = np.asarray(labels)
    if labels.dtype.kind != "U":
        raise TypeError(f"Trace labels must be an array of text, not {labels.dtype.name}")
    if labels.shape != (kv_heads,):
        raise ValueError(f"Trace labels must have one entry for each of {kv_heads} KV heads, "
                         f"not shape {labels.shape!r}")
    return tuple(str(label) for label in labels)


@dataclass(frozen=True, eq=False)
class Trace:
    """Queries, keys and values of one or several heads over the same tokens.

    Shapes, dtypes and meaning are those of this module's table; the arrays are copied, widened to
    float64 (int64 for ``visible``) and made read-only. No scale is folded into q.

    Parameters
    ----------
    q : array of ``[queries, query_heads, head_dim]``
    k, v : array of ``[tokens, kv_heads, head_dim]``
    visible : array of ``[queries]``, optional
        Defaults to all tokens for every query.
    labels : sequence of ``kv_heads`` :class:`str`, optional
        Defaults to ``head 0``, ``head 1`` and so on.

    Raises
    ------
    TypeError
        If an array has another dtype than those accepted.
    ValueError
        If a shape is wrong, there are no tokens, queries or heads, head_dim is not a multiple of
        32, q, k and v do not fit each other, or a value is not finite or out of range.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    visible: np.ndarray = None  # pyright: ignore[reportAssignmentType] (None becomes the default)
    labels: Sequence[str] = ()

    def __post_init__(self):
        rows = {name: np.asarray(getattr(self, name)) for name in _REQUIRED}
        if all(array.ndim == 2 for array in rows.values()):
            rows = {name: array[:, np.newaxis, :] for name, array in rows.items()}
        for name, array in rows.items():
            object.__setattr__(self, name, _checked_rows(name, array))
        if self.v.shape != self.k.shape:
            raise ValueError(f"Trace v must have the shape of k, {self.k.shape!r}, "
                             f"not {self.v.shape!r}")
        if self.q.shape[2] != self.k.shape[2]:
            raise ValueError(f"Trace q must have the head_dim of k, {self.k.shape[2]}, "
                             f"not {self.q.shape[2]}")
        if self.query_heads % self.kv_heads:
            raise ValueError(f"Trace q must have a multiple of the {self.kv_heads} KV heads, "
                             f"not {self.query_heads} heads")
        visible = self.visible
        if visible is None:
            visible = np.full(self.query_count, self.token_count)
        visible = _checked_visible(visible, self.query_count, self.token_count)
        labels = self.labels
        if np.size(labels) == 0:
            labels = [f"head {index}" for index in range(self.kv_heads)]
        labels = _checked_labels(labels, self.kv_heads)
        object.__setattr__(self, "visible", visible)
        object.__setattr__(self, "labels", labels)

    @property
    def query_count(self):
        return self.q.shape[0]

    @property
    def token_count(self):
        return self.k.shape[0]

    @property
    def query_heads(self):
        return self.q.shape[1]

    @property
    def kv_heads(self):
        return self.k.shape[1]

    @property
    def group(self):
        """Query heads that share one KV head."""
        return self.query_heads // self.kv_heads

    @property
    def head_dim(self):
        return self.k.shape[2]

    def kv_head(self, index):
        """The trace of one KV head and of the query heads that read it.

        Raises :exc:`IndexError` unless ``index`` is between 0 and ``kv_heads - 1``.
        """
        if index not in range(self.kv_heads):
            raise IndexError(f"KV head must be between 0 and {self.kv_heads - 1}, not {index!r}")
        readers = slice(index * self.group, (index + 1) * self.group)
        return Trace(q=self.q[:, readers], k=self.k[:, index:index + 1],
                     v=self.v[:, index:index + 1], visible=self.visible,
                     labels=self.labels[index:index + 1])


def _read_npz(path):
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"Trace file must be an .npz archive of arrays, and {path.name} "
                             f"is not")
        try:
            return dict(np.load(file, allow_pickle=False))
        except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"Trace file {path.name} must hold intact arrays of numbers: "
                             f"{error}") from error


def _read_safetensors(path):
    try:
        members = deserialize(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"Trace file {path.name} must be an intact .safetensors file: "
                         f"{error}") from error
    return {name: _decode(name, **member) for name, member in members}


def _decode(name, *, dtype, shape, data):
    if dtype not in _SAFETENSORS_DTYPES:
        raise TypeError(f"Trace {name} must be in one of the formats "
                        f"{', '.join(_SAFETENSORS_DTYPES)}, not {dtype}")
    array = np.frombuffer(data, _SAFETENSORS_DTYPES[dtype])
    if dtype == "BF16":
        # A bfloat16 is the upper half of a float32.
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(shape)


_READERS = {".npz": _read_npz, ".safetensors": _read_safetensors}


def load_trace(path):
    """Reads and checks a trace file.

    Parameters
    ----------
    path : path-like
        File of one of the forms that this module describes, told apart by its suffix.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError, ValueError
        If it is of another form, damaged, lacks an array, or holds one of an unknown name or one
        that :class:`Trace` refuses.
    """
    path = Path(path)
    if path.suffix not in _READERS:
        raise ValueError(f"Trace file must end in {' or '.join(_READERS)}, not {path.name!r}")
    arrays = _READERS[path.suffix](path)
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise ValueError(f"Trace file must hold q, k and v, but lacks {', '.join(missing)}")
    unknown = sorted(set(arrays) - {*_REQUIRED, *_OPTIONAL})
    if unknown:
        raise ValueError(f"Trace file may hold {', '.join(_REQUIRED + _OPTIONAL)}, "
                         f"not {', '.join(unknown)}")
    return Trace(**arrays)


def save_trace(path, trace, *, dtype: DTypeLike = np.float64):
    """Writes a trace as ``.npz``, the same bytes for the same trace.

    ``dtype`` is the element format, :class:`numpy.float16`, ``float32`` or ``float64``. Values are
    rounded to it, to nearest with ties to even; one beyond its range raises :exc:`ValueError`.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"Trace file to write must end in .npz, not {path.name!r}")
    dtype = np.dtype(dtype)
    if dtype.name not in ("float16", "float32", "float64"):
        raise TypeError(f"Trace dtype must be float16, float32 or float64, not {dtype.name}")
    rows = {}
    for name in _REQUIRED:
        array = getattr(trace, name)
        largest = np.abs(array).max()
        with np.errstate(over="ignore"):
            rows[name] = array.astype(dtype)
        if not np.isfinite(rows[name]).all():
            raise ValueError(f"Trace {name} must be within the range of {dtype.name}, "
                             f"not {float(largest)!r}")
    # Left uncompressed: compressed bytes would depend on the version of zlib.
    np.savez(path, **rows, visible=trace.visible, labels=np.array(trace.labels))
