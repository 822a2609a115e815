"""How fast entropy-coded chunks become stored rows.

``python -m sim.streaming.huffman_rate`` prints the figure.
"""

import json
import tempfile

import cocotb
import numpy as np

from golden import mxint
from golden.streaming.convert import stored_rows
from golden.streaming.layout import Format
from golden.streaming.payload import decode_payload, encode_payload
from hw.config import StreamingConfig
from hw.streaming.decoder import Decoder
from sim.build import build, run
from sim.stream import StreamSink, StreamSource
from sim.testbench import arguments, start
from sim.tools import BUILD

__all__ = ["measure"]


def measure(name="HUFFMAN5", *, head_dim=128, bus_bytes=8, tokens=1024):
    """Figure ``streaming.huffman.beats_per_cycle``: beats of stored rows per cycle, from the first
    to the last of a chunk of random rows whose link never waits. All of them are compared."""
    config = StreamingConfig(
        head_dim=head_dim, bus_bytes=bus_bytes, chunk_tokens=tokens, formats=(name,))
    model = build(Decoder(config), name=f"huffman_rate_{name.lower()}_{head_dim}_{bus_bytes}")
    with tempfile.NamedTemporaryFile(dir=BUILD, prefix="huffman-") as file:
        run(model, bench="sim.streaming.huffman_rate", quiet=True,
            arguments={"name": name, "head_dim": head_dim, "bus_bytes": bus_bytes,
                       "tokens": tokens, "results": file.name})
        return json.load(file)


def _beats(data, size):
    return [int.from_bytes(data[at:at + size], "little") for at in range(0, len(data), size)]


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def one_chunk(dut):
    fmt, head_dim = Format[arguments()["name"]], arguments()["head_dim"]
    tokens, size = arguments()["tokens"], arguments()["bus_bytes"]
    k, v = np.random.default_rng(1).normal(size=(2, tokens, head_dim))
    payload = encode_payload(fmt, k, v, exponent_block=32)
    await start(dut)
    stored, fault = StreamSink(dut, "o_stored"), StreamSink(dut, "o_fault")
    beats = _beats(payload, size)
    StreamSource(dut, "i_begin").send(
        [{"index": 0, "format": int(fmt), "tokens": tokens, "payload_beats": len(beats)}])
    StreamSource(dut, "i_payload").send(
        [{"data": beat, "last": index == len(beats) - 1, "cut": 0}
         for index, beat in enumerate(beats)])
    await fault.receive(1)
    assert fault.items == [{"reason": 0}]
    elements = decode_payload(fmt, payload, tokens=tokens, head_dim=head_dim, exponent_block=32)
    mantissas, _ = stored_rows(fmt, *elements, 32)
    rows = _beats(mxint.pack_row(mantissas).tobytes(), size)
    assert [item["data"] for item in stored.items] == rows
    times = stored.times
    with open(arguments()["results"], "w", encoding="utf-8") as file:
        json.dump({"streaming.huffman.beats_per_cycle":
                   len(rows) / (times[-1] - times[0] + 1)}, file)


if __name__ == "__main__":
    for key, value in measure().items():
        print(f"{key:40} {value:.4g}")
