"""Many write ports on one AXI4 bus."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.bus import axi4
from hw.bus.write_port import WritePort
from hw.checks import check_int
from hw.stream import Arbiter, Queue, SkidBuffer

__all__ = ["WriteMux"]


class WriteMux(wiring.Component):
    """Gives write ports an AXI4 id each, and takes their bursts in turn, data in the same order.

    A port's number is its id. AXI4 has no ids on the data channel: beats follow in the order of the
    bursts. So the data of a port wait for those of all bursts granted before, and a port that broke
    the first promise of `WritePort` would stop all the others. A request never waits for the data
    of its own burst.

    **Latency**: 1 cycle from ``port[n].aw`` to ``axi.aw``, 2 to the first beat on ``axi.w``, whose
    beats pass in 1 cycle each; none from ``axi.b`` to ``port[n].b``.

    **Throughput**: 1 burst and 1 beat per cycle, without a bubble between bursts, of one port or
    several. Ports that ask together are served round robin, so a port waits for one burst of each
    other port at most. ``axi.b.ready`` is that of the port addressed, which is always high for a
    port that keeps its promises.

    **Numerics**: none, the data pass unchanged.

    **Errors**: none of its own; ``response`` reaches the port. An answer with the id of no port is
    dropped.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bytes : int
        Width of a beat in bytes.
    ports : int
        Number of write ports, at least 1.
    bursts : int
        Bursts that may be asked for ahead of their data, at least 2.

    Members
    -------
    port : ``In(WritePort(address_bits, data_bytes)).array(ports)``
        The ports of the units inside.
    axi : ``Out(axi4.WriteSignature(address_bits, data_bytes, id_bits))``
        The bus.
    """

    def __init__(self, *, address_bits, data_bytes, ports, bursts=4):
        self._ports = check_int("WriteMux ports", ports, minimum=1)
        self._bursts = check_int("WriteMux bursts", bursts, minimum=2)
        signature = axi4.WriteSignature(address_bits, data_bytes, max(1, ceil_log2(ports)))
        self._address_bits = signature.address_bits
        self._data_bytes = signature.data_bytes
        self._id_bits = signature.id_bits
        super().__init__({
            "port": In(WritePort(address_bits, data_bytes)).array(ports),
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
    def bursts(self):
        return self._bursts

    @property
    def id_bits(self):
        """Width of the bus's ids."""
        return self._id_bits

    def elaborate(self, platform):
        m = Module()
        m.submodules.order = order = Queue(self.id_bits, depth=self.bursts)
        self._ask(m, order.i)
        self._send(m, order.o)
        self._answer(m)
        return m

    def _ask(self, m, order):
        """Grant a burst: its request leaves, and its data are next but those granted before."""
        m.submodules.arbiter = arbiter = Arbiter(self.port[0].aw.payload.shape(), count=self.ports)
        m.submodules.requests = requests = SkidBuffer(self.axi.aw.payload.shape())
        for port, contender in zip(self.port, arbiter.i, strict=True):
            wiring.connect(m, wiring.flipped(port.aw), contender)
        m.d.comb += [
            requests.i.payload.id.eq(arbiter.grant),
            requests.i.payload.addr.eq(arbiter.o.payload.address),
            requests.i.payload.len.eq(arbiter.o.payload.length),
            requests.i.payload.size.eq(axi4.beat_size(self.data_bytes)),
            requests.i.payload.burst.eq(axi4.Burst.INCR),
            requests.i.payload.cache.eq(axi4.CACHE),
            requests.i.payload.prot.eq(axi4.PROTECTION),
            order.payload.eq(arbiter.grant),
            requests.i.valid.eq(arbiter.o.valid & order.ready),
            order.valid.eq(arbiter.o.valid & requests.i.ready),
            arbiter.o.ready.eq(requests.i.ready & order.ready),
        ]
        wiring.connect(m, requests.o, wiring.flipped(self.axi.aw))

    def _send(self, m, order):
        """Take the beats of the oldest burst."""
        m.submodules.beats = beats = SkidBuffer(self.axi.w.payload.shape())
        with m.Switch(order.payload):
            for index, port in enumerate(self.port):
                with m.Case(index):
                    m.d.comb += [
                        beats.i.payload.data.eq(port.w.payload.data),
                        beats.i.payload.strb.eq(port.w.payload.strobe),
                        beats.i.payload.last.eq(port.w.payload.last),
                        beats.i.valid.eq(order.valid & port.w.valid),
                        port.w.ready.eq(order.valid & beats.i.ready),
                    ]
        m.d.comb += order.ready.eq(beats.i.valid & beats.i.ready & beats.i.payload.last)
        wiring.connect(m, beats.o, wiring.flipped(self.axi.w))

    def _answer(self, m):
        m.d.comb += self.axi.b.ready.eq(1)
        for index, port in enumerate(self.port):
            m.d.comb += port.b.payload.response.eq(self.axi.b.payload.resp)
            with m.If(self.axi.b.payload.id == index):
                m.d.comb += [
                    port.b.valid.eq(self.axi.b.valid),
                    self.axi.b.ready.eq(port.b.ready),
                ]
