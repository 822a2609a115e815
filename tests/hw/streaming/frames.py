"""Chunks, frames and link beats for the tests of the receive path."""

import numpy as np

from golden.streaming.layout import Format
from golden.streaming.wire import HEADER_BYTES, Chunk, Header, decode_frame, encode_frame
from hw.config import StreamingConfig


def make_chunk(config: StreamingConfig, rng, *, tokens, chunk_id=None):
    """A chunk of the engine's geometry with random names."""
    return Chunk(
        chunk_id=int(rng.integers(1 << 32)) if chunk_id is None else chunk_id,
        layer=int(rng.integers(1 << 16)), kv_head=int(rng.integers(1 << 16)),
        token_block=int(rng.integers(1 << 32)), tokens=tokens,
        head_dim=config.head_dim, exponent_block=config.exponent_block)


def make_frame(chunk, name, rng):
    """A frame with rows of very different scales, zero blocks among them."""
    shape = (2, chunk.tokens, chunk.head_dim)
    rows = rng.normal(size=shape) * np.exp2(rng.integers(-12, 8, (2, chunk.tokens, 1)))
    rows *= rng.random((2, chunk.tokens, chunk.head_dim // 32)).repeat(32, axis=-1) > 0.1
    rows *= rng.random(shape) > 0.1
    return encode_frame(chunk, Format[name], *rows)


def link_beats(frame, bus_bytes):
    """The beats of a packet; one beat without any byte if it is empty."""
    beats = []
    for at in range(0, max(1, len(frame)), bus_bytes):
        part = frame[at:at + bus_bytes]
        beats.append({"data": int.from_bytes(part, "little"), "keep": (1 << len(part)) - 1,
                      "last": at + bus_bytes >= len(frame)})
    return beats


def header_of(frame):
    """The header of a packet that has one, otherwise None."""
    return Header.unpack(frame) if len(frame) >= HEADER_BYTES else None


class Awaited:
    """The chunks awaited: what the chunk table answers."""

    def __init__(self, config, chunks):
        self.config = config
        self.chunks = {chunk.chunk_id: (index, chunk) for index, chunk in enumerate(chunks)}
        self.formats = [Format[name] for name in config.formats]

    def answer(self, chunk_id):
        """The ``expected_chunk`` of a lookup."""
        if chunk_id not in self.chunks:
            return {"awaited": 0}
        index, chunk = self.chunks[chunk_id]
        return {"awaited": 1, "index": index, "layer": chunk.layer, "kv_head": chunk.kv_head,
                "token_block": chunk.token_block, "tokens": chunk.tokens}

    def decode(self, frame):
        """What the golden model makes of a packet."""
        header = header_of(frame)
        _, chunk = self.chunks.get(header.chunk_id, (0, None)) if header else (0, None)
        return decode_frame(frame, chunk, self.formats)
