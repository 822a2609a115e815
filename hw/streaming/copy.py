"""Plain DMA: copies in memory, and frames fed from memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.read_port import ReadPort
from hw.bus.write_port import WritePort
from hw.config import StreamingConfig
from hw.stream import BypassQueue, Fork
from hw.streaming.checks import check_config
from hw.streaming.copy_align import CopyAlign
from hw.streaming.copy_check import CopyCheck
from hw.streaming.copy_feed import CopyFeed
from hw.streaming.copy_layouts import copy_row, copy_task
from hw.streaming.copy_reader import CopyReader
from hw.streaming.copy_rows import CopyRows
from hw.streaming.copy_writer import CopyWriter
from hw.streaming.layouts import copy_done, link_beat, windows

__all__ = ["CopyEngine"]


class CopyEngine(wiring.Component):
    """Runs copy commands, one behind the other without a gap.

    Reads of a command are asked for while those before it are still being written, so a command
    must not read what an earlier one writes before that is done. Commands end in order.

    A read is asked for when there is room for its beats, and a write when all its beats are there:
    the engine never keeps a bus waiting, and may share it with anything.

    **Latency**: 6 cycles from a command to ``read.ar``. With a memory that answers in n cycles, a
    copy of one aligned beat is on ``write.aw`` n + 5 cycles after ``read.ar``, its beat a cycle
    later, and it is done 1 cycle after its response.

    **Throughput**: 1 beat read and written per cycle, in rows and commands of any size, as long as
    ``config.bursts`` bursts and the buffer of `CopyReader` bridge the memory's latency. Rows whose
    source lies higher in its beat than their destination cost a cycle more.

    **Numerics**: ``golden.streaming.copy.run_copy``.

    **Errors**: each command ends with the lowest number that applies. It moves nothing if that is
    below READ. From the first burst on that needs a beat read with an error, nothing of the command
    is written; a response WRITE does not keep the rest from being written.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(copy_task(config)))``
        Commands.
    read : ``Out(ReadPort(address_bits, bus_bytes))``
    write : ``Out(WritePort(address_bits, bus_bytes))``
        The memory.
    o_feed : ``Out(stream.Signature(link_beat(config)))``
        One frame per FEED.
    o_done : ``Out(stream.Signature(copy_done(config)))``
        Once per command, in order, after its last write response. For a FEED: after its last beat
        stands ready on ``o_feed``, or behind one other there.
    windows : ``In(windows(config))``
        Holds still while ``busy``.
    abort : ``In(1)``
        If only for a cycle: commands under way are cut short, and those that wait in the engine are
        not begun. What was asked for is still moved, and they end as ABORTED. Commands that come
        while it is high end so too; those that come later wait until the engine is drained.
    busy : ``Out(1)``
        Commands were taken that have not ended.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyEngine", config)
        super().__init__({
            "i": In(stream.Signature(copy_task(config))),
            "read": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "write": Out(WritePort(config.address_bits, config.bus_bytes)),
            "o_feed": Out(stream.Signature(link_beat(config))),
            "o_done": Out(stream.Signature(copy_done(config))),
            "windows": In(windows(config)),
            "abort": In(1),
            "busy": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.check = check = CopyCheck(config)
        m.submodules.checked = checked = BypassQueue(copy_task(config), depth=2)
        m.submodules.rows = rows = CopyRows(config)
        m.submodules.fork = fork = Fork(copy_row(config), count=2)
        m.submodules.reader = reader = CopyReader(config)
        m.submodules.align = align = CopyAlign(config)
        m.submodules.feed = feed = CopyFeed(config)
        m.submodules.writer = writer = CopyWriter(config)
        is_aborted, drains = Signal(), Signal()
        for source, sink in (
            (check.o, checked.i), (checked.o, rows.i), (rows.o, fork.i),
            (fork.o[1], align.i_row), (reader.bus, wiring.flipped(self.read)),
            (reader.o, align.i_beat), (align.o, feed.i), (feed.o, writer.i),
            (feed.o_feed, wiring.flipped(self.o_feed)), (writer.bus, wiring.flipped(self.write)),
            (writer.o_done, wiring.flipped(self.o_done)),
        ):
            wiring.connect(m, source, sink)
        m.d.comb += [
            reader.i.payload.address.eq(fork.o[0].payload.source),
            reader.i.payload.bytes.eq(fork.o[0].payload.bytes),
            reader.i.valid.eq(fork.o[0].valid),
            fork.o[0].ready.eq(reader.i.ready),
            check.windows.eq(self.windows),
            rows.abort.eq(drains),
            reader.abort.eq(drains),
            check.i.payload.eq(self.i.payload),
            check.i.valid.eq(self.i.valid & (self.abort | ~is_aborted)),
            self.i.ready.eq(check.i.ready & (self.abort | ~is_aborted)),
        ]

        # Until nothing is left that was there when the abort came.
        m.d.comb += drains.eq(self.abort | is_aborted)
        m.d.sync += is_aborted.eq(self.abort | (is_aborted & self.busy))

        # At most: those checked, those that wait for their beats, those that wait for responses.
        under_way = Signal(range(2 * config.bursts + 16))
        m.d.comb += self.busy.eq(under_way != 0)
        m.d.sync += under_way.eq(under_way + (self.i.valid & self.i.ready)
                                 - (self.o_done.valid & self.o_done.ready))
        return m
