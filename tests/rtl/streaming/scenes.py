"""What the benches of the receive path run on."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import WIRE_FORMATS, StreamingConfig
from hw.streaming.layouts import expected_chunk, stored_beat, verdict
from hw.streaming.receive import ReceivePath

CODED = tuple(name for name in WIRE_FORMATS if name.startswith("HUFFMAN"))


def make_config(bus_bytes, *, head_dim=32, block=32, formats=tuple(WIRE_FORMATS)):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block,
                           chunk_tokens=64, chunks=64, formats=formats)


CONFIGS = {
    "tiny": make_config(32),
    "narrow": make_config(8),
    "whole_row": make_config(16, head_dim=64, block=64),
    "wide": make_config(64, head_dim=64),
    "coded_only": make_config(16, formats=CODED),
    "d256": make_config(64, head_dim=256, block=256),
    "d128_8": make_config(8, head_dim=128),
    "d128_16": make_config(16, head_dim=128),
    "d128_32": make_config(32, head_dim=128),
    "d128_64": make_config(64, head_dim=128),
}


class AxiStreamReceivePath(wiring.Component):
    """A `ReceivePath` whose link has the names of AXI-Stream.

    Parameters
    ----------
    config : StreamingConfig
    """

    def __init__(self, config: StreamingConfig):
        self._config = config
        super().__init__({
            "s_axis_tdata": In(8 * config.bus_bytes),
            "s_axis_tkeep": In(config.bus_bytes),
            "s_axis_tlast": In(1),
            "s_axis_tvalid": In(1),
            "s_axis_tready": Out(1),
            "o_lookup": Out(stream.Signature(32)),
            "i_expected": In(stream.Signature(expected_chunk(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "o_verdict": Out(stream.Signature(verdict(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.path = path = ReceivePath(self.config)
        m.d.comb += [
            path.i_link.payload.data.eq(self.s_axis_tdata),
            path.i_link.payload.keep.eq(self.s_axis_tkeep),
            path.i_link.payload.last.eq(self.s_axis_tlast),
            path.i_link.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(path.i_link.ready),
        ]
        wiring.connect(m, path.o_lookup, wiring.flipped(self.o_lookup))
        wiring.connect(m, wiring.flipped(self.i_expected), path.i_expected)
        wiring.connect(m, path.o_stored, wiring.flipped(self.o_stored))
        wiring.connect(m, path.o_verdict, wiring.flipped(self.o_verdict))
        return m
