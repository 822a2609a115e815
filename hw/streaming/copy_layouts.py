"""Payload layouts between the parts of the copy engine."""

from amaranth.hdl import Mux
from amaranth.lib import data

from hw.bus.axi4 import beat_size
from hw.config import StreamingConfig
from hw.streaming.burst import RUN_BITS
from hw.streaming.layouts import CopyError, copy_command

__all__ = ["copy_item", "copy_row", "copy_task", "lower_error", "read_beat", "row_context"]


def copy_task(config: StreamingConfig) -> data.StructLayout:
    """A command, and what is known to be wrong with it; it is then answered, not run."""
    return data.StructLayout({"command": copy_command(config), "fault": CopyError})


def copy_row(config: StreamingConfig) -> data.StructLayout:
    """A row of a command: bytes to move. One of no bytes stands for what is not run, and says
    why in ``error``."""
    return data.StructLayout({
        "source": config.address_bits, "destination": config.address_bits,
        "bytes": RUN_BITS,
        "tag": 16,
        "is_feed": 1,
        "error": CopyError,
        "closes": 1,   # the last row of its command
    })


def row_context(config: StreamingConfig) -> data.StructLayout:
    """What the write bursts of a row carry along."""
    return data.StructLayout({
        "shift": beat_size(config.bus_bytes),   # bytes that data move up within beats
        "is_early": 1,   # a beat that is written begins with bytes of the second beat that was read
        "tag": 16,
        "is_feed": 1,
        "error": CopyError,
        "closes": 1,
    })


def read_beat(config: StreamingConfig) -> data.StructLayout:
    """A beat as it was read, bytes outside the row included. ``failed``: it came with an error;
    ``is_empty``: in place of all that the row still lacks, which was not read."""
    return data.StructLayout({
        "data": 8 * config.bus_bytes, "failed": 1, "is_empty": 1, "last": 1})   # of the row


def copy_item(config: StreamingConfig) -> data.StructLayout:
    """A beat to write or to feed. With ``is_dropped`` it is none, but takes back what came of its
    burst. ``address`` and ``length`` are those of its burst."""
    return data.StructLayout({
        "data": 8 * config.bus_bytes, "strobe": config.bus_bytes,
        "address": config.address_bits, "length": 8,
        "is_dropped": 1,
        "ends_burst": 1,
        "closes": 1,   # the last item of its command
        "is_feed": 1,
        "tag": 16,
        "error": CopyError,
    })


def lower_error(left, right):
    """The one of two errors that is told: the lower number, unless it is NONE."""
    is_left = (left != 0) & ((right == 0) | (left < right))
    return Mux(is_left, left, right)
