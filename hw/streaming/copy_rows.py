"""Takes copy commands apart into rows."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_row, copy_task
from hw.streaming.layouts import CopyError, CopyKind

__all__ = ["CopyRows"]


class CopyRows(wiring.Component):
    """Gives the rows of each command in turn; of one that must not run, a single row of no bytes.

    While ``abort`` is high, the command under way ends with a row of no bytes, and those that come
    are not begun.

    **Latency**: 1 cycle from ``i`` to ``o``, from registers.

    **Throughput**: 1 row per cycle, from one command to the next too.

    **Numerics**: ``golden.streaming.copy.run_copy``, the addresses of rows.

    **Errors**: ABORTED in the row that ends an aborted command; the fault of a command refused.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(copy_task(config)))``
    o : ``Out(stream.Signature(copy_row(config)))``
    abort : ``In(1)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyRows", config)
        super().__init__({
            "i": In(stream.Signature(copy_task(config))),
            "o": Out(stream.Signature(copy_row(config))),
            "abort": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        row, command = self.o.payload, self.i.payload.command
        source_stride, destination_stride = (Signal.like(command[f"{name}_stride"], name=name)
                                             for name in ("source", "destination"))
        left = Signal.like(command.rows)   # rows behind the one on offer
        is_refused = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | (self.o.ready & row.closes)),
            is_refused.eq(self.i.payload.fault != CopyError.NONE),
        ]
        with m.If(~self.o.valid | (self.o.ready & row.closes)):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                source_stride.eq(command.source_stride),
                destination_stride.eq(command.destination_stride),
                left.eq(command.rows - 1),
                row.source.eq(command.source),
                # Frames are fed in whole beats from their first byte on.
                row.destination.eq(Mux(command.kind == CopyKind.FEED, 0, command.destination)),
                row.bytes.eq(command.row_bytes),
                row.tag.eq(command.tag),
                row.is_feed.eq(command.kind == CopyKind.FEED),
                row.error.eq(self.i.payload.fault),
                row.closes.eq(is_refused | (command.rows == 1)),
            ]
            with m.If(is_refused):
                m.d.sync += row.bytes.eq(0)
        with m.Elif(self.o.ready):
            m.d.sync += [
                left.eq(left - 1),
                row.source.eq(row.source + source_stride),
                row.destination.eq(row.destination + destination_stride),
                row.closes.eq(left == 1),
            ]
        with m.If(self.abort & (~self.o.valid | self.o.ready)):
            m.d.sync += [row.bytes.eq(0), row.closes.eq(1)]
            with m.If(~(self.i.ready & is_refused)):
                m.d.sync += row.error.eq(CopyError.ABORTED)
        return m
