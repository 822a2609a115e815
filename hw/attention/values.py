"""The weighted sum of V rows."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.accumulator import Accumulator
from hw.arith.rounding import delay
from hw.attention.layouts import Kind, row_beat, state_beat
from hw.attention.operands import is_upper, operand_bits, operands
from hw.attention.row_scale import RowScale, scaled_beat
from hw.attention.row_steps import RowSteps
from hw.attention.softmax import probability, softmax_item, softmax_total
from hw.attention.state_drain import StateDrain
from hw.config import MX_BLOCK, PROBABILITY_BITS, AttentionConfig
from hw.shared import Once
from hw.stream import BypassQueue

__all__ = ["Values"]


class Values(wiring.Component):
    """Sums V rows by their weights, and delivers the state of each query.

    The sums move aside in one cycle at END, so the next query is summed while the state is sent.

    **Latency**: from an item (its row being there) 2 cycles (`WEIGHT_LATENCY`) until its
    probability is in a register, and 6 until its product is in the sums. 8 (`END_LATENCY`) from END
    to the first beat on ``o``.

    **Throughput**: one beat per cycle; none while the sums are shifted down by something else than
    1, 4 or 16 octaves, which takes up to 8 cycles. END waits until the state before it has been
    sent: states are head_dim / result_lanes + 5 cycles apart or more.

    **Numerics**: ``golden.pipeline.accumulate``, docs/numerics.md section 5.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_row : ``In(stream.Signature(row_beat(config)))``
        V rows. A query ends with a beat of kind END; of a logits-only query nothing else is here.
    i_item : ``In(stream.Signature(softmax_item()))``
        What each row weighs.
    i_total : ``In(stream.Signature(softmax_total(config)))``
        One for each query that is not logits-only.
    o : ``Out(stream.Signature(state_beat(config)))``
    """

    WEIGHT_LATENCY = 2
    END_LATENCY = 8

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Values config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_row": In(stream.Signature(row_beat(config))),
            "i_item": In(stream.Signature(softmax_item())),
            "i_total": In(stream.Signature(softmax_total(config))),
            "o": Out(stream.Signature(state_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.scale = scale = RowScale(self.config)
        m.submodules.steps = steps = RowSteps(self.config)
        m.submodules.drain = drain = StateDrain(self.config)
        wiring.connect(m, wiring.flipped(self.i_row), scale.i)
        # So that the steps' `ready`, which is made late in the cycle, ends here.
        m.submodules.rows = rows = BypassQueue(scaled_beat(self.config), depth=2)
        wiring.connect(m, scale.o, rows.i)
        wiring.connect(m, rows.o, steps.i_row)
        wiring.connect(m, wiring.flipped(self.i_item), steps.i_item)
        wiring.connect(m, wiring.flipped(self.i_total), drain.i_total)
        wiring.connect(m, drain.o, wiring.flipped(self.o))

        # From here on nothing stalls. An END waits for the state before it to be gone.
        step = steps.o.payload
        is_end = step.kind == Kind.END
        closing = Signal()
        m.d.comb += steps.o.ready.eq(~(is_end & closing))
        accepted = steps.o.valid & steps.o.ready
        clear = Signal()
        m.d.sync += clear.eq(accepted & is_end)
        m.d.comb += [
            drain.capture.eq(delay(m, clear, Accumulator.LATENCY - 1, name="capture")),
            drain.exponent.eq(delay(m, step.exponent, Accumulator.LATENCY, name="exponent")),
        ]
        with m.If(drain.done):
            m.d.sync += closing.eq(0)
        with m.If(accepted & is_end):
            m.d.sync += closing.eq(1)

        for block in range(self.config.blocks):
            sums = self._sum_block(m, block, step, accepted, clear)
            first = block * self.config.exponent_block
            m.d.comb += [drain.sums[first + lane].eq(total) for lane, total in enumerate(sums)]
        return m

    def _sum_block(self, m, block, step, accepted, clear):
        """Registers of weight and operands, and the sums of a block."""
        config = self.config
        weight = Signal(PROBABILITY_BITS, name=f"weight_{block}")
        shift = Signal.like(step.shift, name=f"shift_{block}")
        upper = Signal(name=f"upper_{block}")
        m.d.sync += [
            weight.eq(Mux(accepted & step.multiply,
                          probability(step.mantissa, step.falls[block]), 0)),
            shift.eq(Mux(accepted, step.shift, 0)),
            upper.eq(is_upper(config, step)),
        ]
        sums = []
        first = block * config.exponent_block
        beat_operands = operands(config, step)
        # A block that spans the row is cut as well, so that the lanes are always the same module.
        for group in range(first, first + config.exponent_block, MX_BLOCK):
            m.submodules[f"lanes_{group}"] = lanes = Once(Accumulator(
                lanes=MX_BLOCK, weight_bits=PROBABILITY_BITS, operand_bits=operand_bits(config),
                sum_bits=config.value_sum_bits, planes=config.planes_per_beat))
            m.d.sync += [operand.eq(beat_operands[group + lane])
                         for lane, operand in enumerate(lanes.operands)]
            m.d.comb += [
                lanes.weight.eq(weight),
                lanes.upper.eq(upper),
                lanes.step.eq(shift),
                lanes.clear.eq(clear),
            ]
            sums += list(lanes.sums)
        return sums
