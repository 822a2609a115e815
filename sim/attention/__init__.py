"""Run the attention unit: operations for it, and sessions that carry them out in simulation."""

from sim.attention.operations import (
    Append,
    Context,
    Counters,
    Memory,
    Query,
    QueryResult,
    Raw,
    Reset,
    Status,
    Stopwatch,
    Table,
    Wait,
    Weights,
)
from sim.attention.session import Session

__all__ = [
    "Append", "Context", "Counters", "Memory", "Query", "QueryResult", "Raw", "Reset", "Session",
    "Status", "Stopwatch", "Table", "Wait", "Weights",
]
