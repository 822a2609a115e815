"""Requests of a route that are in flight."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import PREDICTION_BITS, TICK_BITS, compute_request
from hw.streaming.scheduler.layouts import OUTSTANDING_MAX, flight

__all__ = ["Flying"]


class Flying(wiring.Component):
    """Requests in flight, oldest first and without gaps, and the sending of them.

    A request is in flight from the decision on, and sent when ``o`` takes it. One that ends before
    is never sent: those not sent yet are always the newest ones.

    **Latency**: 1 cycle from ``append`` to ``o``. ``busy`` for at most 1 + 2 * 16 cycles from
    ``remove`` or ``extend`` on.

    **Throughput**: one at a time; ``append``, ``remove``, ``extend`` not while ``busy``.

    **Numerics**: ``flying`` of ``golden.streaming.work.Work``.

    **Errors**: none. Requests appended are at most 16, those removed or extended are there.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    append : ``In(1)``, flight : ``In(flight(config))``
    remove, extend : ``In(1)``, chunk : ``In(chunk_bits)``
        The request for a chunk has ended, or gets late no more.
    busy : ``Out(1)``
    removed, was_sent : ``Out(1)``, removed_chunk : ``Out(chunk_bits)``
        ``removed`` is high for a cycle when the request to remove was found, while still ``busy``;
        whether it had been sent, and for which chunk.
    count : ``Out(range(17))``
    oldest_ticks : ``Out(24)``
        Predicted ticks of the oldest; 0 if there is none.
    index : ``In(range(16))``, seen : ``Out(flight(config))``
        Look at any request while not ``busy``, within the cycle.
    o : ``Out(stream.Signature(compute_request(config)))``
        Requests to send. ``valid`` falls while ``busy``.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Flying", config)
        super().__init__({
            "append": In(1), "flight": In(flight(config)),
            "remove": In(1), "extend": In(1), "chunk": In(config.chunk_bits),
            "busy": Out(1), "removed": Out(1), "was_sent": Out(1),
            "removed_chunk": Out(config.chunk_bits),
            "count": Out(range(OUTSTANDING_MAX + 1)),
            "oldest_ticks": Out(PREDICTION_BITS),
            "index": In(range(OUTSTANDING_MAX)), "seen": Out(flight(config)),
            "o": Out(stream.Signature(compute_request(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=flight(self.config), depth=OUTSTANDING_MAX, init=[])
        write = memory.write_port()
        look, send = memory.read_port(domain="comb"), memory.read_port(domain="comb")

        chunk = Signal(self.config.chunk_bits)
        removes = Signal()
        index = Signal(range(OUTSTANDING_MAX))
        sent, is_sent = Signal.like(self.count), Signal()
        m.d.comb += [
            self.seen.eq(look.data),
            send.addr.eq(sent),
            self.o.payload.chunk.eq(send.data.chunk),
            self.o.payload.state_only.eq(send.data.state_only),
            self.o.valid.eq((sent != self.count) & ~self.busy),
            is_sent.eq(index < sent),
            self.removed_chunk.eq(chunk),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += sent.eq(sent + 1)

        m.d.sync += [self.removed.eq(0), self.was_sent.eq(is_sent)]
        with m.FSM(name="state") as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.comb += [
                    look.addr.eq(self.index),
                    write.en.eq(self.append),
                    write.addr.eq(self.count),
                    write.data.eq(self.flight),
                ]
                with m.If(self.append):
                    m.d.sync += self.count.eq(self.count + 1)
                    with m.If(self.count == 0):
                        m.d.sync += self.oldest_ticks.eq(self.flight.ticks)
                m.d.sync += [chunk.eq(self.chunk), removes.eq(self.remove), index.eq(0)]
                with m.If(self.remove | self.extend):
                    m.next = "FIND"
            with m.State("FIND"):
                m.d.comb += look.addr.eq(index)
                with m.If(look.data.chunk != chunk):
                    m.d.sync += index.eq(index + 1)
                with m.Elif(removes):
                    m.d.sync += [
                        self.removed.eq(1),
                        self.count.eq(self.count - 1),
                        sent.eq(sent - is_sent),
                    ]
                    with m.If(index == 0):
                        m.d.sync += self.oldest_ticks.eq(0)
                    m.next = "CLOSE"
                with m.Else():
                    m.d.comb += [
                        write.en.eq(1),
                        write.addr.eq(index),
                        write.data.eq(look.data),
                        write.data.late_at.eq(1 << TICK_BITS),
                    ]
                    m.next = "IDLE"
            with m.State("CLOSE"):
                m.d.comb += [
                    look.addr.eq(index + 1),
                    write.addr.eq(index),
                    write.data.eq(look.data),
                    write.en.eq(index < self.count),
                ]
                m.d.sync += index.eq(index + 1)
                with m.If(write.en & (index == 0)):
                    m.d.sync += self.oldest_ticks.eq(look.data.ticks)
                with m.If(index + 1 >= self.count):
                    m.next = "IDLE"
        return m
