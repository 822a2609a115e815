"""Search through a queue, a list or the columns."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import STAGE_BITS, Route
from hw.streaming.scheduler.actor import Call, actor_members, read
from hw.streaming.scheduler.layouts import Source, Task, Wanted, grid, scan_request, scan_result

__all__ = ["Scan"]


class Scan(wiring.Component):
    """Looks for the first chunk of a kind: an entry per cycle goes from its source through the
    chunk table, and is judged.

    **Latency**: 6 + k cycles from ``start`` to ``done`` if the k-th entry from 0 is found; 5 + n if
    none of n is, 2 if n is 0.

    **Throughput**: one call at a time.

    **Numerics**: ``candidates`` and ``latest`` of ``golden.streaming.work.Work``, and the columns
    of ``golden.streaming.refine.Refinement``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    call : ``In(Call(scan_request(config), scan_result(config)))``
    grid : ``In(grid(config))``
    horizons : ``In(STAGE_BITS).array(2)``
        By route.
    read_work : ``Out(2)``, read_columns : ``Out(1)``, from_queue : ``Out(1)``
        Read an entry of a route's `Work`, or of `Columns`.
    index : ``Out(chunk_bits)``
    entries : ``In(chunk_bits).array(3)``, is_top : ``In(1)``
        What was read, of the routes and the columns.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Scan", config)
        bits = config.chunk_bits
        super().__init__({
            **actor_members(config),
            "call": In(Call(scan_request(config), scan_result(config))),
            "grid": In(grid(config)),
            "horizons": In(STAGE_BITS).array(len(Route)),
            "read_work": Out(len(Route)), "read_columns": Out(1), "from_queue": Out(1),
            "index": Out(bits),
            "entries": In(bits).array(len(Route) + 1), "is_top": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        bits = self.config.chunk_bits
        request, result = Signal(scan_request(self.config)), self.call.result
        is_columns = request.source == Source.COLUMNS
        index, left = Signal(bits), Signal(bits + 1)
        # An entry has been read; its row is asked for; is read; and is shown.
        place = data.StructLayout({"valid": 1, "index": bits, "is_top": 1})
        fetched, asked, looked_up, shown = pipeline = [
            Signal(place, name=name) for name in ("fetched", "asked", "looked_up", "shown")]
        is_found, is_over = Signal(), Signal()
        fetches = Signal()
        m.d.comb += [
            self.index.eq(index),
            self.from_queue.eq(request.source == Source.QUEUE),
            self.read_columns.eq(fetches & is_columns),
            self.read_work[0].eq(fetches & ~is_columns & (request.route == Route.STREAM)),
            self.read_work[1].eq(fetches & ~is_columns & (request.route == Route.COMPUTE)),
            result.found.eq(is_found),
            result.index.eq(shown.index),
        ]
        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.sync += [
                    request.eq(self.call.argument),
                    index.eq(self.call.argument.first),
                    left.eq(self.call.argument.count),
                    *(stage.valid.eq(0) for stage in pipeline),
                    is_found.eq(0),
                    result.near.eq(0),
                ]
                with m.If(self.call.start):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += fetches.eq(left != 0)
                m.d.sync += [left.eq(left - fetches), is_found.eq(0)]
                self._judge(m, request, shown, is_found, is_over)
                with m.If(is_over):
                    m.d.comb += self.effects.hold.eq(1)
                    m.next = "DONE"
                with m.Else():
                    with m.If(fetched.valid):
                        m.d.comb += read(self, self._entry(request))
                    m.d.sync += [
                        asked.eq(fetched), asked.is_top.eq(self.is_top),
                        looked_up.eq(asked),
                        shown.eq(looked_up),
                    ]
                    with m.If((left == 0) & ~(fetched.valid | asked.valid | looked_up.valid)):
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        with m.If(fetches):
            m.d.sync += [fetched.valid.eq(1), fetched.index.eq(index)]
            with m.If(is_columns & (index + 1 == self.grid.columns)):
                m.d.sync += index.eq(0)
            with m.Else():
                m.d.sync += index.eq(Mux(request.down, index - 1, index + 1))
        with m.Else():
            m.d.sync += fetched.valid.eq(0)
        return m

    def _entry(self, request):
        """What was read from the source."""
        work = Mux(request.route == Route.COMPUTE, self.entries[1], self.entries[0])
        return Mux(request.source == Source.COLUMNS, self.entries[2], work)

    def _judge(self, m, request, shown, is_found, is_over):
        result, word = self.call.result, self.row.word
        stream, compute = word.tasks[0], word.tasks[1]
        is_met = word.below_met & word.before_met
        is_wanted, is_open = Signal(), Signal()
        horizon = Signal(STAGE_BITS)
        m.d.sync += horizon.eq(
            Mux(request.route == Route.COMPUTE, self.horizons[1], self.horizons[0]))
        m.d.comb += is_open.eq(self.row.stage <= horizon)
        with m.Switch(request.wanted):
            with m.Case(Wanted.WAITING):
                m.d.comb += is_wanted.eq(
                    Mux(request.route == Route.COMPUTE, compute, stream) == Task.WAIT)
            with m.Case(Wanted.READY):
                m.d.comb += is_wanted.eq(
                    (compute == Task.WAIT) & (stream != Task.FLY) & is_met)
            with m.Case(Wanted.STREAMABLE):
                m.d.comb += is_wanted.eq(
                    (compute == Task.WAIT) & (stream == Task.NONE) & ~word.moved)
            with m.Case(Wanted.COMPUTABLE):
                m.d.comb += is_wanted.eq((stream == Task.WAIT) & (compute == Task.NONE) & is_met
                                         & ~word.moved & ~shown.is_top)
        with m.If(shown.valid):
            with m.If(request.source == Source.COLUMNS):
                m.d.comb += is_over.eq(is_wanted & is_open)
                m.d.sync += is_found.eq(is_over)
                with m.If(is_wanted & (self.row.stage == horizon + 1) & ~result.near.found):
                    m.d.sync += [
                        result.near.found.eq(1),
                        result.near.index.eq(shown.index),
                        result.near.chunk.eq(self.row.chunk),
                    ]
            with m.Else():
                m.d.sync += is_found.eq(is_wanted & (is_open | ~request.bounded))
                m.d.comb += is_over.eq(is_wanted | request.bounded & ~is_open)
