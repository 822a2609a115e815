"""What has been requested of the routes, and how fast they answer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import TICK_BITS, Route, compute_request, schedule_policy
from hw.streaming.scheduler.flying import Flying
from hw.streaming.scheduler.layouts import OUTSTANDING_MAX, Task, effects, flight, row
from hw.streaming.scheduler.link_port import LinkPort
from hw.streaming.scheduler.meter import RATIO_BITS, Meter

__all__ = ["Traffic"]


class Traffic(wiring.Component):
    """Wiring of both routes' `Flying` and `Meter` with the `LinkPort`.

    **Latency**: 2 cycles from ``depart`` to a request on ``o_compute``, 3 to one on ``o_link``.

    **Throughput**: see `Flying`.

    **Numerics**: ``flying`` and ``meter`` of ``golden.streaming.work.Work``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    effects : ``In(effects(config))``, row : ``In(row(config))``
        Of the effects ``depart``, ``land`` with ``measured``, and ``extend``.
    policy : ``In(schedule_policy(config))``
    time : ``In(32)``
        Of the event.
    begins : ``In(1)``
        A job begins.
    expires : ``In(1)``
        What lands has expired.
    hold : ``In(1)``
        Answers of the link wait.
    counts : ``Out(range(17)).array(2)``, busy : ``Out(2)``
        Requests in flight, by route; not to be touched while ``busy``.
    index : ``In(range(16))``, seen : ``Out(flight(config)).array(2)``
        Look at any of them.
    measure : ``In(1)``, measuring : ``Out(2)``, estimates : ``Out(16).array(2)``
        Of the meters.
    is_clear : ``Out(1)``
        Nothing is to be given up on the link.
    o_link, o_cancel : ``Out(stream.Signature(chunk_bits))``
    o_compute : ``Out(stream.Signature(compute_request(config)))``
        ``valid`` may fall without a transfer.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Traffic", config)
        bits, routes = config.chunk_bits, len(Route)
        super().__init__({
            "effects": In(effects(config)), "row": In(row(config)),
            "policy": In(schedule_policy(config)),
            "time": In(TICK_BITS),
            "begins": In(1), "expires": In(1), "hold": In(1),
            "counts": Out(range(OUTSTANDING_MAX + 1)).array(routes), "busy": Out(routes),
            "index": In(range(OUTSTANDING_MAX)), "seen": Out(flight(config)).array(routes),
            "measure": In(1), "measuring": Out(routes),
            "estimates": Out(RATIO_BITS).array(routes),
            "is_clear": Out(1),
            "o_link": Out(stream.Signature(bits)), "o_cancel": Out(stream.Signature(bits)),
            "o_compute": Out(stream.Signature(compute_request(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        # A register between a decision and its being carried out; `busy` covers it.
        effects, row = Signal.like(self.effects), Signal.like(self.row)
        m.d.sync += [effects.eq(self.effects), row.eq(self.row)]
        timeouts = (self.policy.stream_timeout, self.policy.compute_timeout)
        late_at = (row.deadline, 1 << TICK_BITS)
        extends = (effects.extend, 0)
        flying = []
        for route in Route:
            index, name = route.value, route.name.lower()
            unit = Flying(self.config)
            flying.append(unit)
            m.submodules[f"flying_{name}"] = unit
            m.d.comb += [
                unit.append.eq(effects.depart[index]),
                unit.flight.chunk.eq(row.chunk),
                unit.flight.ticks.eq(row.ticks[index]),
                unit.flight.silent_at.eq(self.time + timeouts[index]),
                unit.flight.late_at.eq(late_at[index]),
                unit.flight.state_only.eq(row.word.tasks[0] == Task.DONE),
                unit.remove.eq(effects.land[index]),
                unit.extend.eq(extends[index]),
                unit.chunk.eq(row.chunk),
                unit.index.eq(self.index),
                self.seen[index].eq(unit.seen),
                self.counts[index].eq(unit.count),
                self.busy[index].eq(unit.busy | unit.append | unit.remove | unit.extend),
            ]
            m.submodules[f"meter_{name}"] = meter = Meter()
            self._connect_meter(m, index, effects, row, unit, meter)
        self._connect_requests(m, *flying)
        return m

    def _connect_meter(self, m, index, effects, row, flying, meter):
        lands = effects.land[index]
        leaves_idleness = effects.depart[index] & (flying.count == 0)
        m.d.comb += [
            meter.now.eq(self.time),
            meter.window_log2.eq(self.policy.window_log2),
            meter.begin.eq(self.begins),
            meter.record.eq(lands & effects.measured),
            meter.restart.eq(lands & ~effects.measured | leaves_idleness),
            meter.measure.eq(self.measure),
            meter.predicted.eq(Mux(lands, row.ticks[index], flying.oldest_ticks)),
            self.measuring[index].eq(meter.busy),
            self.estimates[index].eq(meter.estimate),
        ]

    def _connect_requests(self, m, streaming, computing):
        m.submodules.link_port = port = LinkPort(self.config)
        connect(m, streaming.o, port.i)
        connect(m, port.o_link, flipped(self.o_link))
        connect(m, port.o_cancel, flipped(self.o_cancel))
        m.d.comb += [
            port.withdraw.eq(streaming.removed & streaming.was_sent),
            port.expired.eq(self.expires),
            port.chunk.eq(streaming.removed_chunk),
            port.hold.eq(self.hold),
            self.is_clear.eq(port.is_clear),
            # What the link may still write is not computed.
            self.o_compute.payload.eq(computing.o.payload),
            self.o_compute.valid.eq(computing.o.valid & port.is_clear),
            computing.o.ready.eq(self.o_compute.ready & port.is_clear),
        ]
