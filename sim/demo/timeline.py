"""Timeline of a session in Chrome's trace format, which https://ui.perfetto.dev opens."""

import json

from sim.attention import Append, Query

__all__ = ["write_timeline"]


def write_timeline(path, job, results):
    """Write when each append and query of a job began and ended; a cycle shows as a microsecond.

    Commands that overlap lie on tracks below each other.
    """
    modes = {}
    for mode in ("hashed", "burst", "dense"):
        for places in getattr(job, mode):
            modes.update({at: f"query {number}, {mode}" for number, at in enumerate(places)})
    events, ends = [], []
    commands = [(result.start_cycle, at, result)
                for at, result in enumerate(results) if hasattr(result, "start_cycle")]
    for start, at, result in sorted(commands, key=lambda command: command[:2]):
        operation = job.session.operations[at]
        track = next((number for number, end in enumerate(ends) if end <= start), len(ends))
        ends[track:track + 1] = [result.end_cycle]
        event = {"ph": "X", "pid": 0, "tid": track, "ts": start, "dur": result.end_cycle - start,
                 "name": "weights", "args": {"error": result.error}}
        if isinstance(operation, (Append, Query)):
            event["cat"] = job.heads[operation.context].label
            event["name"] = modes.get(at, "append")
        if isinstance(operation, Query):
            event["args"].update(full=result.full, coarse=result.coarse,
                                 summaries=result.summaries, beats=result.beats)
        events.append(event)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)
