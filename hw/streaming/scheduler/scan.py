"""Search through a queue, a list or the columns."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import STAGE_BITS, Route
from hw.streaming.scheduler.actor import Call, actor_members, read
from hw.streaming.scheduler.layouts import Source, Task, Wanted, grid, scan_request, scan_result

__all__ = ["Scan"]


class Scan(wiring.Component):
    """Looks for the first chunk of a kind: an entry per cycle goes through its source, then the
    chunk table, then is judged.

    **Latency**: 4 + k cycles from ``start`` to ``done`` if the k-th entry from 0 is found; 3 + n if
    none of n is, 1 if n is 0.

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
        The argument holds from ``start`` to ``done``.
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
        request, result = self.call.argument, self.call.result
        is_columns = request.source == Source.COLUMNS
        index, left = Signal(bits), Signal(bits + 1)
        fetched, fetched_index = Signal(), Signal(bits)   # an entry has been read
        looked_up, looked_up_index = Signal(), Signal(bits)   # its row has been read
        shown, shown_index = Signal(), Signal(bits)       # its row is shown
        is_found, is_over = Signal(), Signal()
        fetches = Signal()
        m.d.comb += [
            self.index.eq(index),
            self.from_queue.eq(request.source == Source.QUEUE),
            self.read_columns.eq(fetches & is_columns),
            self.read_work[0].eq(fetches & ~is_columns & (request.route == Route.STREAM)),
            self.read_work[1].eq(fetches & ~is_columns & (request.route == Route.COMPUTE)),
            result.found.eq(is_found),
            result.index.eq(shown_index),
        ]
        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.comb += self.index.eq(request.first)
                m.d.sync += [looked_up.eq(0), shown.eq(0), is_found.eq(0), result.near.eq(0)]
                with m.If(self.call.start):
                    m.d.comb += fetches.eq(request.count != 0)
                    m.d.sync += left.eq(request.count - 1)
                    m.next = "RUN"
                    with m.If(request.count == 0):
                        m.next = "DONE"
            with m.State("RUN"):
                m.d.comb += fetches.eq(left != 0)
                m.d.sync += [left.eq(left - fetches), looked_up.eq(fetched), shown.eq(looked_up),
                             is_found.eq(0)]
                self._judge(m, shown, shown_index, is_found, is_over)
                with m.If(is_over):
                    m.d.comb += self.effects.hold.eq(1)
                    m.next = "DONE"
                with m.Else():
                    self._look_up(m, fetched)
                    m.d.sync += [looked_up_index.eq(fetched_index),
                                 shown_index.eq(looked_up_index)]
                    with m.If((left == 0) & ~fetched & ~looked_up):
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        with m.If(fetches):
            m.d.sync += [fetched.eq(1), fetched_index.eq(self.index)]
            with m.If(is_columns & (self.index + 1 == self.grid.columns)):
                m.d.sync += index.eq(0)
            with m.Else():
                m.d.sync += index.eq(Mux(request.down, self.index - 1, self.index + 1))
        with m.Else():
            m.d.sync += fetched.eq(0)
        return m

    def _look_up(self, m, fetched):
        """Read the row of the entry that was read; a column that is done has none."""
        request = self.call.argument
        work = Mux(request.route == Route.COMPUTE, self.entries[1], self.entries[0])
        with m.If(fetched):
            m.d.comb += read(
                self, Mux(request.source == Source.COLUMNS, self.entries[2], work))

    def _judge(self, m, shown, shown_index, is_found, is_over):
        request, result, word = self.call.argument, self.call.result, self.row.word
        stream, compute = word.tasks[0], word.tasks[1]
        is_met = word.below_met & word.before_met
        is_wanted, is_open = Signal(), Signal()
        horizon = Mux(request.route == Route.COMPUTE, self.horizons[1], self.horizons[0])
        was_top, was_top_before = Signal(), Signal()
        m.d.sync += [was_top_before.eq(self.is_top), was_top.eq(was_top_before)]
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
                                         & ~word.moved & ~was_top)
        with m.If(shown):
            with m.If(request.source == Source.COLUMNS):
                m.d.comb += is_over.eq(is_wanted & is_open)
                m.d.sync += is_found.eq(is_over)
                with m.If(is_wanted & (self.row.stage == horizon + 1) & ~result.near.found):
                    m.d.sync += [
                        result.near.found.eq(1),
                        result.near.index.eq(shown_index),
                        result.near.chunk.eq(self.row.chunk),
                    ]
            with m.Else():
                m.d.sync += is_found.eq(is_wanted & (is_open | ~request.bounded))
                m.d.comb += is_over.eq(is_wanted | request.bounded & ~is_open)
