"""Hash codes of queries and keys, and their distance: numerics sections 8 and 9.

A code holds b bits, bit i telling the sign of one linear projection. Keys are encoded once, at
append; queries once per query, with their own matrix. Source: DASH-KV (arXiv 2604.19351); the
default weights (random orthogonal directions) are ours. Codes are uint8 arrays of 0 and 1, with
shape [..., b] and bit 0 first.
"""

import numpy as np

from golden.checks import check_exponents, check_int, check_integers
from hw.config import KEY_ALIGN_BITS

__all__ = [
    "code_to_int",
    "distance",
    "encode_keys",
    "encode_queries",
    "int_to_code",
    "pack_codes",
    "random_weights",
    "unpack_codes",
]

WEIGHT_MAX = 127


def random_weights(code_bits, head_dim, seed):
    """Default encoder weights: rows of random orthogonal matrices.

    As many ``head_dim`` x ``head_dim`` matrices (QR of a seeded Gaussian) as ``code_bits`` rows
    need are stacked, scaled together to a maximum of 127 and rounded half to even. Queries and keys
    share them by default: only then does a small distance mean a small angle.

    Returns
    -------
    int8 [code_bits, head_dim]
    """
    code_bits = check_int("code_bits", code_bits, 1, 1 << 16)
    head_dim = check_int("head_dim", head_dim, 1, 1 << 16)
    rng = np.random.default_rng(check_int("seed", seed, 0, (1 << 64) - 1))
    matrices = []
    for _ in range(-(-code_bits // head_dim)):
        q, r = np.linalg.qr(rng.standard_normal((head_dim, head_dim)))
        # A positive diagonal of r makes q unique, and uniform over the rotations.
        matrices.append(q * np.where(np.diagonal(r) < 0, -1.0, 1.0))
    rows = np.concatenate(matrices)[:code_bits]
    return np.rint(rows * (WEIGHT_MAX / np.abs(rows).max())).astype(np.int8)


def _check_weights(weights, dim):
    weights = check_integers("weights", weights, -128, 127)
    if weights.ndim != 2 or weights.shape[1] != dim:
        raise ValueError(
            f"weights must have shape (code_bits, {dim}) for vectors of {dim} elements, "
            f"not {weights.shape}"
        )
    return weights


def _vectors(mantissas, limit):
    mantissas = check_integers("mantissas", mantissas, -limit, limit - 1)
    if not mantissas.ndim:
        raise ValueError("mantissas must have at least one dimension, not a single number")
    return mantissas


def encode_queries(weights, mantissas):
    """Codes of quantised queries: bit i is 1 when sum_j W[i, j] q_j >= 0.

    Parameters
    ----------
    weights : integer array [b, d], -128..127
    mantissas : integer array [..., d], at most 16 bits

    Returns
    -------
    uint8 [..., b]
    """
    mantissas = _vectors(mantissas, 1 << 15)
    weights = _check_weights(weights, mantissas.shape[-1])
    # Exact: |sum| <= 2**30 at 256 elements, and float64 products take the fast path of BLAS.
    projections = mantissas.astype(np.float64) @ weights.T.astype(np.float64)
    return (projections >= 0).astype(np.uint8)


def encode_keys(weights, mantissas, exponents):
    """Codes of stored keys, block exponents respected.

    y_i = sum_b (dot_ib << 8) >> min(emax - E_b, 31) (floor), and bit i is 1 when y_i >= 0.

    Parameters
    ----------
    weights : integer array [b, d], -128..127
    mantissas : integer array [..., d], -128..127
    exponents : integer array [..., blocks], 0..254

    Returns
    -------
    uint8 [..., b]
    """
    mantissas = _vectors(mantissas, 128)
    dim = mantissas.shape[-1]
    weights = _check_weights(weights, dim)
    exponents = check_exponents("exponents", exponents, (*mantissas.shape[:-1], None))
    blocks = exponents.shape[-1]
    if not blocks or dim % blocks:
        raise ValueError(f"exponents must have a count that divides {dim}, not {blocks}")
    parts = mantissas.reshape(*mantissas.shape[:-1], blocks, dim // blocks).astype(np.float64)
    shifts = np.minimum(exponents.max(axis=-1, keepdims=True) - exponents, 31)
    sums = np.zeros((*mantissas.shape[:-1], weights.shape[0]), np.int64)
    for block, columns in enumerate(np.split(weights.T.astype(np.float64), blocks)):
        dots = (parts[..., block, :] @ columns).astype(np.int64)
        sums += (dots << KEY_ALIGN_BITS) >> shifts[..., block, np.newaxis]
    return (sums >= 0).astype(np.uint8)


def _check_codes(name, codes):
    codes = check_integers(name, codes, 0, 1).astype(np.uint8)
    if not codes.ndim or not codes.shape[-1]:
        raise ValueError(f"{name} must have bits along the last dimension, not {codes.shape}")
    return codes


def distance(query_codes, key_codes, distance_shift):
    """Distance of a group's codes from each key's: summed Hamming distance, shifted right.

    Parameters
    ----------
    query_codes : uint8 [group, b]
    key_codes : uint8 [n, b]
    distance_shift : int

    Returns
    -------
    int64 [n], 0 .. (group * b) >> distance_shift
    """
    query_codes = _check_codes("query_codes", query_codes)
    key_codes = _check_codes("key_codes", key_codes)
    shift = check_int("distance_shift", distance_shift, 0, 63)
    if query_codes.ndim != 2 or key_codes.ndim != 2:
        raise ValueError(
            f"codes must have shapes (group, b) and (n, b), not {query_codes.shape} "
            f"and {key_codes.shape}"
        )
    if query_codes.shape[1] != key_codes.shape[1]:
        raise ValueError(
            f"codes must have equal lengths, not {query_codes.shape[1]} and {key_codes.shape[1]}"
        )
    key_bytes = np.packbits(key_codes, axis=-1)
    total = np.zeros(len(key_codes), np.int64)
    for code in np.packbits(query_codes, axis=-1):
        total += np.bitwise_count(key_bytes ^ code).sum(axis=-1, dtype=np.int64)
    return total >> shift


def code_to_int(code):
    """One code, uint8 [b], as a Python integer with bit i of the code at weight 2**i."""
    return int.from_bytes(pack_codes(_check_codes("code", code)).tobytes(), "little")


def int_to_code(value, code_bits):
    """Inverse of :func:`code_to_int`: uint8 [code_bits]."""
    code_bits = check_int("code_bits", code_bits, 1, 1 << 16)
    value = check_int("value", value, 0, (1 << code_bits) - 1)
    stored = np.frombuffer(value.to_bytes(-(-code_bits // 8), "little"), np.uint8)
    return np.unpackbits(stored, count=code_bits, bitorder="little")


def pack_codes(codes):
    """Codes [..., b] as the bytes of a code line, uint8 [..., b / 8], bit 0 in bit 0 of byte 0."""
    return np.packbits(_check_codes("codes", codes), axis=-1, bitorder="little")


def unpack_codes(stored, code_bits):
    """Inverse of :func:`pack_codes`: uint8 [..., code_bits]."""
    stored = check_integers("stored", stored, 0, 255).astype(np.uint8)
    code_bits = check_int("code_bits", code_bits, 1, 8 * (stored.shape[-1] if stored.ndim else 0))
    return np.unpackbits(stored, axis=-1, count=code_bits, bitorder="little")
