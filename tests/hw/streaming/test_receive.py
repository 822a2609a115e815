import numpy as np
import pytest

from golden.streaming.errors import Reason as Golden
from golden.streaming.wire import HEADER_BYTES, TRAILER_BYTES
from hw.config import StreamingConfig
from hw.streaming.layouts import Reason
from hw.streaming.receive import ReceivePath
from tests.hw.harness import run_stream_test
from tests.hw.streaming.frames import Awaited, link_beats, make_chunk, make_frame
from tests.hw.streaming.payloads import FIXED, golden_stored


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_frames_good_damaged_and_unknown(stall):
    """Rows of every frame whose content may be trusted, and the golden reason for each packet."""
    config = StreamingConfig(head_dim=32, bus_bytes=16, chunk_tokens=64, chunks=16, formats=FIXED)
    rng = np.random.default_rng(3)
    chunks = [make_chunk(config, rng, tokens=tokens, chunk_id=index)
              for index, tokens in enumerate([1, 17, 3, 2, 4])]
    awaited = Awaited(config, chunks[:4])  # the last one is not
    frames = [make_frame(chunk, name, rng)
              for chunk, name in zip(chunks, ["INT8", "FP16", "MXINT8", "INT4", "BF16"],
                                     strict=True)]
    broken = bytearray(frames[0])
    broken[-TRAILER_BYTES] ^= 1  # the payload's CRC: the rows are whole, the chunk is refused
    names = ["INT8", "INT8", None, "FP16", "MXINT8", "INT4"]
    packets = [frames[0], bytes(broken), frames[4], frames[1], frames[2], frames[3]]
    tokens = [1, 1, 0, 17, 3, 2]

    stored, reasons = [], []
    for packet, name, count in zip(packets, names, tokens, strict=True):
        outcome = awaited.decode(packet)
        reasons.append(Reason(int(getattr(outcome, "reason", 0))))
        if name is not None:
            payload = packet[HEADER_BYTES:-TRAILER_BYTES]
            _, rows = golden_stored(config, name, payload, count)
            stored += rows
    assert Reason(int(Golden.CHUNK)) in reasons
    assert Reason(int(Golden.PAYLOAD_CRC)) in reasons

    dut = ReceivePath(config)

    async def answer(ctx):
        while True:
            ctx.set(dut.o_lookup.ready, 1)
            _, _, asked, chunk_id = await ctx.tick().sample(
                dut.o_lookup.valid, dut.o_lookup.payload)
            if not asked:
                continue
            ctx.set(dut.o_lookup.ready, 0)
            ctx.set(dut.i_expected.payload, awaited.answer(chunk_id))
            ctx.set(dut.i_expected.valid, 1)
            while True:
                _, _, taken = await ctx.tick().sample(dut.i_expected.ready)
                if taken:
                    break
            ctx.set(dut.i_expected.valid, 0)

    result = run_stream_test(
        dut,
        feeds={"i_link": [beat for packet in packets
                          for beat in link_beats(packet, config.bus_bytes)]},
        sinks={"o_stored": len(stored), "o_verdict": len(packets)},
        seed=4, stall_probability=stall, testbenches=[answer], timeout_cycles=20_000)
    assert [verdict["reason"] for verdict in result.outputs["o_verdict"]] == reasons
    assert result.outputs["o_stored"] == stored
