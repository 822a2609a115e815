"""Takes commands, finds their contexts, and refuses what can be refused without their data."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.contexts import context_view
from hw.attention.layouts import Error, Opcode, Select, command
from hw.config import AttentionConfig

__all__ = ["Intake", "checked_command"]


def checked_command(config: AttentionConfig) -> data.StructLayout:
    """A command with its context, the first thing wrong with it, and what its query sees."""
    return data.StructLayout({
        "command": command(config),
        "view": context_view(config),
        "error": Error,
        "visible": config.token_bits,  # means nothing unless it is a query without error
    })


class Intake(wiring.Component):
    """Takes one command at a time, and holds it until it is done with.

    **Latency**: 1 cycle more than the lookup takes; 2 with `ContextTable`.

    **Throughput**: one command per 3 cycles.

    **Numerics**: none.

    **Errors**: told by ``error``, in this order. QUERY: CONTEXT, EMPTY, VISIBLE, BUDGET. APPEND:
    CONTEXT, CAPACITY, DATA (no tokens). WEIGHTS: CAPACITY (rows past the weight memory), DATA (no
    rows). Any other opcode: OPCODE.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream)`` of ``command``
    o_lookup, i_view : streams of 16-bit index and ``context_view``
    o : ``Out(stream)`` of ``checked_command``
    idle : ``Out(1)``
        No command is held, or offered.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Intake config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(command(config))),
            "o_lookup": Out(stream.Signature(16)),
            "i_view": In(stream.Signature(context_view(config))),
            "o": Out(stream.Signature(checked_command(config))),
            "idle": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                # The lookup leaves with the command: an answer can come in the next cycle.
                m.d.comb += [
                    self.i.ready.eq(self.o_lookup.ready),
                    self.o_lookup.valid.eq(self.i.valid),
                    self.o_lookup.payload.eq(self.i.payload.context),
                ]
                m.d.sync += self.o.payload.command.eq(self.i.payload)
                with m.If(self.i.valid & self.i.ready):
                    m.next = "VIEW"
            with m.State("VIEW"):
                m.d.comb += self.i_view.ready.eq(1)
                m.d.sync += self.o.payload.view.eq(self.i_view.payload)
                with m.If(self.i_view.valid):
                    m.next = "CHECKED"
            with m.State("CHECKED"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "IDLE"
        m.d.comb += self.idle.eq(fsm.ongoing("IDLE") & ~self.i.valid)
        self._check(m)
        return m

    def _check(self, m):
        command, view, visible = (
            self.o.payload[name] for name in ("command", "view", "visible"))
        entry = view.entry
        weight_rows = 2 * self.config.encoder_sets * self.config.code_bits
        m.d.comb += visible.eq(Mux(command.visible == 0, entry.length, command.visible))
        with m.Switch(command.opcode):
            with m.Case(Opcode.QUERY):
                self._refuse(m, {
                    Error.CONTEXT: ~view.valid,
                    Error.EMPTY: entry.length == 0,
                    Error.VISIBLE: command.visible > entry.length,
                    Error.BUDGET: (command.select == Select.BUDGET)
                                  & (command.full + command.coarse > visible),
                })
            with m.Case(Opcode.APPEND):
                self._refuse(m, {
                    Error.CONTEXT: ~view.valid,
                    Error.CAPACITY: entry.length + command.count > entry.capacity,
                    Error.DATA: command.count == 0,
                })
            with m.Case(Opcode.WEIGHTS):
                self._refuse(m, {
                    Error.CAPACITY: command.index + command.count > weight_rows,
                    Error.DATA: command.count == 0,
                })
            with m.Default():
                m.d.comb += self.o.payload.error.eq(Error.OPCODE)

    def _refuse(self, m, reasons):
        """The first reason that holds; the last assignment wins."""
        for code, holds in reversed(reasons.items()):
            with m.If(holds):
                m.d.comb += self.o.payload.error.eq(code)
