"""What a chunk that is present or computed allows others."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, is_present, read, rewrite
from hw.streaming.scheduler.layouts import Task, grid

__all__ = ["Needs"]


class Needs(wiring.Component):
    """Keeps ``below_met`` and ``before_met`` of the chunk table up to date, so that a search sees
    from the row of a chunk alone whether it may be computed.

    Under STRICT ``before_met`` runs ahead through the blocks: it is passed on to the next block's
    chunk for as long as the chunks in between are present.

    **Latency**: from ``start`` to ``done`` at most 9 cycles under PAPER; under STRICT at most
    9 + 6 * heads and 3 more per block that is passed.

    **Throughput**: one call at a time.

    **Numerics**: ``golden.streaming.tasks.Table.needs_met``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    call : ``In(Call({present, computed}))``
        The chunk shown is present, or computed, for the first time.
    policy : ``In(schedule_policy(config))``
    grid : ``In(grid(config))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Needs", config)
        super().__init__({
            **actor_members(config),
            "call": In(Call(data.StructLayout({"present": 1, "computed": 1}))),
            "policy": In(schedule_policy(config)),
            "grid": In(grid(config)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        bits = self.config.chunk_bits
        chunk, head = Signal(bits), Signal(bits)
        opens_layer = Signal()
        index = Signal(bits + 1)
        following = Signal(bits + 1)
        is_strict, word = self.policy.rule, self.row.word
        m.d.comb += following.eq(self.row.chunk + self.grid.block)
        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.sync += [
                    chunk.eq(self.row.chunk),
                    head.eq(self.row.place.head),
                    opens_layer.eq(self.call.argument.computed & ~word.last_layer),
                ]
                with m.If(self.call.start):
                    m.next = "LAYER"
                    with m.If(self.call.argument.present & (following < self.grid.count)
                              & (~is_strict | word.before_met)):
                        m.d.comb += read(self, following)
                        m.next = "BEFORE"
            with m.State("BEFORE"), m.If(self.row.shown):
                m.d.comb += rewrite(self, before_met=1)
                with m.If(is_strict & is_present(word) & (following < self.grid.count)):
                    m.d.comb += read(self, following)
                with m.Else():
                    m.next = "LAYER"
            with m.State("LAYER"):
                with m.If(~opens_layer):
                    m.next = "DONE"
                with m.Elif(is_strict):
                    m.d.comb += read(self, chunk - head)
                    m.d.sync += index.eq(1)
                    m.next = "CHECK"
                with m.Else():
                    m.d.comb += read(self, chunk + self.grid.heads)
                    m.next = "BELOW"
            with m.State("CHECK"), m.If(self.row.shown):
                m.d.comb += read(self, chunk - head + index)
                m.d.sync += index.eq(index + 1)
                with m.If(word.tasks[1] != Task.DONE):
                    m.next = "DONE"
                with m.Elif(index == self.grid.heads):
                    # The layer is complete, and what was read is the first chunk of that above.
                    m.d.sync += index.eq(1)
                    m.next = "BELOW"
            with m.State("BELOW"), m.If(self.row.shown):
                m.d.comb += rewrite(self, below_met=1)
                with m.If(is_strict & (index != self.grid.heads)):
                    m.d.comb += read(self, self.row.chunk + 1)
                    m.d.sync += index.eq(index + 1)
                with m.Else():
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        return m
