"""On-chip memory that an ASIC user can replace."""

from amaranth.hdl import ClockSignal, Instance, Module, Shape
from amaranth.lib import wiring
from amaranth.lib.memory import Memory, ReadPort, WritePort
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from hw.checks import check_int
from hw.platform import VerilogPlatform


class Sram(wiring.Component):
    """Memory with one write port and one synchronous read port.

    In Verilog a memory of at least ``VerilogPlatform.sram_threshold_bits`` is an instance of the
    macro ``kvs_sram``; a smaller one, and any in Amaranth's simulator, is a ``lib.memory.Memory``.
    ``DomainRenamer`` applies to it; ``ResetInserter`` and ``EnableInserter`` do not reach into the
    macro, so use the enables.

    **Latency**: 1 cycle from ``read.en`` to ``read.data``, which then holds until the next read.

    **Throughput**: 1 read and 1 write per cycle. A read of the address that is written in the same
    cycle returns the old word.

    **Numerics**: none, the data passes unchanged.

    **Errors**: none. Words are undefined until written, through a reset too; addresses of
    ``depth`` and above must not be used.

    Parameters
    ----------
    shape : shape-like
        Shape of a word.
    depth : int
        Number of words, at least 2.
    granularity : int or None
        Bits (of an unsigned word) or elements (of an array) for each bit of ``write.en``. ``None``:
        the whole word.

    Members
    -------
    write : ``Out(WritePort.Signature(...))``
        ``en`` (in), ``addr`` (in), ``data`` (in).
    read : ``Out(ReadPort.Signature(...))``
        ``en`` (in), ``addr`` (in), ``data`` (out).
    """

    def __init__(self, shape, *, depth, granularity=None):
        self._shape = shape
        self._depth = check_int("Sram depth", depth, minimum=2)
        self._granularity = granularity
        addr_width = ceil_log2(depth)
        super().__init__({
            "write": Out(WritePort.Signature(
                addr_width=addr_width, shape=shape, granularity=granularity)),
            "read": Out(ReadPort.Signature(addr_width=addr_width, shape=shape)),
        })

    @property
    def shape(self):
        return self._shape

    @property
    def depth(self):
        return self._depth

    @property
    def granularity(self):
        return self._granularity

    @property
    def width(self):
        """Bits of a word."""
        return Shape.cast(self.shape).width

    def elaborate(self, platform):
        m = Module()
        if (isinstance(platform, VerilogPlatform)
                and self.width * self.depth >= platform.sram_threshold_bits):
            self._build_macro(m, platform)
        else:
            self._build_memory(m)
        return m

    def _build_memory(self, m):
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write_port = memory.write_port(granularity=self.granularity)
        read_port = memory.read_port()
        m.d.comb += [
            write_port.en.eq(self.write.en),
            write_port.addr.eq(self.write.addr),
            write_port.data.eq(self.write.data),
            read_port.en.eq(self.read.en),
            read_port.addr.eq(self.read.addr),
            self.read.data.eq(read_port.data),
        ]

    def _build_macro(self, m, platform):
        platform.use_macro("kvs_sram")
        m.submodules.macro = Instance(
            "kvs_sram",
            p_WIDTH=self.width,
            p_DEPTH=self.depth,
            p_GRANULE=self.width // len(self.write.en),
            i_clk=ClockSignal(),
            i_write_en=self.write.en,
            i_write_addr=self.write.addr,
            i_write_data=self.write.data,
            i_read_en=self.read.en,
            i_read_addr=self.read.addr,
            o_read_data=self.read.data,
        )
