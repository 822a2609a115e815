"""Chains of descriptors: the commands that memory holds from an address on."""

import struct
from collections.abc import Callable

from golden.streaming.copy import Copy, CopyError, CopyKind

__all__ = ["DESCRIPTOR_BYTES", "FENCE", "LINKED", "pack_descriptor", "walk"]

DESCRIPTOR_BYTES = 64
LINKED = 1   # flags: `next` is the address of another descriptor
FENCE = 2    # the command waits until those before it are done

_FORMAT = struct.Struct("<BBHIQQQIIHH20x")


def pack_descriptor(command: Copy, *, following: int | None = None, fence: bool = False) -> bytes:
    """A descriptor as it lies in memory; ``following`` is the address of the next one."""
    flags = (LINKED if following is not None else 0) | (FENCE if fence else 0)
    return _FORMAT.pack(
        command.kind, flags, command.tag, command.row_bytes, following or 0, command.source,
        command.destination, command.source_stride, command.destination_stride, command.rows,
        command.window_mask)


def walk(memory: bytes, address: int, *, limit: int, tag: int, address_bits: int,
         read_fails: Callable[[int], bool] = lambda _: False) -> list[tuple[Copy, CopyError]]:
    """Commands of a chain in order, each with what is wrong with it before it is looked at as a
    copy.

    A chain that is refused ends with an entry of its own, of no bytes, with its ``tag``. What is
    wrong with a descriptor has that descriptor's.
    """
    found = []

    def refuse(error: CopyError) -> list[tuple[Copy, CopyError]]:
        return [*found, (Copy(source=0, row_bytes=0, rows=0, tag=tag), error)]

    while True:
        if len(found) == limit:
            return refuse(CopyError.CYCLE)
        if address % DESCRIPTOR_BYTES or address >> address_bits:
            return refuse(CopyError.ADDRESS)
        if read_fails(address):
            return refuse(CopyError.FETCH)
        (kind, flags, own_tag, row_bytes, following, source, destination, source_stride,
         destination_stride, rows, window_mask) = _FORMAT.unpack_from(memory, address)
        command = Copy(
            source=source, row_bytes=row_bytes, destination=destination, rows=rows,
            source_stride=source_stride, destination_stride=destination_stride, kind=kind,
            tag=own_tag, window_mask=window_mask)
        error = CopyError.NONE
        if kind not in tuple(CopyKind) or flags & ~(LINKED | FENCE):
            return [*found, (command, CopyError.KIND)]
        if source >> address_bits or (kind == CopyKind.COPY and destination >> address_bits):
            error = CopyError.ADDRESS
        found.append((command, error))
        if not flags & LINKED:
            return found
        address = following
