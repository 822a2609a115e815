"""Keeps the three outputs of the retrieval in step."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Kind, query_job, selection_counts, token_item
from hw.attention.retrieval_layouts import check_config

__all__ = ["TokenGate"]

MOST_OPEN = 7   # queries whose job left and whose END did not; more than retrieval can hold


class TokenGate(wiring.Component):
    """Lets a query's tokens pass after its job did, and its counts after its END did.

    **Latency**: 0 cycles, combinational.

    **Throughput**: 1 item per cycle on each stream.

    **Numerics**: none, the payloads pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_job, o_job : streams of ``query_job``
    i_token, o_token : streams of ``token_item``
    i_counts, o_counts : streams of ``selection_counts``
    """

    def __init__(self, config):
        self._config = check_config("TokenGate", config)
        shapes = {"job": query_job(config), "token": token_item(config),
                  "counts": selection_counts(config)}
        super().__init__({
            **{f"i_{name}": In(stream.Signature(shape)) for name, shape in shapes.items()},
            **{f"o_{name}": Out(stream.Signature(shape)) for name, shape in shapes.items()},
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        opened = Signal(range(MOST_OPEN + 1))   # jobs that left, and their END did not
        closed = Signal(range(MOST_OPEN + 1))   # END items that left, and their counts did not
        self._build_gate(m, self.i_job, self.o_job, opened != MOST_OPEN)
        self._build_gate(m, self.i_token, self.o_token, opened != 0)
        self._build_gate(m, self.i_counts, self.o_counts, closed != 0)

        job = self.o_job.valid & self.o_job.ready
        end = (self.o_token.valid & self.o_token.ready
               & (self.o_token.payload.kind == Kind.END))
        counts = self.o_counts.valid & self.o_counts.ready
        m.d.sync += [opened.eq(opened + job - end), closed.eq(closed + end - counts)]
        return m

    def _build_gate(self, m, source, target, is_open):
        m.d.comb += [
            target.payload.eq(source.payload),
            target.valid.eq(source.valid & is_open),
            source.ready.eq(target.ready & is_open),
        ]
