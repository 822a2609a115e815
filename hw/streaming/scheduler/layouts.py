"""Payload layouts between the parts of the route scheduler."""

from amaranth.lib import data, enum

from hw.config import StreamingConfig
from hw.streaming.layouts import PREDICTION_BITS, STAGE_BITS, TICK_BITS, Decision, Route

__all__ = [
    "OUTSTANDING_MAX", "STAGES_MAX", "Task", "Event", "LoadError", "Source", "Wanted",
    "event_record", "task_word", "chunk_place", "row", "effects", "grid", "flight",
    "happening", "scan_request", "scan_result", "load_bits",
]

OUTSTANDING_MAX = 16
STAGES_MAX = 1 << STAGE_BITS


class Task(enum.Enum, shape=3):
    """What a route has to do with a chunk (``golden.streaming.tasks.Task``)."""

    NONE = 0
    WAIT = 1
    FLY = 2
    DONE = 3
    FAILED = 4


class Event(enum.Enum, shape=3):
    """What the scheduler reacts to (``golden.streaming.policy.Event``)."""

    LINK_DONE = 0
    LINK_FAILED = 1
    COMPUTE_DONE = 2
    COMPUTE_FAILED = 3
    LINK_EXPIRED = 4
    COMPUTE_EXPIRED = 5
    TIMER = 6
    START = 7


class LoadError(enum.Enum, shape=4):
    """Why a job was refused. What is found first is told; of one entry, or at the start, the lowest
    number."""

    NONE = 0
    TICKS = 1      # a predicted time of 0
    TWICE = 2      # a chunk that was listed before
    STAGE = 3      # stages of a list that fall, or one that is not below ``stages``
    POLICY = 4     # a register out of its range
    GRID = 5       # a size of 0, or more chunks than the table has
    MISSING = 6    # a chunk of the grid that is in no list
    RANGE = 7      # a listed chunk that is not of the grid


class Source(enum.Enum, shape=2):
    """Where a search takes its chunks from."""

    QUEUE = 0
    LIST = 1
    COLUMNS = 2


class Wanted(enum.Enum, shape=2):
    """What a search looks for."""

    WAITING = 0     # waits on the route
    READY = 1       # may be computed now
    STREAMABLE = 2  # never moved, and may be streamed instead if none above needs its state
    COMPUTABLE = 3  # never moved, and may be computed instead


def load_bits(config: StreamingConfig) -> int:
    """Width of the sum of all predicted times of a route."""
    return PREDICTION_BITS + config.chunk_bits + 1


def event_record(config: StreamingConfig) -> data.StructLayout:
    """An event that the scheduler has begun to react to; ``valid`` for one cycle."""
    return data.StructLayout(
        {"valid": 1, "time": TICK_BITS, "event": Event, "chunk": config.chunk_bits})


def task_word() -> data.StructLayout:
    """What the chunk table holds of a chunk and changes while a job runs; pairs are by route."""
    return data.StructLayout({
        "tasks": data.ArrayLayout(Task, len(Route)),
        "queued": len(Route),   # stands in the route's queue
        "retries": 2,           # left
        "moved": 1,
        "resolved": 1,
        "below_met": 1,         # all that must be computed before it is
        "before_met": 1,        # all that must be present is; under STRICT also of the last layer
        "first_layer": 1,
        "last_layer": 1,
    })


def chunk_place(config: StreamingConfig) -> data.StructLayout:
    return data.StructLayout({"column": config.chunk_bits, "head": config.chunk_bits})


def row(config: StreamingConfig) -> data.StructLayout:
    """All that the chunk table knows of a chunk. ``shown``: it is the one that was read last."""
    return data.StructLayout({
        "shown": 1,
        "chunk": config.chunk_bits,
        "word": task_word(),
        "stage": STAGE_BITS,
        "ticks": data.ArrayLayout(PREDICTION_BITS, len(Route)),
        "deadline": TICK_BITS,
        "place": chunk_place(config),
    })


def effects(config: StreamingConfig) -> data.StructLayout:
    """What an actor does in a cycle; all 0 is nothing. All but ``read`` concern the chunk whose row
    is shown; of pairs of bits, bit 1 is for computing."""
    return data.StructLayout({
        "read": 1, "chunk": config.chunk_bits,   # show the row of a chunk, from 3 cycles later on
        "hold": 1,                               # what was asked for and is not shown never is
        "write": 1, "word": task_word(),
        "waive": 1,                              # its deadline becomes NEVER
        "say": 1, "decision": Decision,
        "resolve": 1,                            # it is present or lost, for the first time
        "depart": len(Route),                    # its request goes out
        "land": len(Route), "measured": 1,       # its request has ended
        "extend": 1,                             # its request on the link does not get late
        "deepen": 1,                             # its column is computed up to it
        "push": len(Route), "pop": len(Route),   # at the queue's end, from its front
        "set_head": len(Route), "set_tail": 1, "position": config.chunk_bits + 1,
    })


def grid(config: StreamingConfig) -> data.StructLayout:
    """Sizes of a job in chunks: a layer of a block, a block, all; and the number of columns."""
    bits = config.chunk_bits + 1
    return data.StructLayout({"heads": bits, "block": bits, "count": bits, "columns": bits})


def flight(config: StreamingConfig) -> data.StructLayout:
    """A request in flight: it is late, or has been silent for too long, from these times on."""
    return data.StructLayout({
        "chunk": config.chunk_bits,
        "state_only": 1,
        "ticks": PREDICTION_BITS,
        "late_at": TICK_BITS + 1,
        "silent_at": TICK_BITS + 1,
    })


def happening(config: StreamingConfig) -> data.StructLayout:
    """The next event; ``late`` and ``silent`` say why a request has expired."""
    return data.StructLayout({
        "event": Event, "chunk": config.chunk_bits, "late": 1, "silent": 1})


def scan_request(config: StreamingConfig) -> data.StructLayout:
    """A search through ``count`` entries from index ``first``, downwards if ``down``. ``bounded``:
    ends before the first chunk beyond the route's horizon."""
    return data.StructLayout({
        "source": Source,
        "route": Route,
        "wanted": Wanted,
        "first": config.chunk_bits,
        "count": config.chunk_bits + 1,
        "down": 1,
        "bounded": 1,
    })


def scan_result(config: StreamingConfig) -> data.StructLayout:
    """``found``: at ``index``, and the table shows its row. Else, of columns, ``near``: the first
    of the stage after the horizon."""
    near = data.StructLayout({
        "found": 1, "index": config.chunk_bits, "chunk": config.chunk_bits})
    return data.StructLayout({"found": 1, "index": config.chunk_bits, "near": near})
