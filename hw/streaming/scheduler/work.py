"""What one route has to do: its list and its queue."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.sram import Sram
from hw.streaming.checks import check_config
from hw.streaming.layouts import STAGE_BITS
from hw.streaming.scheduler.layouts import STAGES_MAX

__all__ = ["Work"]


class Work(wiring.Component):
    """The loaded list of a route, with the ends of its stages, and its queue of chunks that go
    first.

    **Latency**: 1 cycle from ``read`` to ``entry``, which then holds; 2 from ``aim`` to ``tail``.

    **Throughput**: an entry read and one appended or pushed, per cycle.

    **Numerics**: the list, queue, head, tail and horizon of ``golden.streaming.work.Work``.

    **Errors**: none. Each chunk stands in the list and in the queue at most once.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    read, from_queue : ``In(1)``
    index : ``In(chunk_bits)``
        Of the entry to read, in the list or counted from the queue's front.
    entry : ``Out(chunk_bits)``
    chunk : ``In(chunk_bits)``
        What is appended to the list, or pushed.
    append, close : ``In(1)``
        While loading: an entry of the list; the end of the stage ``closed``, in any other cycle.
    push, pop : ``In(1)``
        Into the queue, from its front.
    set_head, set_tail : ``In(1)``
    position : ``In(chunk_bits + 1)``
        Where to.
    aim : ``In(1)``
    stage : ``In(STAGE_BITS)``
        The new horizon; ``tail`` becomes the end of this stage.
    count, level : ``Out(chunk_bits + 1)``
        Entries of the list, of the queue.
    closed : ``Out(range(STAGES_MAX + 1))``
        Stages whose end was entered.
    head, tail : ``Out(chunk_bits + 1)``
    horizon : ``Out(STAGE_BITS)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Work", config)
        bits = config.chunk_bits
        super().__init__({
            "read": In(1), "from_queue": In(1), "index": In(bits), "entry": Out(bits),
            "chunk": In(bits),
            "append": In(1), "close": In(1),
            "push": In(1), "pop": In(1),
            "set_head": In(1), "set_tail": In(1), "position": In(bits + 1),
            "aim": In(1), "stage": In(STAGE_BITS),
            "count": Out(bits + 1), "level": Out(bits + 1),
            "closed": Out(range(STAGES_MAX + 1)),
            "head": Out(bits + 1), "tail": Out(bits + 1), "horizon": Out(STAGE_BITS),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        bits, depth = self.config.chunk_bits, self.config.chunks
        m.submodules.list = entries = Sram(bits, depth=depth)
        m.submodules.queue = queue = Sram(bits, depth=depth)
        m.submodules.ends = ends = Sram(bits + 1, depth=STAGES_MAX)

        shows_queue, is_aimed = Signal(), Signal()
        front = Signal(bits)   # the ring is a power of two long
        m.d.comb += [
            entries.read.en.eq(self.read),
            entries.read.addr.eq(self.index),
            entries.write.en.eq(self.append),
            entries.write.addr.eq(self.count),
            entries.write.data.eq(self.chunk),

            queue.read.en.eq(self.read),
            queue.read.addr.eq(front + self.index),
            queue.write.en.eq(self.push),
            queue.write.addr.eq(front + self.level),
            queue.write.data.eq(self.chunk),
            self.entry.eq(Mux(shows_queue, queue.read.data, entries.read.data)),

            ends.write.en.eq(self.close),
            ends.write.addr.eq(self.closed),
            ends.write.data.eq(self.count),
            ends.read.en.eq(self.aim),
            ends.read.addr.eq(self.stage),
        ]
        m.d.sync += [
            self.count.eq(self.count + self.append),
            self.closed.eq(self.closed + self.close),
            self.level.eq(self.level + self.push - self.pop),
            front.eq(front + self.pop),
            is_aimed.eq(self.aim),
        ]
        with m.If(self.read):
            m.d.sync += shows_queue.eq(self.from_queue)
        with m.If(self.aim):
            m.d.sync += self.horizon.eq(self.stage)
        with m.If(self.set_head):
            m.d.sync += self.head.eq(self.position)
        with m.If(self.set_tail):
            m.d.sync += self.tail.eq(self.position)
        with m.If(is_aimed):
            m.d.sync += self.tail.eq(ends.read.data)
        return m
