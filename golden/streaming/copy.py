"""Plain copies: what memory holds after a command, and how the command ends.

The errors and their order are those of ``docs/streaming.md``, section "Plain copies". A command
that is refused moves nothing. One that meets an error while it runs has moved what the functions
here say, bytes before the error included.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = [
    "CopyKind", "CopyError", "Copy", "Window", "Result", "find_fault", "split", "run_copy",
]

# Whether the burst that starts at an address, in whole beats, is answered with an error.
Fails = Callable[[int], bool]


class CopyKind(IntEnum):
    COPY = 0
    FEED = 1


class CopyError(IntEnum):
    """Why a command failed; a lower number outranks a higher one."""

    NONE = 0
    KIND = 1
    ZERO = 2
    OVERLAP = 3
    ADDRESS = 4
    WINDOW = 5
    READ = 6
    WRITE = 7
    FETCH = 8
    CYCLE = 9
    ABORTED = 10


@dataclass(frozen=True)
class Window:
    """Bytes ``base``..``last`` may be written, both included."""

    base: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A command: ``rows`` pieces of ``row_bytes``, their starts a stride apart."""

    source: int
    row_bytes: int
    destination: int = 0
    rows: int = 1
    source_stride: int = 0
    destination_stride: int = 0
    kind: int = CopyKind.COPY
    tag: int = 0
    window_mask: int = 1

    @property
    def source_last(self) -> int:
        """Address of the last byte read."""
        return self.source + (self.rows - 1) * self.source_stride + self.row_bytes - 1

    @property
    def destination_last(self) -> int:
        """Address of the last byte written."""
        return self.destination + (self.rows - 1) * self.destination_stride + self.row_bytes - 1


@dataclass(frozen=True)
class Result:
    """How a command ended.

    Attributes
    ----------
    error : CopyError
    feed : bytes or None
        What a FEED put out, as one frame; None if it put out nothing.
    reads, writes : list of (int, int)
        Address of the first byte, and bytes, of each burst asked for.
    """

    error: CopyError
    feed: bytes | None = None
    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)


def find_fault(command: Copy, *, address_bits: int, windows: Sequence[Window | None]) -> CopyError:
    """Why a command is refused before it starts, or NONE.

    The bytes that rows span, from the first one's first to the last one's last, count as used:
    source and destination may not be interleaved, and one window must hold all of the destination.
    """
    is_copy = command.kind == CopyKind.COPY
    if not is_copy and (command.kind != CopyKind.FEED or command.rows > 1):
        return CopyError.KIND
    if command.row_bytes == 0 or command.rows == 0:
        return CopyError.ZERO
    if is_copy:
        if (command.source <= command.destination_last
                and command.destination <= command.source_last):
            return CopyError.OVERLAP
        if command.rows > 1 and command.destination_stride < command.row_bytes:
            return CopyError.OVERLAP
    lasts = [command.source_last, *([command.destination_last] if is_copy else [])]
    if max(lasts) >> address_bits:
        return CopyError.ADDRESS
    if is_copy and not any(
            window.base <= command.destination and command.destination_last <= window.last
            for number, window in enumerate(windows)
            if window is not None and command.window_mask >> number & 1):
        return CopyError.WINDOW
    return CopyError.NONE


def split(address: int, size: int, burst_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut bytes at each multiple of ``burst_bytes``: address and bytes of each burst, in order."""
    last = address + size
    while address < last:
        boundary = (address // burst_bytes + 1) * burst_bytes
        yield address, min(last, boundary) - address
        address = boundary


def run_copy(memory: bytearray, command: Copy, *, address_bits: int,
             windows: Sequence[Window | None], bus_bytes: int, burst_bytes: int,
             read_fails: Fails = lambda _: False, write_fails: Fails = lambda _: False) -> Result:
    """Run a command on ``memory``, in place.

    Reads go to the end whatever happens. The first burst of writes that needs a beat which was read
    with an error is not written, nor is any after it; a frame that is fed ends before the first
    beat that does. A burst that is answered with an error is taken to have stored nothing, and the
    others are written all the same.

    Parameters
    ----------
    memory : bytearray
    command : Copy
    address_bits : int
    windows : sequence of Window or None
        ``None``: that window is not granted.
    bus_bytes, burst_bytes : int
        Of the engine's configuration.
    read_fails, write_fails : callable
        Told the address of the first beat (of reads) or byte (of writes) of a burst.
    """
    error = find_fault(command, address_bits=address_bits, windows=windows)
    if error:
        return Result(error)
    reads, writes, fed = [], [], bytearray()
    can_write, write_failed = True, False
    for row in range(command.rows):
        source = command.source + row * command.source_stride
        asked = list(split(source, command.row_bytes, burst_bytes))
        reads += asked
        good = _good_bytes(asked, bus_bytes, read_fails)
        piece = bytes(memory[source:source + command.row_bytes])
        if command.kind == CopyKind.FEED:
            whole_beats = good - good % bus_bytes if good < len(piece) else good
            fed += piece[:whole_beats]
            can_write = good == len(piece)
            continue
        destination = command.destination + row * command.destination_stride
        for address, size in split(destination, command.row_bytes, burst_bytes):
            start = address - destination
            can_write = can_write and start + size <= good
            if not can_write:
                break
            writes.append((address, size))
            if write_fails(address):
                write_failed = True
            else:
                memory[address:address + size] = piece[start:start + size]
    if not can_write:
        error = CopyError.READ
    elif write_failed:
        error = CopyError.WRITE
    return Result(error, bytes(fed) if fed else None, reads, writes)


def _good_bytes(bursts: list[tuple[int, int]], bus_bytes: int, read_fails: Fails) -> int:
    """Bytes of a row before the first that was read with an error."""
    good = 0
    for address, size in bursts:
        if read_fails(address - address % bus_bytes):
            return good
        good += size
    return good
