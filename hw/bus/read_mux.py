"""Many read ports on one AXI4 bus."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.bus import axi4
from hw.bus.read_port import ReadPort
from hw.checks import check_int
from hw.stream import Arbiter, SkidBuffer

__all__ = ["ReadMux"]


class ReadMux(wiring.Component):
    """Gives read ports an AXI4 id each, and takes their bursts in turn.

    A port's number is its id. The bus keeps the beats of one id in order; across ids they may come
    late, and interleaved.

    **Latency**: 1 cycle from ``port[n].ar`` to ``axi.ar``; none from ``axi.r`` to ``port[n].r``.

    **Throughput**: 1 burst and 1 beat per cycle. Ports that ask together are served round robin.
    ``axi.r.ready`` is that of the port addressed, which is always high for a port that keeps the
    rule of `ReadPort`.

    **Numerics**: none, the data pass unchanged.

    **Errors**: none of its own; ``response`` reaches the port. A beat with the id of no port is
    dropped.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bytes : int
        Width of a beat in bytes.
    ports : int
        Number of read ports, at least 1.

    Members
    -------
    port : ``In(ReadPort(address_bits, data_bytes)).array(ports)``
        The ports of the units inside.
    axi : ``Out(axi4.ReadSignature(address_bits, data_bytes, id_bits))``
        The bus.
    """

    def __init__(self, *, address_bits, data_bytes, ports):
        self._ports = check_int("ReadMux ports", ports, minimum=1)
        signature = axi4.ReadSignature(address_bits, data_bytes, max(1, ceil_log2(ports)))
        self._address_bits = signature.address_bits
        self._data_bytes = signature.data_bytes
        self._id_bits = signature.id_bits
        super().__init__({
            "port": In(ReadPort(address_bits, data_bytes)).array(ports),
            "axi": Out(signature),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes

    @property
    def ports(self):
        return self._ports

    @property
    def id_bits(self):
        """Width of the bus's ids."""
        return self._id_bits

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = Arbiter(self.port[0].ar.payload.shape(), count=self.ports)
        m.submodules.slice = output = SkidBuffer(self.axi.ar.payload.shape())

        for port, contender in zip(self.port, arbiter.i, strict=True):
            wiring.connect(m, wiring.flipped(port.ar), contender)
        m.d.comb += [
            output.i.payload.id.eq(arbiter.grant),
            output.i.payload.addr.eq(arbiter.o.payload.address),
            output.i.payload.len.eq(arbiter.o.payload.length),
            output.i.payload.size.eq(axi4.beat_size(self.data_bytes)),
            output.i.payload.burst.eq(axi4.Burst.INCR),
            output.i.payload.cache.eq(axi4.CACHE),
            output.i.payload.prot.eq(axi4.PROTECTION),
            output.i.valid.eq(arbiter.o.valid),
            arbiter.o.ready.eq(output.i.ready),
        ]
        wiring.connect(m, output.o, wiring.flipped(self.axi.ar))

        m.d.comb += self.axi.r.ready.eq(1)
        for index, port in enumerate(self.port):
            m.d.comb += [
                port.r.payload.data.eq(self.axi.r.payload.data),
                port.r.payload.response.eq(self.axi.r.payload.resp),
                port.r.payload.last.eq(self.axi.r.payload.last),
            ]
            with m.If(self.axi.r.payload.id == index):
                m.d.comb += [
                    port.r.valid.eq(self.axi.r.valid),
                    self.axi.r.ready.eq(port.r.ready),
                ]
        return m
