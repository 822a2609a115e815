"""Loads a job, and refuses one that is not sound."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import Route, schedule_entry, schedule_policy
from hw.streaming.scheduler.actor import actor_members, read, rewrite
from hw.streaming.scheduler.layouts import STAGES_MAX, LoadError, Task, chunk_place, grid

__all__ = ["JobLoader"]

WINDOW_LOG2_MAX = 4


class JobLoader(wiring.Component):
    """Fills the table, the lists and the counts of stages from entries, then checks the whole and
    works out what follows from the grid.

    **Latency**: from ``start`` to ``begins`` at most 6 + stages + 3 * chunks of the grid.

    **Throughput**: an entry per 4 cycles, and 1 more per stage that ends.

    **Numerics**: ``golden.streaming.schedule.Schedule``: what it refuses is refused.

    **Errors**: `LoadError`. Entries after a bad one are dropped; at ``start`` the job is refused.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    policy : ``In(schedule_policy(config))``
    i_entry : ``In(stream.Signature(schedule_entry(config)))``
    start : ``In(1)``
        All entries have been sent. Ignored unless ``loading``.
    cleared : ``In(1)``
        The memories are ready.
    loading : ``Out(1)``
        Entries and ``start`` are taken.
    begins, refused : ``Out(1)``
        The job begins, or is refused because of ``error``; high for one cycle.
    running : ``Out(1)``
        From the cycle after ``begins`` on.
    error : ``Out(LoadError)``
    grid : ``Out(grid(config))``
    enter, append, close, settle, settle_column : ``Out``
        To `ChunkTable`, `Stages`, the routes' `Work` and `Columns`.
    closed : ``In(range(STAGES_MAX + 1)).array(2)``
        Of the routes' `Work`.
    place : ``Out(chunk_place(config))``
        Of the chunk shown.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("JobLoader", config)
        routes = len(Route)
        super().__init__({
            **actor_members(config),
            "policy": In(schedule_policy(config)),
            "i_entry": In(stream.Signature(schedule_entry(config))),
            "start": In(1), "cleared": In(1), "loading": Out(1),
            "begins": Out(1), "refused": Out(1), "running": Out(1),
            "error": Out(LoadError),
            "grid": Out(grid(config)),
            "enter": Out(1), "append": Out(routes), "close": Out(routes),
            "settle": Out(1), "settle_column": Out(1),
            "closed": In(range(STAGES_MAX + 1)).array(routes),
            "place": Out(chunk_place(config)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        policy, entry = self.policy, self.i_entry
        total = Signal(self.config.chunk_bits + 1)
        has_error = Signal()
        m.d.comb += has_error.eq(self.error != LoadError.NONE)
        with m.FSM(name="state"):
            with m.State("CLEAR"):
                with m.If(self.cleared):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += [self.loading.eq(1), *read(self, entry.payload.chunk)]
                with m.If(self.start):
                    m.next = "CHECK"
                with m.Elif(entry.valid):
                    m.next = "ENTER"
            with m.State("ENTER"), m.If(self.row.shown):
                self._enter(m, total, has_error)
            with m.State("CHECK"):
                m.next = "CLOSE"
                with m.If(~has_error):
                    self._check(m)
            with m.State("CLOSE"):
                is_open = Cat(closed != policy.stages for closed in self.closed)
                m.d.comb += read(self, 0)
                with m.If(has_error):
                    m.next = "REFUSE"
                with m.Elif(is_open.any()):
                    m.d.comb += self.close.eq(is_open)
                with m.Else():
                    m.next = "SETTLE"
            with m.State("SETTLE"), m.If(self.row.shown):
                self._settle(m, total)
            with m.State("BEGIN"):
                with m.If(has_error):
                    m.next = "REFUSE"
                with m.Else():
                    m.d.comb += self.begins.eq(1)
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += self.running.eq(1)
            with m.State("REFUSE"):
                m.d.comb += self.refused.eq(1)
        return m

    def _fail(self, m, error):
        m.d.sync += self.error.eq(error)

    def _enter(self, m, total, has_error):
        """Enter an entry whose chunk is shown, after the ends of the stages before."""
        entry = self.i_entry.payload
        is_compute = entry.route == Route.COMPUTE
        mask = Mux(is_compute, 0b10, 0b01)
        closed = Mux(is_compute, self.closed[1], self.closed[0])
        tasks = self.row.word.tasks
        takes = Signal()
        m.d.comb += self.i_entry.ready.eq(takes)
        with m.If(takes):
            m.next = "LOAD"
        with m.If(has_error):
            m.d.comb += takes.eq(1)
        with m.Elif((entry.stream_ticks == 0) | (entry.compute_ticks == 0)):
            m.d.comb += takes.eq(1)
            self._fail(m, LoadError.TICKS)
        with m.Elif((tasks[0] != Task.NONE) | (tasks[1] != Task.NONE)):
            m.d.comb += takes.eq(1)
            self._fail(m, LoadError.TWICE)
        with m.Elif(entry.stage < closed):
            m.d.comb += takes.eq(1)
            self._fail(m, LoadError.STAGE)
        with m.Elif(entry.stage != closed):
            m.d.comb += self.close.eq(mask)
        with m.Else():
            m.d.comb += [takes.eq(1), self.enter.eq(1), self.append.eq(mask)]
            m.d.sync += total.eq(total + 1)

    def _check(self, m):
        """What can be said without looking at the chunks; the lowest number comes last."""
        policy = self.policy
        most = self.config.outstanding
        sizes = (policy.blocks, policy.layers, policy.heads)
        with m.If(Cat(size == 0 for size in sizes).any()):
            self._fail(m, LoadError.GRID)
        with m.If(Cat(
                policy.stream_outstanding == 0, policy.stream_outstanding > most,
                policy.compute_outstanding == 0, policy.compute_outstanding > most,
                policy.scan == 0, policy.stream_timeout == 0, policy.compute_timeout == 0,
                policy.window_log2 > WINDOW_LOG2_MAX).any()):
            self._fail(m, LoadError.POLICY)
        with m.If(Cat(closed >= policy.stages for closed in self.closed).any()
                  | (policy.stages > STAGES_MAX)):
            self._fail(m, LoadError.STAGE)

    def _settle(self, m, total):
        """Give each chunk its place, by counting through the grid."""
        policy, word = self.policy, self.row.word
        bits = self.config.chunk_bits
        layer, block = Signal(bits), Signal(bits)
        head, first_column = Signal(bits), Signal(bits + 1)
        ends_layer = head + 1 == policy.heads
        is_last_layer = layer + 1 == policy.layers
        is_last = ends_layer & is_last_layer & (block + 1 == policy.blocks)
        is_listed = (word.tasks[0] == Task.WAIT) | (word.tasks[1] == Task.WAIT)
        following = self.row.chunk + 1
        m.d.comb += [
            *read(self, following),
            *rewrite(self, retries=policy.retries, first_layer=layer == 0,
                     last_layer=is_last_layer, below_met=layer == 0,
                     before_met=(block == 0) | is_last_layer),
            self.settle.eq(1),
            self.settle_column.eq(layer == 0),
            self.place.column.eq(first_column + head),
            self.place.head.eq(head),
        ]
        m.d.sync += [head.eq(Mux(ends_layer, 0, head + 1)), self.grid.heads.eq(policy.heads)]
        with m.If(ends_layer):
            m.d.sync += layer.eq(Mux(is_last_layer, 0, layer + 1))
            with m.If(is_last_layer):
                m.d.sync += [block.eq(block + 1), first_column.eq(first_column + policy.heads)]
                with m.If(block == 0):
                    m.d.sync += self.grid.block.eq(following)
        with m.If(is_last):
            m.d.sync += [
                self.grid.count.eq(following),
                self.grid.columns.eq(first_column + policy.heads),
            ]
            with m.If(total > following):
                self._fail(m, LoadError.RANGE)
            m.next = "BEGIN"
        with m.Elif(following == self.config.chunks):
            self._fail(m, LoadError.GRID)
            m.next = "BEGIN"
        with m.If(~is_listed):
            self._fail(m, LoadError.MISSING)
            m.next = "BEGIN"
