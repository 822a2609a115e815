"""Cycles of a query: the limits that no design can beat, and what the unit should take.

The limits follow from the code lines matched per cycle and the bytes that cross the memory port;
the prediction adds the stages' own cycles and their depths, which are measured on the RTL and kept
in :class:`Depths`. All numbers are cycles of one clock; a bus beat takes one.
"""

from dataclasses import dataclass, fields

from golden.checks import check_int
from golden.selection import Select
from hw.config import AttentionConfig

__all__ = ["Depths", "Prediction", "Work", "code_beats", "predict", "row_beats"]

CYCLES_MAX = (1 << 40) - 1


def _check_config(config):
    if not isinstance(config, AttentionConfig):
        raise TypeError(f"config must be an AttentionConfig, not {config!r}")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a query does.

    Parameters
    ----------
    visible : int
        N, tokens that may be read.
    full, coarse, summaries : int
        Items read of each kind.
    select : Select
        DENSE and DISTANCE queries search no threshold; a DENSE one matches no codes.
    logits_only : bool
        No V rows, no output.
    has_code : bool
        Codes come with the query, which then is not encoded.
    """

    visible: int
    full: int
    coarse: int = 0
    summaries: int = 0
    select: Select = Select.BUDGET
    logits_only: bool = False
    has_code: bool = False

    def __post_init__(self):
        check_int("Work.visible", self.visible, 1, CYCLES_MAX)
        for name in ("full", "coarse", "summaries"):
            check_int(f"Work.{name}", getattr(self, name), 0, self.visible)
        if not isinstance(self.select, Select):
            raise TypeError(f"Work.select must be a Select, not {self.select!r}")
        for name in ("logits_only", "has_code"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"Work.{name} must be a bool, not {getattr(self, name)!r}")


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Cycles that the stages add beside their items, from the latencies their docstrings state.

    Parameters
    ----------
    command : int
        From a command to its first data beat, and from its last code to the job.
    encoder, matcher, search, expander, fetch, head, result : int
        From the last item into a stage to its effect at the output.
    """

    command: int = 9
    encoder: int = 7
    matcher: int = 8
    search: int = 6
    expander: int = 6
    fetch: int = 7
    head: int = 24
    result: int = 12

    def __post_init__(self):
        for entry in fields(self):
            check_int(f"Depths.{entry.name}", getattr(self, entry.name), 0, CYCLES_MAX)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Cycles of a query, by stage and in all.

    Members
    -------
    load, encode, code, search, payload, output : int
        Query data beats; encoding; matching; threshold search; row beats; output beats.
    latency, interval : int
        From the command to the last output beat of a query alone; between queries back to back.
    latency_limit, interval_limit : int
        Code phase and payload one after the other; and overlapped as far as the port allows.
    """

    load: int
    encode: int
    code: int
    search: int
    payload: int
    output: int
    latency: int
    interval: int
    latency_limit: int
    interval_limit: int


def row_beats(config, work):
    """Bus beats of K and V rows and of page summaries, waste of narrow rows included."""
    _check_config(config)
    beats = (work.full + work.summaries) * config.full_beats + work.coarse * config.coarse_beats
    return beats * (1 if work.logits_only else 2)


def code_beats(config, work):
    """Bus beats of streamed code lines, 0 when the codes are resident.

    A line holds the exponents too: dense queries read it as well.
    """
    _check_config(config)
    if config.code_source == "resident":
        return 0
    return _lines(config, work) * config.code_line_beats


def _lines(config, work):
    return -(-work.visible // config.lanes)


def predict(config, work, memory_latency, depths=None):
    """Limits and predicted cycles of a query.

    Parameters
    ----------
    config : AttentionConfig
    work : Work
    memory_latency : int
        Cycles from a read address to its first beat.
    depths : Depths or None

    Returns
    -------
    Prediction
    """
    _check_config(config)
    if not isinstance(work, Work):
        raise TypeError(f"work must be a Work, not {work!r}")
    memory_latency = check_int("memory_latency", memory_latency, 0, CYCLES_MAX)
    depths = Depths() if depths is None else depths
    if not isinstance(depths, Depths):
        raise TypeError(f"depths must be a Depths, not {depths!r}")
    hashed = work.select != Select.DENSE
    encoded = hashed and not work.has_code
    searched = work.select in (Select.BUDGET, Select.PERCENTILE)

    load = config.group * -(-config.query_data_bytes // config.memory_bytes)
    if work.has_code:
        load += -(-config.group * config.code_bits // 8 // config.memory_bytes)
    encode = config.group * config.code_bits // config.encoder_lanes if encoded else 0
    streamed = code_beats(config, work)
    code = streamed if streamed else _lines(config, work) if hashed else 0
    search = -(-config.distance_bins // config.bins_per_cycle) if searched else 0
    payload = row_beats(config, work)
    output = 0 if work.logits_only else config.group * config.head_dim // config.result_lanes

    latency = (
        depths.command + load + (encode + depths.encoder if encoded else 0)
        + (code + depths.matcher if hashed or streamed else 0) + (memory_latency if streamed else 0)
        + (search + depths.search if searched else 0)
        + depths.expander + depths.fetch + memory_latency + payload
        + depths.head + depths.result + output
    )
    # Code lines that are streamed share the port with the rows.
    port = payload + streamed
    interval_limit = max(port, code)
    return Prediction(
        load=load, encode=encode, code=code, search=search, payload=payload, output=output,
        latency=latency, interval=max(interval_limit, load, encode, search, output),
        latency_limit=code + payload, interval_limit=interval_limit,
    )
