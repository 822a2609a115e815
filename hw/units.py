"""The units that are emitted as Verilog: one table for the command line, the tests and CI."""

__all__ = ["UNITS"]


def _attention(preset):
    from hw.attention.unit import AttentionUnit

    return AttentionUnit(preset.attention)


def _streaming(preset):
    from hw.streaming.unit import StreamingUnit

    return StreamingUnit(preset.streaming)


# Name to a function that makes the unit of a preset. Each imports its unit when it is
# asked for, so that emitting one does not load the others.
UNITS = {
    "attention": _attention,
    "streaming": _streaming,
}
