"""Refuses copy commands that must not run."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_task
from hw.streaming.layouts import CopyError, CopyKind, windows

__all__ = ["CopyCheck"]

SPAN_BITS = 49   # bytes from the first of a command to its last: 65,535 rows of 4 GiB
HALF_BITS = 16   # what a multiplier takes at a time


class CopyCheck(wiring.Component):
    """Finds why a command must not run, before any of it does.

    A command's bytes are taken to be all from its first row's first to its last row's last. All of
    the destination must lie in one window granted, and none in the source.

    **Latency**: 4 cycles: multiply halves of strides by rows; add the halves; addresses of the last
    bytes; comparisons.

    **Throughput**: 1 command per cycle. All stages advance together, if ``o`` is taken or empty.

    **Numerics**: ``golden.streaming.copy.find_fault``.

    **Errors**: in ``o.fault``: that of ``i.fault``, or else the lowest number that applies.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(copy_task(config)))``
    o : ``Out(stream.Signature(copy_task(config)))``
    windows : ``In(windows(config))``
        The windows granted, three cycles after a command was taken.
    """

    LATENCY = 4

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyCheck", config)
        super().__init__({
            "i": In(stream.Signature(copy_task(config))),
            "o": Out(stream.Signature(copy_task(config))),
            "windows": In(windows(config)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        advance = Signal()
        tasks = [Signal(copy_task(self.config), name=f"task_{stage}") for stage in range(4)]
        valid = Signal(4)
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(advance),
            self.o.valid.eq(valid[-1]),
        ]
        with m.If(advance):
            m.d.sync += [
                valid.eq(Cat(self.i.valid, valid)),
                *(stage.eq(before)
                  for stage, before in zip(tasks, [self.i.payload, *tasks], strict=False)),
            ]

        source, destination = (
            self._last_byte(m, advance, tasks, name) for name in ("source", "destination"))
        has_space, in_window, overlaps = self._compare(m, advance, tasks[2].command,
                                                       source, destination)
        m.d.comb += self.o.payload.eq(tasks[3])
        self._judge(m, tasks[3], has_space, in_window, overlaps)
        return m

    def _last_byte(self, m, advance, tasks, name):
        """Address of the last byte of the source or destination, in step with ``tasks[2]``."""
        command = self.i.payload.command
        stride, half = command[f"{name}_stride"], HALF_BITS
        low, high = (Signal(2 * half, name=f"{name}_{part}") for part in ("low", "high"))
        strides = Signal(4 * half)
        last = Signal(signed(len(stride) + 2))
        start, address = (Signal(max(self.config.address_bits, SPAN_BITS) + 1, name=part)
                          for part in (f"{name}_start", f"{name}_last"))
        # (rows - 1) * stride + row_bytes - 1, the subtractions beside the product.
        with m.If(advance):
            m.d.sync += [
                low.eq(command.rows * stride[:half]),
                high.eq(command.rows * stride[half:]),
                last.eq(command.row_bytes - stride - 1),
                strides.eq(low + (high << half)),
                start.eq(tasks[0].command[name] + last),
                address.eq(strides + start),
            ]
        return address

    def _compare(self, m, advance, command, source_last, destination_last):
        """Comparisons of addresses, in step with ``tasks[3]``."""
        bits = self.config.address_bits
        has_space = [Signal(name="source_fits"), Signal(name="destination_fits")]
        in_window = Signal(self.config.windows)
        overlaps = Signal(3)
        with m.If(advance):
            m.d.sync += [
                has_space[0].eq(source_last[bits:] == 0),
                has_space[1].eq(destination_last[bits:] == 0),
                in_window.eq(Cat(
                    window.valid & granted & (window.base <= command.destination)
                    & (destination_last <= window.last)
                    for window, granted in zip(self.windows, command.window_mask, strict=True))),
                overlaps.eq(Cat(
                    command.source <= destination_last,
                    command.destination <= source_last,
                    (command.rows > 1) & (command.destination_stride < command.row_bytes))),
            ]
        return has_space, in_window, overlaps

    def _judge(self, m, task, has_space, in_window, overlaps):
        """The last assignment wins: the lowest number."""
        command, fault = task.command, self.o.payload.fault
        is_copy, is_feed = Signal(), Signal()
        m.d.comb += [
            is_copy.eq(command.kind.as_value() == CopyKind.COPY.value),
            is_feed.eq(command.kind.as_value() == CopyKind.FEED.value),
        ]
        is_known = is_copy | (is_feed & (command.rows[1:] == 0))
        for fails, error in (
            (is_copy & ~in_window.any(), CopyError.WINDOW),
            (~has_space[0] | (is_copy & ~has_space[1]), CopyError.ADDRESS),
            (is_copy & (overlaps[:2].all() | overlaps[2]), CopyError.OVERLAP),
            ((command.row_bytes == 0) | (command.rows == 0), CopyError.ZERO),
            (~is_known, CopyError.KIND),
        ):
            with m.If(fails & (task.fault == CopyError.NONE)):
                m.d.comb += fault.eq(error)
