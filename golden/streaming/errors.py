"""Why a frame is refused: section 6 of ``docs/wire_format.md``."""

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Reason", "Rejected", "FrameError"]


class Reason(IntEnum):
    """The failing check; a lower number outranks a higher one."""

    NONE = 0
    MAGIC = 1
    VERSION = 2
    FORMAT = 3
    HEADER_CRC = 4
    CHUNK = 5
    IDENTITY = 6
    SHAPE = 7
    LENGTH = 8
    TRUNCATED = 9
    OVERLONG = 10
    PAYLOAD_CRC = 11
    TABLE = 12
    DIRECTORY = 13
    OVERRUN = 14
    UNDERRUN = 15
    NONFINITE = 16


@dataclass(frozen=True)
class Rejected:
    """A refused frame.

    Parameters
    ----------
    reason : Reason
    offset : int
        First byte, in the frame, of the field, sub-stream or row at fault (of the first one, where
        several fail alike); the number of bytes that should be or are there for a frame of the
        wrong length. For people: hardware reports the reason alone.
    """

    reason: Reason
    offset: int


class FrameError(Exception):
    """Raised inside the decoder; ``wire.decode_frame`` returns it as a value."""

    def __init__(self, reason: Reason, offset: int):
        super().__init__(f"{reason.name} at byte {offset}")
        self.reason, self.offset = reason, offset
