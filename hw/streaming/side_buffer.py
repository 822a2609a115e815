"""Side block of the page that is being decoded."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.config import EXPONENT_BITS, StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.wire import ROWS_PER_PAGE, SCALE_BYTES, has_scales, is_coded, side_bytes

__all__ = ["SideBuffer", "side_entry"]


def side_entry(config: StreamingConfig) -> data.StructLayout:
    """Side information of a row: the bfloat16 scales of its token's K and V, or its exponents."""
    return data.StructLayout({
        "scales": data.ArrayLayout(8 * SCALE_BYTES, 2),
        "exponents": data.ArrayLayout(EXPONENT_BITS, config.blocks),
    })


class SideBuffer(wiring.Component):
    """Holds a side block as it came, and finds the entry of a row in it.

    **Latency**: an entry may be read from the cycle after its beat was written; reading is
    combinational (distributed RAM on an FPGA, 64 to 256 bytes).

    **Throughput**: a beat written and an entry read per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig
        With at least one fixed-rate format that has a side block.

    Members
    -------
    enable : ``In(1)``
        Write a beat.
    index : ``In(range(beats of the largest side block))``
        Which one.
    data : ``In(8 * bus_bytes)``
    row : ``In(range(32))``
    entry : ``Out(side_entry(config))``
        The entry of ``row``, read as scales and as exponents: one of them means something.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("SideBuffer", config)
        sizes = [side_bytes(name, config.blocks) for name in config.formats if not is_coded(name)]
        if not any(sizes):
            raise ValueError("SideBuffer config.formats must have a fixed-rate format with a side "
                             f"block, not {config.formats!r}")
        self._depth = max(sizes) // config.bus_bytes
        super().__init__({
            "enable": In(1),
            "index": In(range(self._depth)),
            "data": In(8 * config.bus_bytes),
            "row": In(range(ROWS_PER_PAGE)),
            "entry": Out(side_entry(config)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def depth(self) -> int:
        """Beats of the largest side block."""
        return self._depth

    def elaborate(self, platform):
        m = Module()
        m.submodules.beats = beats = Memory(shape=len(self.data), depth=self.depth, init=[])
        write = beats.write_port()
        m.d.comb += [
            write.en.eq(self.enable),
            write.addr.eq(self.index),
            write.data.eq(self.data),
        ]
        formats = [name for name in self.config.formats if not is_coded(name)]
        if any(has_scales(name) for name in formats):
            self._read(m, beats, self.entry.scales.as_value(), self.row[1:])
        if "MXINT8" in formats:
            self._read(m, beats, self.entry.exponents.as_value(), self.row)
        return m

    def _read(self, m, beats, entry, index):
        """Find an entry in a block of entries of this size."""
        read = beats.read_port(domain="comb")
        lane_bits = (len(self.data) // len(entry)).bit_length() - 1
        m.d.comb += [
            read.addr.eq(index[lane_bits:]),
            entry.eq(read.data.word_select(index[:lane_bits], len(entry))),
        ]
