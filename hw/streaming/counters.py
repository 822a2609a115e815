"""Event and cycle counters of the streaming engine."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.streaming.register_map import COUNTERS

__all__ = ["Counters"]

COUNTER_BITS = 32


class Counters(wiring.Component):
    """Counters in the order of ``register_map.COUNTERS``; they wrap.

    Every cycle is of exactly one cause, so that the ``cycles_`` counters add up to the cycles since
    the last clear: *idle* without work, else *output* when the report stream is held up, else
    *memory* when the memory port moved nothing though something was asked of it, else *link* when
    chunks are awaited and none comes, else *busy*.

    **Latency**: 1 cycle from an event to its count.

    **Throughput**: every event may come in every cycle.

    **Numerics**: exact, modulo 2**32.

    **Errors**: none.

    Members
    -------
    clear : ``In(1)``
        All counters to zero; what happens in the same cycle is not counted.
    idle, output_held, memory_held, link_held : ``In(1)``
        Conditions of this cycle.
    beat_read, beat_written, beat_link, record_failed, answer_unknown : ``In(1)``
        Events of this cycle.
    values : ``Out``
        The counters.
    """

    idle: In(1)
    output_held: In(1)
    memory_held: In(1)
    link_held: In(1)
    beat_read: In(1)
    beat_written: In(1)
    beat_link: In(1)
    record_failed: In(1)
    answer_unknown: In(1)
    clear: In(1)
    values: Out(data.ArrayLayout(COUNTER_BITS, len(COUNTERS)))

    def elaborate(self, platform):
        m = Module()
        events = {
            "beats_read": self.beat_read,
            "beats_written": self.beat_written,
            "beats_link": self.beat_link,
            "records_failed": self.record_failed,
            "answers_unknown": self.answer_unknown,
        }
        is_left = 1  # no cause before applies
        for name, applies in (
            ("idle", self.idle), ("output", self.output_held), ("memory", self.memory_held),
            ("link", self.link_held), ("busy", 1),
        ):
            events[f"cycles_{name}"] = is_left & applies
            is_left = is_left & ~applies
        for index, (name, _) in enumerate(COUNTERS):
            value = self.values[index]
            m.d.sync += value.eq(Mux(self.clear, 0, value + events[name]))
        return m
