"""The datapath of one query head."""

from amaranth.hdl import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import logit_item, query_vector, row_beat, state_beat
from hw.attention.scorer import Scorer, scorer_latency
from hw.attention.softmax import Softmax, softmax_item
from hw.attention.values import Values
from hw.config import AttentionConfig
from hw.stream import BypassQueue

__all__ = ["HeadSlice"]

ITEM_DEPTH = 8


class HeadSlice(wiring.Component):
    """Attention of one query head over the rows that stream past: logits, softmax, values.

    Queries follow each other without a bubble, each with its own slot. A logits-only query delivers
    its logits and its END on ``o_logit``; any other one delivers its state on ``o_state``.

    **Latency**: from a row's last K beat 7 cycles to its logit (more for longer blocks, and for
    more than two: see `Scorer`), and `probability_latency`, 7 more, until what it weighs is in the
    register in front of the V multipliers. From the last END 8 cycles to ``o_state``, or as far
    behind its items as they come.

    **Throughput**: one beat per cycle on ``i_key`` and on ``i_value`` at once, but for the cycles
    in which sums are rescaled (see `Values`).

    **Numerics**: ``golden.pipeline``, docs/numerics.md sections 3 to 5.

    **Errors**: none. ``saturated`` tells that a logit was clipped.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_query : ``In(stream.Signature(query_vector(config)))``
        Loads a query slot. Always ready; rows may name the slot from the next cycle on.
    i_key : ``In(stream.Signature(row_beat(config)))``
        K rows; each query ends with an END beat.
    i_value : ``In(stream.Signature(row_beat(config)))``
        V rows of the same tokens in the same order. Of a logits-only query only the END.
    o_state : ``Out(stream.Signature(state_beat(config)))``
    o_logit : ``Out(stream.Signature(logit_item(config)))``
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"HeadSlice config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_query": In(stream.Signature(query_vector(config))),
            "i_key": In(stream.Signature(row_beat(config))),
            "i_value": In(stream.Signature(row_beat(config))),
            "o_state": Out(stream.Signature(state_beat(config))),
            "o_logit": Out(stream.Signature(logit_item(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def probability_latency(self) -> int:
        return scorer_latency(self.config) + Softmax.LATENCY + Values.WEIGHT_LATENCY

    def elaborate(self, platform):
        m = Module()
        m.submodules.scorer = scorer = Scorer(self.config)
        m.submodules.softmax = softmax = Softmax(self.config)
        m.submodules.values = values = Values(self.config)
        # Values lag by a beat behind a full row, and while they rescale; the scorer need not.
        m.submodules.items = items = BypassQueue(softmax_item(), depth=ITEM_DEPTH)
        wiring.connect(m, wiring.flipped(self.i_query), scorer.i_query)
        wiring.connect(m, wiring.flipped(self.i_key), scorer.i_key)
        wiring.connect(m, wiring.flipped(self.i_value), values.i_row)
        wiring.connect(m, softmax.o, items.i)
        wiring.connect(m, items.o, values.i_item)
        wiring.connect(m, softmax.o_total, values.i_total)
        wiring.connect(m, values.o, wiring.flipped(self.o_state))

        scored = scorer.o.payload
        m.d.comb += [
            self.o_logit.payload.eq(scored),
            self.o_logit.valid.eq(scorer.o.valid & scored.logits_only),
            softmax.i.payload.eq(scored),
            softmax.i.valid.eq(scorer.o.valid & ~scored.logits_only),
            scorer.o.ready.eq(Mux(scored.logits_only, self.o_logit.ready, softmax.i.ready)),
        ]
        return m
