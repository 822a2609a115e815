"""What the run-time scheduler is told, sees and says: scheduling sections 5 and 6."""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

from golden.checks import check_int

__all__ = ["NEVER", "Route", "Event", "Decision", "Record", "Policy", "PAPER_POLICY"]

NEVER = (1 << 32) - 1  # a deadline that is none; times are 32 bits wide


class Route(IntEnum):
    STREAM = 0
    COMPUTE = 1


class Event(IntEnum):
    """What the scheduler reacts to; of those at one time, the lowest number comes first, but the
    answers of a route, good or bad, come in the order of their arrival."""

    LINK_DONE = 0  # the last write response of a chunk that passed all checks
    LINK_FAILED = 1  # corrupt, truncated, over-long or refused
    COMPUTE_DONE = 2
    COMPUTE_FAILED = 3
    LINK_EXPIRED = 4  # deadline or time-out of a request on the link
    COMPUTE_EXPIRED = 5
    TIMER = 6
    START = 7


class Decision(IntEnum):
    """What the scheduler decides or reports about a chunk; the numbers are those of the trace
    stream."""

    REQUEST_STREAM = 0
    REQUEST_COMPUTE = 1  # keys, values and hidden state
    REQUEST_STATE = 2  # hidden state only: keys and values are present
    PRESENT = 3
    STATE_DONE = 4
    LOST = 5  # neither route can bring it
    STREAM_FAILED = 6  # corrupt, truncated, over-long, refused or silent
    STREAM_LATE = 7  # its deadline has passed; not requested any more, or given up
    COMPUTE_FAILED = 8  # failed or silent
    COMPUTE_BLOCKED = 9  # can never start: what it needs will not come
    RETRY = 10  # requested from the link again, at once
    RECOVER = 11  # computed, because the link failed it or a chunk above it
    FALL_BACK = 12  # streamed, because computing it failed
    MOVE_TO_STREAM = 13
    MOVE_TO_COMPUTE = 14
    EXTEND = 15  # late, but nothing else can bring it: its deadline is waived
    DROP = 16  # an answer that nobody waits for
    STAGE = 17  # the stage number, not a chunk


class Record(NamedTuple):
    """A line of the decision log."""

    time: int
    decision: Decision
    chunk: int


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Registers of the run-time scheduler.

    Parameters
    ----------
    stream_outstanding, compute_outstanding : int
        Requests in flight per route: 1..16.
    scan : int
        Entries or columns looked at when one is searched for: 1..255.
    stream_ahead, compute_ahead : int
        Stages that a route may be ahead of the oldest unfinished one: 0..255. 0: barriers.
    retries : int
        Times that a chunk is streamed again after a failure: 0..3.
    stream_timeout, compute_timeout : int
        Ticks after which an unanswered request has failed: 1..2^32-1.
    refine : bool
        Move work between the routes while running.
    window_log2 : int
        Ratios in the sliding window: 2^0 .. 2^4.
    margin : int
        In 1/256: a route is the slower one if its ratio is more than (1 + margin) times the
        other's. 0..255.
    cap : int
        Moves per stage: 0..255.
    guard : bool
        Move only what is expected to end sooner on the other route.
    idle : bool
        A route with nothing to do takes work, slower or not.
    period : int
        Ticks between refinements when nothing happens: 0..2^32-1. 0: none.
    """

    stream_outstanding: int = 2
    compute_outstanding: int = 2
    scan: int = 32
    stream_ahead: int = 255
    compute_ahead: int = 255
    retries: int = 0
    stream_timeout: int = 1 << 24
    compute_timeout: int = 1 << 24
    refine: bool = True
    window_log2: int = 2
    margin: int = 13
    cap: int = 255
    guard: bool = True
    idle: bool = True
    period: int = 0

    def __post_init__(self):
        ranges = {
            "stream_outstanding": (1, 16), "compute_outstanding": (1, 16), "scan": (1, 255),
            "retries": (0, 3), "window_log2": (0, 4), "period": (0, NEVER),
            "stream_timeout": (1, NEVER), "compute_timeout": (1, NEVER),
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is bool:
                if not isinstance(value, bool):
                    raise TypeError(f"Policy.{field.name} must be a bool, not {value!r}")
            else:
                check_int(f"Policy.{field.name}", value, *ranges.get(field.name, (0, 255)))


# The refinement as SparKV describes it; window, margin and cap as one reproduction chose them.
PAPER_POLICY = Policy(stream_ahead=0, compute_ahead=0, guard=False, idle=False, cap=4)
