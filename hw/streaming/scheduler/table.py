"""The chunk table."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.sram import Sram
from hw.streaming.checks import check_config
from hw.streaming.layouts import (
    NEVER,
    PREDICTION_BITS,
    STAGE_BITS,
    TICK_BITS,
    Route,
    schedule_entry,
)
from hw.streaming.scheduler.layouts import (
    Task,
    chunk_place,
    effects,
    load_bits,
    row,
    task_word,
)

__all__ = ["ChunkTable"]


class ChunkTable(wiring.Component):
    """Tasks, predicted times, deadline and place of every chunk, in memories read side by side.

    Whoever uses it shows a row, looks at it, and writes its word or moves on: all changes are of
    the row shown. A word that is written shows when its row is read again, from the next cycle on.

    **Latency**: 3 cycles from ``effects.read`` to ``row``, 2 from a write to ``loads``. After a
    reset ``chunks`` cycles until ``ready``, in which all tasks become NONE.

    **Throughput**: a row read and the one shown written, per cycle.

    **Numerics**: ``golden.streaming.tasks.Table``, and ``load`` of ``golden.streaming.work.Work``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    effects : ``In(effects(config))``
    row : ``Out(row(config))``
    enter : ``In(1)``
        ``entry`` is loaded into the row shown, which must be of its chunk.
    entry : ``In(schedule_entry(config))``
    settle : ``In(1)``
        ``place`` is written to the row shown.
    place : ``In(chunk_place(config))``
    loads : ``Out(ArrayLayout(load_bits(config), 2))``
        Predicted ticks of all tasks that are WAIT or FLY, by route.
    ready : ``Out(1)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("ChunkTable", config)
        super().__init__({
            "effects": In(effects(config)),
            "row": Out(row(config)),
            "enter": In(1), "entry": In(schedule_entry(config)),
            "settle": In(1), "place": In(chunk_place(config)),
            "loads": Out(data.ArrayLayout(load_bits(config), len(Route))),
            "ready": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        depth = self.config.chunks
        m.submodules.words = words = Sram(task_word(), depth=depth)
        m.submodules.times = times = Sram(data.StructLayout({
            "stage": STAGE_BITS, "ticks": data.ArrayLayout(PREDICTION_BITS, len(Route))}),
            depth=depth)
        m.submodules.deadlines = deadlines = Sram(TICK_BITS, depth=depth)
        m.submodules.places = places = Sram(chunk_place(self.config), depth=depth)

        # Registers before and after the memories: what decides is long, and a memory's output late.
        bits = self.config.chunk_bits
        is_asked, asked = Signal(), Signal(bits)
        is_read, chunk = Signal(), Signal(bits)
        shown = Signal(row(self.config))
        asks, holds = self.effects.read, self.effects.hold
        for memory in (words, times, deadlines, places):
            m.d.comb += [
                memory.read.en.eq(is_asked),
                memory.read.addr.eq(asked),
                memory.write.addr.eq(shown.chunk),
            ]
        m.d.sync += [
            is_asked.eq(asks),
            asked.eq(self.effects.chunk),
            is_read.eq(is_asked & ~holds),
            chunk.eq(asked),
            shown.shown.eq(~asks & (holds | ~is_asked & (is_read | shown.shown))),
        ]
        with m.If(is_read & ~holds):
            m.d.sync += [
                shown.chunk.eq(chunk),
                shown.word.eq(words.read.data),
                shown.stage.eq(times.read.data.stage),
                shown.ticks.eq(times.read.data.ticks),
                shown.deadline.eq(deadlines.read.data),
                shown.place.eq(places.read.data),
            ]
        m.d.comb += [
            self.row.eq(shown),
            times.write.en.eq(self.enter),
            times.write.data.stage.eq(self.entry.stage),
            times.write.data.ticks.eq(Cat(self.entry.stream_ticks, self.entry.compute_ticks)),
            deadlines.write.en.eq(self.enter | self.effects.waive),
            deadlines.write.data.eq(Mux(self.enter, self.entry.deadline, NEVER)),
            places.write.en.eq(self.settle),
            places.write.data.eq(self.place),
        ]
        self._write_words(m, words)
        self._sum_loads(m)
        return m

    def _write_words(self, m, words):
        cleared = Signal(range(self.config.chunks + 1))
        m.d.comb += self.ready.eq(cleared == self.config.chunks)
        with m.If(~self.ready):
            m.d.comb += [words.write.en.eq(1), words.write.addr.eq(cleared)]
            m.d.sync += cleared.eq(cleared + 1)
        with m.Elif(self.enter):
            m.d.comb += [
                words.write.en.eq(1),
                words.write.data.tasks[self.entry.route].eq(Task.WAIT),
            ]
        with m.Else():
            m.d.comb += [
                words.write.en.eq(self.effects.write),
                words.write.data.eq(self.effects.word),
            ]

    def _sum_loads(self, m):
        """A register before the sum keeps the decision out of it."""
        entered = (self.entry.stream_ticks, self.entry.compute_ticks)
        for route in Route:
            index = route.value
            was, will = (self._is_pending(word.tasks[index])
                         for word in (self.row.word, self.effects.word))
            rises, falls = Signal(), Signal()
            ticks = Signal(PREDICTION_BITS)
            load = self.loads[index]
            m.d.sync += [
                rises.eq(Mux(self.enter, self.entry.route == route,
                             self.effects.write & will & ~was)),
                falls.eq(~self.enter & self.effects.write & was & ~will),
                ticks.eq(Mux(self.enter, entered[index], self.row.ticks[index])),
            ]
            with m.If(rises):
                m.d.sync += load.eq(load + ticks)
            with m.If(falls):
                m.d.sync += load.eq(load - ticks)

    @staticmethod
    def _is_pending(task):
        return (task == Task.WAIT) | (task == Task.FLY)
