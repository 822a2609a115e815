"""Windows of contexts: which requests may pass."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_config
from hw.config import MemoryConfig
from hw.memory.layouts import CONTEXT_BITS
from hw.stream import Queue, SkidBuffer

__all__ = ["Guard", "Refusal", "refused_request", "window_entry"]

DEPTH = 8  # requests under way; more than stages and the slice behind them hold


class Refusal(enum.Enum, shape=2):
    """Why a request is refused (docs/memory_link.md, section 7). A line leaves no window."""

    NONE = 0
    OUTSIDE = 1
    SPAN = 2
    READ_ONLY = 3


def window_entry(config: MemoryConfig) -> data.StructLayout:
    """Lines ``first`` to ``last``, both included, that a context may read."""
    return data.StructLayout({
        "valid": 1, "context": CONTEXT_BITS, "first": config.host_line_bits,
        "last": config.host_line_bits, "writable": 1})


def refused_request(config: MemoryConfig) -> data.StructLayout:
    """The request that was refused first."""
    return data.StructLayout({
        "reason": Refusal, "context": CONTEXT_BITS, "line": config.host_line_bits, "write": 1})


class Guard(wiring.Component):
    """Checks each request, for a line, against the windows of its context.

    The first window of the context that holds the line decides. Requests all pass, in order, with
    the reason beside them. Payloads wait in a queue. The table must not change while requests are
    under way.

    **Latency**: 5 cycles. From a refused request's transfer on ``o`` to ``refused`` and to the log
    1 cycle.

    **Throughput**: 1 request per cycle.

    **Numerics**: `golden.memory.windows.Guard.check`, with 64 bytes at a line's first.

    **Errors**: ``reason``, ``refused`` and the log.

    Parameters
    ----------
    config : MemoryConfig
    shape : shape-like
        Of what goes along.

    Members
    -------
    table : ``In``, a `window_entry` per window
    i : stream in of ``line``, ``context``, ``write``, ``payload``
    o : stream out of ``reason`` and the fields of ``i``
    refused : ``Out(1)``
        A pulse for each request refused.
    clear : ``In(1)``
        Forget the log; a refused request that leaves in this cycle is logged.
    is_logged, logged : ``Out(1)``, ``Out(refused_request(config))``
        The first request refused since the last ``clear``.
    """

    def __init__(self, config: MemoryConfig, shape):
        self._config = check_config("Guard", config, MemoryConfig)
        self._shape = shape
        request = {"line": config.host_line_bits, "context": CONTEXT_BITS, "write": 1,
                   "payload": shape}
        super().__init__({
            "table": In(data.ArrayLayout(window_entry(config), config.windows)),
            "i": In(stream.Signature(data.StructLayout(request))),
            "o": Out(stream.Signature(data.StructLayout({"reason": Refusal, **request}))),
            "refused": Out(1),
            "clear": In(1),
            "is_logged": Out(1),
            "logged": Out(refused_request(config)),
        })

    @property
    def config(self) -> MemoryConfig:
        return self._config

    @property
    def shape(self):
        return self._shape

    def elaborate(self, platform):
        m = Module()
        m.submodules.waiting = waiting = Queue(self.i.payload.shape(), depth=DEPTH)
        m.submodules.reasons = reasons = SkidBuffer(Refusal)
        advance, accepted = Signal(), Signal()
        m.d.comb += [
            advance.eq(~reasons.i.valid | reasons.i.ready),
            self.i.ready.eq(advance & waiting.i.ready),
            accepted.eq(self.i.valid & self.i.ready),
            waiting.i.valid.eq(accepted),
            waiting.i.payload.eq(self.i.payload),
        ]
        self._check(m, advance, accepted, reasons.i)
        m.d.comb += [
            self.o.valid.eq(reasons.o.valid),
            self.o.payload.reason.eq(reasons.o.payload),
            *(self.o.payload[name].eq(waiting.o.payload[name])
              for name in ("line", "context", "write", "payload")),
            reasons.o.ready.eq(self.o.ready),
            waiting.o.ready.eq(self.o.valid & self.o.ready),
        ]
        self._log(m)
        return m

    def _check(self, m, advance, accepted, reason):
        """Compare; join; choose the first window; judge: a stage each."""
        request, count = self.i.payload, self.config.windows
        compared = Signal(data.ArrayLayout(3, count))
        matches, chosen = Signal(count), Signal(count)
        writes, valids = Signal(3), Signal(3)
        with m.If(advance):
            m.d.sync += [
                valids.eq(Cat(accepted, valids)),
                writes.eq(Cat(request.write, writes)),
                matches.eq(Cat(compared[k].all() for k in range(count))),
                chosen.eq(matches & -matches),
                reason.valid.eq(valids[2]),
            ]
            for k in range(count):
                window = self.table[k]
                m.d.sync += compared[k].eq(Cat(
                    window.valid & (request.context == window.context),
                    request.line >= window.first, request.line <= window.last))
            writable = Cat(self.table[k].writable for k in range(count))
            m.d.sync += reason.payload.eq(Mux(
                ~chosen.any(), Refusal.OUTSIDE,
                Mux(writes[2] & ~(chosen & writable).any(), Refusal.READ_ONLY, Refusal.NONE)))

    def _log(self, m):
        is_refused = Signal()
        found = self.o.payload
        m.d.comb += is_refused.eq(self.o.valid & self.o.ready & (found.reason != Refusal.NONE))
        m.d.sync += self.refused.eq(is_refused)
        with m.If(self.clear):
            m.d.sync += self.is_logged.eq(0)
        with m.If(is_refused & (self.clear | ~self.is_logged)):
            m.d.sync += [
                self.is_logged.eq(1),
                *(self.logged[name].eq(found[name])
                  for name in ("reason", "context", "line", "write")),
            ]
