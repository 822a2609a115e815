"""What the benches of the retrieval and their pytest file must agree on."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.attention.retrieval import Retrieval
from hw.bus import axi4
from hw.bus.read_mux import ReadMux
from hw.presets import PRESETS
from tests.retrieval_scenes import make_config

SIZE = 1 << 18

CONFIGS = {
    "tiny": PRESETS["tiny"].attention,
    "group_4": make_config(lanes=16, code_bits=64, group=4, max_tokens=1024, bins_per_cycle=8),
    "group_8": make_config(lanes=32, code_bits=128, group=8, max_tokens=768, head_dim=64,
                           memory_bytes=32, bins_per_cycle=16),
    "lanes_64": make_config(lanes=64, code_bits=32, group=3, max_tokens=1024, bins_per_cycle=1),
    "streamed_16": make_config(lanes=16, code_bits=64, max_tokens=1024, code_source="streamed"),
    "streamed_32": make_config(lanes=32, code_bits=128, group=2, max_tokens=1024, head_dim=128,
                               memory_bytes=64, exponent_block=128, code_source="streamed"),
}


class StreamedSystem(wiring.Component):
    """The unit with its read port on an AXI4 bus."""

    def __init__(self, config):
        self._config = config
        self._unit = Retrieval(config)
        self._mux = ReadMux(address_bits=config.address_bits, data_bytes=config.memory_bytes,
                            ports=1)
        members = {name: member for name, member in self._unit.signature.members.items()
                   if name != "bus"}
        super().__init__({**members, "m_axi": Out(
            axi4.ReadSignature(config.address_bits, config.memory_bytes, 1))})

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.submodules.mux = mux = self._mux
        wiring.connect(m, unit.bus, mux.port[0])
        wiring.connect(m, mux.axi, wiring.flipped(self.m_axi))
        for name, member in unit.signature.members.items():
            if member.is_port:
                m.d.comb += getattr(self, name).eq(getattr(unit, name))
            elif name != "bus":
                wiring.connect(m, getattr(unit, name), wiring.flipped(getattr(self, name)))
        return m
