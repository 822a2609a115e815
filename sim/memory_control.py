"""Set up and look into the memory of a `sim.memory.MemoryBench` from a cocotb bench."""

from pathlib import Path

from cocotb.triggers import RisingEdge

from sim.memory import MemoryFault

__all__ = ["MemoryControl"]


class MemoryControl:
    """The controls of one memory of the top module.

    Parameters
    ----------
    dut : handle
        The top module.
    name : str
        Name of the control interface.
    """

    def __init__(self, dut, name="memory"):
        self._dut = dut
        self._name = name
        self.width = len(self._port("backdoor_read_data")) // 8

    def _port(self, name):
        return getattr(self._dut, f"{self._name}_{name}")

    def configure(self, *, read_latency=1, write_latency=1, shuffle=False, seed=None):
        """Set latencies in cycles, and whether beats are interleaved and late; from the next edge.

        ``seed`` is taken at reset, so give it before.
        """
        self._port("read_latency").value = read_latency
        self._port("write_latency").value = write_latency
        self._port("shuffle").value = int(shuffle)
        if seed is not None:
            self._port("seed").value = seed

    def set_fault(self, fault, base=0, limit=0):
        """Make the bursts that start in ``base <= address < limit`` fail; see `MemoryFault`."""
        self._port("fault").value = MemoryFault(fault).value
        self._port("fault_base").value = base
        self._port("fault_limit").value = limit

    async def load(self, contents):
        """Replace the memory from address 0 on, in one cycle whatever the size."""
        contents = bytes(contents)
        contents += bytes(-len(contents) % self.width)
        words = (contents[low:low + self.width][::-1].hex()
                 for low in range(0, len(contents), self.width))
        Path("memory.hex").write_text("\n".join(words) + "\n", encoding="ascii")
        await self._pulse("load")

    async def dump(self):
        """Return the whole memory as bytes."""
        await self._pulse("dump")
        words = Path("memory_dump.hex").read_text(encoding="ascii").split()
        return b"".join(bytes.fromhex(word)[::-1] for word in words if not word.startswith("//"))

    async def write(self, address, contents):
        """Write through the backdoor: whole words of the bus, one per cycle."""
        if address % self.width or len(contents) % self.width:
            raise ValueError(f"address and length must be multiples of {self.width}, "
                             f"not {address!r} and {len(contents)!r}")
        self._port("backdoor_write").value = 1
        for low in range(0, len(contents), self.width):
            self._port("backdoor_index").value = (address + low) // self.width
            word = int.from_bytes(contents[low:low + self.width], "little")
            self._port("backdoor_write_data").value = word
            await RisingEdge(self._dut.clk)
        self._port("backdoor_write").value = 0

    async def read(self, address, length):
        """Read through the backdoor, one word of the bus per cycle."""
        contents = b""
        first = address // self.width
        for index in range(first, -(-(address + length) // self.width)):
            self._port("backdoor_index").value = index
            await RisingEdge(self._dut.clk)
            word = self._port("backdoor_read_data").value.to_unsigned()
            contents += word.to_bytes(self.width, "little")
        skip = address - first * self.width
        return contents[skip:skip + length]

    @property
    def read_beats(self):
        """Beats read since reset."""
        return self._port("read_beats").value.to_unsigned()

    @property
    def write_beats(self):
        """Beats written since reset."""
        return self._port("write_beats").value.to_unsigned()

    def check(self):
        """Raise unless the master kept the rules of AXI since reset."""
        violations = self._port("violations").value.to_unsigned()
        assert violations == 0, f"the master broke the rules of AXI {violations} times"

    async def _pulse(self, name):
        self._port(name).value = 1
        await RisingEdge(self._dut.clk)
        self._port(name).value = 0
        await RisingEdge(self._dut.clk)
