"""The simulation memory as an Amaranth component, and the bench that puts a unit in front of it.

The memory itself is ``sim/rtl/axi_memory.sv``, so that no Python runs per cycle.
"""

from importlib.resources import files
from pathlib import Path

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axi4
from hw.checks import check_int

__all__ = ["AxiMemory", "ControlSignature", "MemoryBench", "MemoryFault", "memory_source"]


class MemoryFault(enum.Enum, shape=3):
    """What happens to bursts whose first address lies in ``fault_base`` .. ``fault_limit - 1``."""

    NONE = 0
    READ_SLVERR = 1
    READ_DECERR = 2
    READ_SHORT = 3
    READ_LONG = 4
    WRITE_SLVERR = 5
    WRITE_DECERR = 6


def memory_source() -> Path:
    """Path of the Verilog that a simulation with an `AxiMemory` must also compile."""
    return Path(str(files("sim") / "rtl" / "axi_memory.sv"))


class ControlSignature(wiring.Signature):
    """Set latency, faults and order while the simulation runs; look into the memory.

    Parameters
    ----------
    address_bits, data_bytes : int
        Of the bus.

    Members
    -------
    read_latency, write_latency : ``Out(16)``
        Cycles to the first beat, and from the last beat to the response. 0 is taken as 1.
    shuffle : ``Out(1)``
        Interleave beats of different ids, and be late at random.
    seed : ``Out(32)``
        Seed of ``shuffle``, taken at reset.
    fault, fault_base, fault_limit : ``Out``
        A `MemoryFault` and the addresses that it hits.
    load, dump : ``Out(1)``
        On a rising edge, read ``memory.hex`` or write ``memory_dump.hex`` in the folder of the run.
    backdoor_write, backdoor_index, backdoor_write_data : ``Out``
        Writes the word of the bus with this index at the clock edge.
    backdoor_read_data : ``In``
        The word at ``backdoor_index``, at once.
    read_beats, write_beats : ``In(32)``
        Beats transferred since reset.
    violations : ``In(16)``
        Rules of AXI that the master broke since reset.
    """

    def __init__(self, address_bits, data_bytes):
        super().__init__({
            "read_latency": Out(16),
            "write_latency": Out(16),
            "shuffle": Out(1),
            "seed": Out(32),
            "fault": Out(MemoryFault),
            "fault_base": Out(address_bits),
            "fault_limit": Out(address_bits),
            "load": Out(1),
            "dump": Out(1),
            "backdoor_write": Out(1),
            "backdoor_index": Out(32),
            "backdoor_write_data": Out(data_bytes * 8),
            "backdoor_read_data": In(data_bytes * 8),
            "read_beats": In(32),
            "write_beats": In(32),
            "violations": In(16),
        })


class AxiMemory(wiring.Component):
    """Memory behind an AXI4 bus; ``sim/rtl/axi_memory.sv`` tells its behaviour.

    **Latency**: as set, per request.

    **Throughput**: one read beat and one write beat per cycle.

    Parameters
    ----------
    address_bits, data_bytes, id_bits : int
        Of the bus.
    size_bytes : int
        Bytes held, from address 0: a power of two.
    outstanding : int
        Bursts that wait, per id for reads and in all for writes.

    Members
    -------
    axi : ``In(axi4.Signature(address_bits, data_bytes, id_bits))``
    control : ``In(ControlSignature(address_bits, data_bytes))``
    """

    def __init__(self, *, address_bits, data_bytes, id_bits, size_bytes, outstanding=64):
        signature = axi4.Signature(address_bits, data_bytes, id_bits)
        self._address_bits = signature.address_bits
        self._data_bytes = signature.data_bytes
        self._id_bits = signature.id_bits
        self._size_bytes = check_int("AxiMemory size_bytes", size_bytes, minimum=2 * data_bytes)
        if size_bytes & (size_bytes - 1):
            raise ValueError(f"AxiMemory size_bytes must be a power of two, not {size_bytes!r}")
        self._outstanding = check_int("AxiMemory outstanding", outstanding, minimum=2)
        super().__init__({
            "axi": In(signature),
            "control": In(ControlSignature(address_bits, data_bytes)),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes

    @property
    def id_bits(self):
        return self._id_bits

    @property
    def size_bytes(self):
        return self._size_bytes

    @property
    def outstanding(self):
        return self._outstanding

    def elaborate(self, platform):
        connections = [
            ("p", "ADDRESS_BITS", self.address_bits),
            ("p", "DATA_BYTES", self.data_bytes),
            ("p", "ID_BITS", self.id_bits),
            ("p", "SIZE_BYTES", self.size_bytes),
            ("p", "OUTSTANDING", self.outstanding),
            ("i", "clk", ClockSignal()),
            ("i", "rst", ResetSignal()),
        ]
        # Seen from the memory, an output of the signature is an input.
        directions = {Out: "i", In: "o"}
        control = ControlSignature(self.address_bits, self.data_bytes)
        connections += [(directions[member.flow], name, getattr(self.control, name))
                        for name, member in control.members.items()]
        # Attributes of a request that make no difference to a memory.
        ignored = {"cache", "prot", "qos"}
        for channel, member in axi4.Signature(
                self.address_bits, self.data_bytes, self.id_bits).members.items():
            forward = directions[member.flow]
            backward = "o" if forward == "i" else "i"
            port = getattr(self.axi, channel)
            connections += [(forward, channel + name, port.payload[name])
                            for name, _ in port.payload.shape() if name not in ignored]
            connections += [(forward, channel + "valid", port.valid),
                            (backward, channel + "ready", port.ready)]
        m = Module()
        m.submodules.memory = Instance("axi_memory", *connections)
        return m


class MemoryBench(wiring.Component):
    """A unit with its AXI4 port on an `AxiMemory`: the top of a simulation.

    Its ports are those of the unit, with the bus replaced by the memory's controls.

    Parameters
    ----------
    unit : wiring.Component
        The unit under test.
    size_bytes : int
        Bytes of the memory: a power of two.
    bus_name : str
        Name of the unit's AXI4 member; it may lack the read or the write channels.
    outstanding : int
        See `AxiMemory`.

    Members
    -------
    Those of ``unit`` except ``bus_name``, and
    memory : ``In(ControlSignature(...))``
    """

    def __init__(self, unit, *, size_bytes, bus_name="m_axi", outstanding=64):
        self._unit = unit
        self._bus_name = bus_name
        self._size_bytes = size_bytes
        self._outstanding = outstanding
        bus = unit.signature.members[bus_name].signature
        self._memory = AxiMemory(
            address_bits=bus.address_bits, data_bytes=bus.data_bytes, id_bits=bus.id_bits,
            size_bytes=size_bytes, outstanding=outstanding)
        members = {name: member for name, member in unit.signature.members.items()
                   if name != bus_name}
        super().__init__({**members, "memory": self._memory.signature.members["control"]})

    @property
    def unit(self):
        return self._unit

    @property
    def bus_name(self):
        return self._bus_name

    @property
    def size_bytes(self):
        return self._size_bytes

    @property
    def outstanding(self):
        return self._outstanding

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.submodules.memory = memory = self._memory
        bus = getattr(unit, self.bus_name)
        for channel in unit.signature.members[self.bus_name].signature.members:
            wiring.connect(m, getattr(bus, channel), getattr(memory.axi, channel))
        wiring.connect(m, wiring.flipped(self.memory), memory.control)
        for name, member in unit.signature.members.items():
            inner, outer = getattr(unit, name), getattr(self, name, None)
            if name == self.bus_name:
                continue
            if not member.is_port:
                wiring.connect(m, inner, wiring.flipped(outer))
            elif member.flow == Out:
                m.d.comb += outer.eq(inner)
            else:
                m.d.comb += inner.eq(outer)
        return m
