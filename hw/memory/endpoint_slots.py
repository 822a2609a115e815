"""Requests of the endpoint under way, and what their responses need."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.sram import Sram
from hw.stream import Queue

__all__ = ["EndpointSlots", "pending_message"]


def pending_message() -> data.StructLayout:
    """What is kept of a message: whether its response carries data, and whether a completion
    returns meta bits."""
    return data.StructLayout({"has_data": 1, "returns_meta": 1, "tag": 16, "ld_id": 4})


class EndpointSlots(wiring.Component):
    """Gives a free slot to each request, and finds what is in it when the response comes.

    After reset all slots are free: a counter hands out each for the first time, a queue later.
    (A bit per slot, as in `hw.attention.slots.SlotPool`, would need a search over all of them.)

    **Latency**: 1 cycle from ``find`` to ``found``. A slot can be taken again 3 cycles after
    ``find``.

    **Throughput**: one taken and one found per cycle.

    **Numerics**: none.

    **Errors**: none. Only a slot that is taken may be found.

    Parameters
    ----------
    count : int
        Slots: a power of two, at least 2.

    Members
    -------
    is_free : ``Out(1)``
        ``slot`` may be taken.
    slot : ``Out(range(count))``
    take : ``In(1)``
        Only with ``is_free``.
    entry : ``In(pending_message())``
    find : ``In(1)``
        The slot's entry is wanted, and the slot is free from now on.
    find_slot : ``In(range(count))``
    found : ``Out(pending_message())``
    """

    def __init__(self, *, count):
        self._count = check_int("EndpointSlots count", count, minimum=2)
        if count & (count - 1):
            raise ValueError(f"EndpointSlots count must be a power of two, not {count!r}")
        super().__init__({
            "is_free": Out(1),
            "slot": Out(range(count)),
            "take": In(1),
            "entry": In(pending_message()),
            "find": In(1),
            "find_slot": In(range(count)),
            "found": Out(pending_message()),
        })

    @property
    def count(self):
        return self._count

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Sram(pending_message(), depth=self.count)
        m.submodules.freed = freed = Queue(range(self.count), depth=self.count)
        m.d.comb += [
            table.write.en.eq(self.take),
            table.write.addr.eq(self.slot),
            table.write.data.eq(self.entry),
            table.read.en.eq(self.find),
            table.read.addr.eq(self.find_slot),
            self.found.eq(table.read.data),
            freed.i.valid.eq(self.find),
            freed.i.payload.eq(self.find_slot),
        ]
        fresh, all_used, is_next = Signal(range(self.count)), Signal(), Signal()
        m.d.comb += [
            is_next.eq(~self.is_free | self.take),
            freed.o.ready.eq(is_next & all_used),
        ]
        with m.If(is_next):
            m.d.sync += [
                self.is_free.eq(~all_used | freed.o.valid),
                self.slot.eq(Mux(all_used, freed.o.payload, fresh)),
            ]
            with m.If(~all_used):
                m.d.sync += [fresh.eq(fresh + 1), all_used.eq(fresh == self.count - 1)]
        return m
