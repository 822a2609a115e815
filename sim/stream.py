"""Drive and watch the streams of a model under cocotb.

Values are what `sim.payload` packs and unpacks, by the layout in the unit's sidecar: dicts for
structs, lists for arrays. The channels of an AXI interface are streams too (``"m_axi_ar"``), with a
dict of their fields as value.
"""

import random
from collections import deque

from cocotb import start_soon
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event, RisingEdge

from sim.payload import pack, unpack
from sim.testbench import CLOCK_NS, sidecar

__all__ = ["StreamMonitor", "StreamPort", "StreamSink", "StreamSource"]


def _read(handle):
    value = handle.value
    return value.to_unsigned() if len(handle) > 1 else int(value)


class StreamPort:
    """Handles of one stream of the top module."""

    def __init__(self, dut, name):
        self.name = name
        self.clk = dut.clk
        description = sidecar()
        ports = [] if description is None else description["ports"]
        ports = [port for port in ports if port.get("stream") == name]
        roles = {port["name"][len(name):].lstrip("_"): port for port in ports}
        if not ports:  # a wrapper in Verilog: the payload is plain bits
            payload = getattr(dut, f"{name}_payload")
            roles = {role: {"name": f"{name}_{role}"} for role in ("valid", "ready")}
            roles["payload"] = {"name": f"{name}_payload", "width": len(payload), "signed": False}
        self.valid = getattr(dut, roles.pop("valid")["name"])
        self.ready = getattr(dut, roles.pop("ready")["name"])
        self._fields = {role: (getattr(dut, port["name"]), port) for role, port in roles.items()}
        self._is_plain = list(self._fields) == ["payload"]

    def write(self, value):
        """Drive the payload."""
        if self._is_plain:
            handle, shape = self._fields["payload"]
            handle.value = pack(shape, value)
            return
        for role, (handle, shape) in self._fields.items():
            handle.value = pack(shape, value.get(role, 0))

    def read_bits(self):
        """The payload as an integer, or a tuple of them for the channel of an AXI interface."""
        bits = tuple(_read(handle) for handle, _ in self._fields.values())
        return bits[0] if self._is_plain else bits

    def unpack(self, bits):
        """The value of what `read_bits` returned."""
        if self._is_plain:
            return unpack(self._fields["payload"][1], bits)
        return {role: unpack(shape, field_bits)
                for (role, (_, shape)), field_bits in zip(self._fields.items(), bits, strict=True)}


class StreamSource:
    """Drives an input stream of the unit with queued values.

    Parameters
    ----------
    dut : handle
        The top module.
    name : str
        Name of the stream.
    idle_probability : float
        Share of the cycles in which ``valid`` stays low although a value is queued.
    on_item : callable or None
        Called with each value when the unit has taken it.
    """

    def __init__(self, dut, name, *, idle_probability=0.0, on_item=None):
        self.port = StreamPort(dut, name)
        self.idle_probability = idle_probability
        self.on_item = on_item
        self.sent = 0
        self._queue = deque()
        self._filled = Event()
        self._emptied = Event()
        # A generator of its own, so that another stream's timing does not change this one's.
        self._random = random.Random(random.getrandbits(64))
        self.port.valid.value = 0
        self._task = start_soon(self._drive())

    def send(self, values):
        """Queue values, in order, behind those queued before."""
        self._queue.extend(values)
        self._emptied.clear()
        self._filled.set()

    async def drained(self):
        """Wait until the unit has taken all that was queued."""
        while self._queue:
            await self._emptied.wait()

    def stop(self):
        """Leave the port alone from now on, for a reset in mid-stream."""
        self._task.cancel()
        self.port.valid.value = 0

    async def _drive(self):
        port = self.port
        edge = RisingEdge(port.clk)
        while True:
            if not self._queue:
                self._filled.clear()
                self._emptied.set()
                await self._filled.wait()
            while self._random.random() < self.idle_probability:
                await edge
            port.write(self._queue[0])
            port.valid.value = 1
            await edge
            while not port.ready.value:
                await RisingEdge(port.ready)  # sleeps while the unit is busy
                await edge
            value = self._queue.popleft()
            self.sent += 1
            port.valid.value = 0
            if self.on_item is not None:
                self.on_item(value)


class StreamSink:
    """Takes the items of an output stream of the unit.

    Without stalls it sleeps while the stream is idle, so that long waits cost nothing.

    Parameters
    ----------
    dut : handle
        The top module.
    name : str
        Name of the stream.
    stall_probability : float
        Share of the cycles in which ``ready`` is low.
    on_item : callable or None
        Called with each item, such as the ``check`` of a scoreboard.

    Attributes
    ----------
    items : list
        All items taken.
    times : list of int
        Clock cycle, since the start of the simulation, of each.
    """

    def __init__(self, dut, name, *, stall_probability=0.0, on_item=None):
        self.port = StreamPort(dut, name)
        self.stall_probability = stall_probability
        self.on_item = on_item
        self.items = []
        self.times = []
        self._arrived = Event()
        self._random = random.Random(random.getrandbits(64))
        self.port.ready.value = 0
        self._task = start_soon(self._take())

    async def receive(self, count):
        """Wait until ``count`` items have come in all, and return the list of all so far."""
        while len(self.items) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return self.items

    def stop(self):
        """Leave the port alone from now on, for a reset in mid-stream."""
        self._task.cancel()

    async def _take(self):
        port = self.port
        edge = RisingEdge(port.clk)
        stalls = self.stall_probability > 0
        port.ready.value = 1
        while True:
            if stalls:
                ready = self._random.random() >= self.stall_probability
                port.ready.value = int(ready)
            else:
                ready = True
                if not port.valid.value:
                    await RisingEdge(port.valid)
            await edge
            if ready and port.valid.value:
                item = port.unpack(port.read_bits())
                self.items.append(item)
                self.times.append(int(get_sim_time("ns")) // CLOCK_NS)
                if self.on_item is not None:
                    self.on_item(item)
                self._arrived.set()


class StreamMonitor:
    """Watches a stream that others drive, and checks its rules in every cycle.

    ``valid`` must not drop, and the payload must not change, before the transfer; ``valid`` must
    not be unknown. A breach fails the test.

    Parameters
    ----------
    dut : handle
        The top module.
    name : str
        Name of the stream.
    on_item : callable or None
        Called with each item transferred.
    """

    def __init__(self, dut, name, *, on_item=None):
        self.port = StreamPort(dut, name)
        self.on_item = on_item
        self.items = []
        self._reset = dut.rst
        self._task = start_soon(self._watch())

    def stop(self):
        """Leave the port alone from now on, for a reset in mid-stream."""
        self._task.cancel()

    async def _watch(self):
        port = self.port
        edge = RisingEdge(port.clk)
        pending = None
        while True:
            await edge
            if self._reset.value:
                pending = None
                continue
            valid = bool(port.valid.value)
            if pending is not None:
                assert valid, f"{port.name} dropped valid before a transfer"
            if not valid:
                continue
            bits = port.read_bits()
            if pending is not None:
                assert bits == pending, f"{port.name} changed its payload before a transfer"
            if port.ready.value:
                pending = None
                item = port.unpack(bits)
                self.items.append(item)
                if self.on_item is not None:
                    self.on_item(item)
            else:
                pending = bits
