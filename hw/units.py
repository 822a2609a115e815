"""The units that are emitted as Verilog: one table for the command line, the tests and CI."""

__all__ = ["UNITS"]


def _attention(config):
    from hw.attention.unit import AttentionUnit

    return AttentionUnit(config)


# Name to a function that makes the unit of a configuration. Each imports its unit when it is
# asked for, so that emitting one does not load the others.
UNITS = {
    "attention": _attention,
}
