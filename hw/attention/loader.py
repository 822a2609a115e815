"""What the loaders of the commands' data have in common."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.attention.gather import gathered_record, max_record_beats, record_count_bits
from hw.attention.layouts import Error, command, context_entry
from hw.config import AttentionConfig

__all__ = ["loader_members"]


def loader_members(config: AttentionConfig) -> dict:
    """Members by which the front end drives a loader.

    command, entry : ``In``
        The checked command and its context, constant from before the first record until ``done``.
    records, beats : ``Out``
        Records of the command, and data beats of record number ``index``.
    index : ``In``
        Number, from 0, of the record on ``i``, or else of the one that comes next.
    i : ``In(stream)`` of ``gathered_record``
        Ends with the command's final record, or a bad one.
    done : ``Out(1)``
        High for one cycle when nothing of the command is left to do but the data past a bad record.
    error : ``Out(Error)``
        With ``done``: how it went.
    """
    count_bits = record_count_bits(config)
    return {
        "command": In(command(config)),
        "entry": In(context_entry(config)),
        "records": Out(count_bits),
        "beats": Out(range(max_record_beats(config) + 1)),
        "index": In(count_bits),
        "i": In(stream.Signature(gathered_record(config))),
        "done": Out(1),
        "error": Out(Error),
    }
