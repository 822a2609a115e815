"""Hands a chunk that the link failed to computing, with the states it needs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import Decision, schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, read, rewrite, say
from hw.streaming.scheduler.layouts import Task, grid

__all__ = ["Recovery", "recovery_call"]


def recovery_call():
    """A call of `Recovery`: ``runs``, hand the chain over, or only look whether there is one."""
    return Call(data.StructLayout({"runs": 1}), data.StructLayout({"exists": 1}))


class Recovery(wiring.Component):
    """Finds the chain of the chunk shown, from the top down, and hands it to computing, from the
    bottom up.

    **Latency**: from ``start`` to ``done`` at most 4 cycles, 1 per layer and 3 per chunk in the
    layers looked at; with ``runs`` 3 more per chunk gone through on the way up, if the log has
    room.

    **Throughput**: one call at a time.

    **Numerics**: ``golden.streaming.tasks.Table.chain``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    call : ``In(recovery_call())``
        ``exists``: there is a chain. Another row is shown afterwards.
    policy : ``In(schedule_policy(config))``
    grid : ``In(grid(config))``
    room : ``In(1)``
        The log has room.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Recovery", config)
        super().__init__({
            **actor_members(config),
            "call": In(recovery_call()),
            "policy": In(schedule_policy(config)),
            "grid": In(grid(config)),
            "room": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        bits = self.config.chunk_bits
        chunk, own_layer, layer, lowest = (
            Signal(bits, name=name) for name in ("chunk", "own_layer", "layer", "lowest"))
        index = Signal(bits + 1)
        lacks = Signal()
        compute = self.row.word.tasks[1]
        is_strict = self.policy.rule
        m.d.comb += self.call.result.exists.eq(0)
        with m.FSM(name="state"):
            with m.State("IDLE"):
                # Under the paper's rule the chunk below stands for its whole layer.
                first = self.row.chunk - Mux(is_strict, self.row.place.head, 0)
                m.d.sync += [
                    chunk.eq(self.row.chunk),
                    own_layer.eq(first),
                    layer.eq(first),
                    lowest.eq(self.row.chunk),
                ]
                with m.If(self.call.start):
                    with m.If(compute == Task.FAILED):
                        m.next = "NONE"
                    with m.Elif(self.row.word.first_layer):
                        m.next = "FOUND"
                    with m.Else():
                        m.next = "DOWN"
            with m.State("DOWN"):
                m.d.comb += read(self, layer - self.grid.heads)
                m.d.sync += [layer.eq(layer - self.grid.heads), index.eq(1), lacks.eq(0)]
                m.next = "LOOK"
            with m.State("LOOK"), m.If(self.row.shown):
                self._look(m, index, lacks, layer, lowest)
            with m.State("FOUND"):
                m.d.comb += read(self, lowest)
                with m.If(self.call.argument.runs):
                    m.next = "UP"
                with m.Else():
                    m.next = "DONE"
            with m.State("UP"), m.If(self.row.shown):
                with m.If(self.room):
                    self._hand_over(m)
                    following = self.row.chunk + Mux(is_strict, 1, self.grid.heads)
                    m.d.comb += read(self, Mux(following[:bits] == own_layer, chunk, following))
                    with m.If(self.row.chunk == chunk):
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [self.call.done.eq(1), self.call.result.exists.eq(1)]
                m.next = "IDLE"
            with m.State("NONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        return m

    def _look(self, m, index, lacks, layer, lowest):
        """Go through the chunks of a layer, and on to the one below if one has nothing to do."""
        compute = self.row.word.tasks[1]
        lacks_now = lacks | (compute == Task.NONE)
        m.d.comb += read(self, self.row.chunk + 1)
        m.d.sync += [lacks.eq(lacks_now), index.eq(index + 1)]
        with m.If(compute == Task.FAILED):
            m.next = "NONE"
        with m.Elif(~self.policy.rule | (index == self.grid.heads)):
            with m.If(~lacks_now):
                m.next = "FOUND"
            with m.Else():
                m.d.sync += lowest.eq(layer)
                m.next = "DOWN"
                with m.If(self.row.word.first_layer):
                    m.next = "FOUND"

    def _hand_over(self, m):
        stream, compute = self.row.word.tasks[0], self.row.word.tasks[1]
        with m.If(compute == Task.NONE):
            m.d.comb += [
                *rewrite(self, compute=Task.WAIT,
                         stream=Mux(stream == Task.WAIT, Task.NONE, stream),
                         queued=self.row.word.queued | 0b10),
                self.effects.push[1].eq(~self.row.word.queued[1]),
                *say(self, Decision.RECOVER),
            ]
