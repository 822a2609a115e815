"""Event and cycle counters of the attention unit."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error
from hw.attention.register_map import COUNTERS

__all__ = ["COUNTER_BITS", "Counters"]

COUNTER_BITS = 32


class Counters(wiring.Component):
    """Counters in the order of ``register_map.COUNTERS``; they wrap.

    Every cycle is of exactly one cause, so that busy + memory + output + idle equals the cycles
    since the last clear: *idle* when no command is in progress, else *output* when the result
    stream is held up, else *memory* when the memory port moved nothing though something was asked
    of it, else *busy*.

    **Latency**: 1 cycle from an event to its count.

    **Throughput**: every event may come in every cycle.

    **Numerics**: exact, modulo 2**32.

    **Errors**: none.

    Members
    -------
    clear : ``In(1)``
        All counters to zero; what happens in the same cycle is not counted.
    idle, output_held, memory_held : ``In(1)``
        Conditions of this cycle.
    matching, scanning, beat_read, beat_written, closed, rejected : ``In(1)``
        Events of this cycle.
    error : ``In(Error)``
        Of the command closed in this cycle.
    values : ``Out``
        The counters.
    """

    idle: In(1)
    output_held: In(1)
    memory_held: In(1)
    matching: In(1)
    scanning: In(1)
    beat_read: In(1)
    beat_written: In(1)
    closed: In(1)
    error: In(Error)
    rejected: In(1)
    clear: In(1)
    values: Out(data.ArrayLayout(COUNTER_BITS, len(COUNTERS)))

    def elaborate(self, platform):
        m = Module()
        is_busy = ~self.idle & ~self.output_held & ~self.memory_held
        events = {
            "cycles_busy": is_busy,
            "cycles_memory": ~self.idle & ~self.output_held & self.memory_held,
            "cycles_output": ~self.idle & self.output_held,
            "cycles_idle": self.idle,
            "cycles_matching": self.matching,
            "cycles_scanning": self.scanning,
            "beats_read": self.beat_read,
            "beats_written": self.beat_written,
            "commands": self.closed,
            "contexts_rejected": self.rejected,
        }
        for code in Error:
            if code != Error.NONE:
                events[f"errors_{code.name.lower()}"] = self.closed & (self.error == code)
        for index, (name, _) in enumerate(COUNTERS):
            value = self.values[index]
            m.d.sync += value.eq(Mux(self.clear, 0, value + events[name]))
        return m
