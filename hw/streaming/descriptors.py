"""Gives copy commands to the engine: those that come as such, and those of chains in memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.read_port import ReadPort
from hw.config import StreamingConfig
from hw.stream import Arbiter, Queue
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_task
from hw.streaming.descriptor_fetch import DESCRIPTOR_BYTES, DescriptorFetch
from hw.streaming.layouts import CopyError, CopyKind, copy_command

__all__ = ["Descriptors", "chain", "descriptor"]

FLAG_LINKED = 0
FLAG_FENCE = 1
FLAGS = 2


def descriptor() -> data.StructLayout:
    """A command in memory: 64 bytes, little-endian, at a multiple of 64."""
    return data.StructLayout({
        "kind": 8, "flags": 8, "tag": 16, "row_bytes": 32,
        "next": 64,
        "source": 64, "destination": 64,
        "source_stride": 32, "destination_stride": 32,
        "rows": 16, "window_mask": 16, "reserved": 160,
    })


def chain(config: StreamingConfig) -> data.StructLayout:
    """A doorbell: the descriptors from ``address`` on, at most ``limit`` of them. ``tag`` is that
    of errors which no descriptor is to blame for."""
    return data.StructLayout({"address": config.address_bits, "limit": 16, "tag": 16})


class _State(enum.Enum, shape=2):
    IDLE = 0
    WALK = 1    # wait for a descriptor
    REFUSE = 2  # tell why the chain ends before its end


class Descriptors(wiring.Component):
    """Reads chains of descriptors, one chain after the other, and merges in commands that come
    ready-made.

    The descriptor after the one that is decoded is under way already: at the address that follows,
    or else as soon as its address is known, whether or not the command has run. Commands leave in
    order of arrival; of both kinds in turn, if both wait. A command of a chain marked as a fence
    waits until the engine is done with all that it was given before.

    **Latency**: 0 cycles from ``i_command`` to ``o``. From ``i_chain`` 1 cycle to ``bus.ar``; from
    the last beat of a descriptor 5 cycles to ``o``.

    **Throughput**: 1 command per cycle from ``i_command``; of a chain, one in as many cycles as a
    descriptor has beats, and 1, if they lie behind each other and the latency is bridged by 4.

    **Numerics**: ``golden.streaming.chain.walk``.

    **Errors**: KIND (unknown kind or flags; the chain ends) and ADDRESS (beyond the address space)
    of a descriptor, with its tag. With that of the chain, which they end: ADDRESS (a descriptor not
    at a multiple of 64, or beyond the address space), FETCH (read with an error), CYCLE (more than
    ``limit``), ABORTED.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_chain : ``In(stream.Signature(chain(config)))``
    i_command : ``In(stream.Signature(copy_command(config)))``
    bus : ``Out(ReadPort(address_bits, bus_bytes))``
    o : ``Out(stream.Signature(copy_task(config)))``
    engine_busy : ``In(1)``
        ``busy`` of the `CopyEngine`.
    abort : ``In(1)``
        While it is high, chains end.
    busy : ``Out(1)``
        A chain is under way.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Descriptors", config)
        super().__init__({
            "i_chain": In(stream.Signature(chain(config))),
            "i_command": In(stream.Signature(copy_command(config))),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "o": Out(stream.Signature(copy_task(config))),
            "engine_busy": In(1),
            "abort": In(1),
            "busy": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        queued = data.StructLayout({"task": copy_task(config), "is_fence": 1})
        m.submodules.fetch = fetch = DescriptorFetch(config)
        m.submodules.tasks = tasks = Queue(queued, depth=2)
        m.submodules.arbiter = arbiter = Arbiter(copy_task(config), count=2)
        wiring.connect(m, fetch.bus, wiring.flipped(self.bus))
        wiring.connect(m, arbiter.o, wiring.flipped(self.o))

        state = Signal(_State)
        reason, tag, left = Signal(CopyError), Signal(16), Signal(16)
        self._walk(m, fetch, tasks.i, state, reason=reason, tag=tag, left=left)
        with m.If((state == _State.IDLE) & self.i_chain.valid):
            m.d.sync += [tag.eq(self.i_chain.payload.tag), left.eq(self.i_chain.payload.limit)]
        m.d.comb += [
            self.i_chain.ready.eq(state == _State.IDLE),
            self.busy.eq((state != _State.IDLE) | tasks.o.valid),
        ]

        resident, fetched = arbiter.i
        is_clear = Signal()   # nothing that came before the fence is under way any more
        passes = ~tasks.o.payload.is_fence | is_clear
        m.d.comb += [
            resident.payload.command.eq(self.i_command.payload),
            resident.valid.eq(self.i_command.valid),
            self.i_command.ready.eq(resident.ready),
            fetched.payload.eq(tasks.o.payload.task),
            fetched.valid.eq(tasks.o.valid & passes),
            tasks.o.ready.eq(fetched.ready & passes),
        ]
        with m.If(tasks.o.valid & tasks.o.ready):
            m.d.sync += is_clear.eq(0)
        with m.Elif(tasks.o.valid & ~self.engine_busy & ~(self.o.valid & self.o.ready)):
            m.d.sync += is_clear.eq(1)
        return m

    def _walk(self, m, fetch, output, state, *, reason, tag, left):
        """Follow a chain: ``left`` descriptors may still come."""
        found = fetch.o.payload.bytes
        entry = data.View(descriptor(), found)
        is_known, is_linked = Signal(), Signal()
        target, is_misplaced = Signal(64), Signal()
        m.d.comb += [
            is_known.eq((entry.kind <= CopyKind.FEED.value) & (entry.flags[FLAGS:] == 0)),
            is_linked.eq(is_known & entry.flags[FLAG_LINKED]),
            target.eq(Mux(state == _State.IDLE, self.i_chain.payload.address, entry.next)),
            is_misplaced.eq((target % DESCRIPTOR_BYTES != 0)
                            | (target[self.config.address_bits:] != 0)),
            fetch.target.eq(target),
        ]
        # The address behind that of the descriptor looked at.
        following = Signal(self.config.address_bits)

        def refuse(error):
            m.d.sync += [state.eq(_State.REFUSE), reason.eq(error)]
            m.d.comb += fetch.stop.eq(1)

        def go_on():
            """To ``target``, if that may be."""
            with m.If(Mux(state == _State.IDLE, self.i_chain.payload.limit, left - 1) == 0):
                refuse(CopyError.CYCLE)
            with m.Elif(is_misplaced):
                refuse(CopyError.ADDRESS)
            with m.Else():
                m.d.sync += [state.eq(_State.WALK), following.eq(target + DESCRIPTOR_BYTES)]
                m.d.comb += fetch.start.eq((state == _State.IDLE) | (target != following))

        with m.If(state == _State.IDLE):
            with m.If(self.i_chain.valid):
                go_on()
        with m.Elif(state == _State.REFUSE):
            self._assign_command(m, output, tag, reason)
            m.d.comb += output.valid.eq(1)
            with m.If(output.ready):
                m.d.sync += state.eq(_State.IDLE)
        with m.Elif(self.abort):
            refuse(CopyError.ABORTED)
        with m.Elif(fetch.o.valid & fetch.o.payload.failed):
            refuse(CopyError.FETCH)
        with m.Elif(fetch.o.valid & output.ready):
            self._decode(m, entry, output, is_known)
            m.d.comb += [output.valid.eq(1), fetch.o.ready.eq(1)]
            m.d.sync += left.eq(left - 1)
            with m.If(is_linked):
                go_on()
            with m.Else():
                m.d.comb += fetch.stop.eq(1)
                m.d.sync += state.eq(_State.IDLE)

    def _assign_command(self, m, output, tag, fault):
        m.d.comb += [
            output.payload.task.command.tag.eq(tag),
            output.payload.task.fault.eq(fault),
        ]

    def _decode(self, m, entry, output, is_known):
        task = output.payload.task
        bits = self.config.address_bits
        is_beyond = Signal()
        m.d.comb += is_beyond.eq((entry.source[bits:] != 0) | (
            (entry.kind == CopyKind.COPY.value) & (entry.destination[bits:] != 0)))
        m.d.comb += [task.command[name].eq(entry[name]) for name, _ in copy_command(self.config)]
        # Of a kind that is unknown, but refused, what is always one of those known.
        m.d.comb += task.command.kind.eq(entry.kind[0])
        m.d.comb += output.payload.is_fence.eq(entry.flags[FLAG_FENCE])
        with m.If(~is_known):
            m.d.comb += task.fault.eq(CopyError.KIND)
        with m.Elif(is_beyond):
            m.d.comb += task.fault.eq(CopyError.ADDRESS)
