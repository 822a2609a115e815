"""Logits: the scaled dot product of a query with each K row."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.arith.align import DROP_BITS, Align
from hw.arith.dot import PlaneDot, dot_latency
from hw.arith.rounding import clip_unsigned, delay, saturate
from hw.attention.layouts import Kind, logit_item, query_vector, row_beat
from hw.attention.operands import is_upper, operand_bits, operands
from hw.config import (
    BLOCK_LOGIT_BITS,
    ELEMENT_FRACTION_BITS,
    EXPONENT_BIAS,
    EXPONENT_BITS,
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    LOGIT_GUARD_BITS,
    AttentionConfig,
)

__all__ = ["Scorer", "scorer_latency"]


def scorer_latency(config: AttentionConfig) -> int:
    """Cycles from a row's last beat to its logit."""
    return 1 + dot_latency(config.exponent_block) + Align.LATENCY + _sum_latency(config) + 1


def _sum_latency(config):
    """Many blocks are summed in a cycle of their own, before the rounding."""
    return 1 if config.blocks > 2 else 0


class Scorer(wiring.Component):
    """Turns K rows into logits; END passes through.

    Each row names the query slot that it is multiplied with. A slot may be used from the cycle
    after its vector was taken.

    **Latency**: `latency` cycles from the transfer of a row's last beat to ``valid`` on ``o``:
    operands, multipliers, adder tree (2 cycles for a block of 32), two for scaling, and the sum
    over the blocks (2 cycles for more than two blocks); 7 in all for one or two blocks of 32.

    **Throughput**: one beat per cycle. ``i_key.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: ``golden.pipeline``, docs/numerics.md section 3.

    **Errors**: none. ``saturated`` tells that a block's sum, or the logit, was clipped.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_query : ``In(stream.Signature(query_vector(config)))``
        Query vectors for the slots; always ready.
    i_key : ``In(stream.Signature(row_beat(config)))``
        K rows. A query ends with a beat of kind END.
    o : ``Out(stream.Signature(logit_item(config)))``
        A logit per row, and an END (with logit zero) per query.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Scorer config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_query": In(stream.Signature(query_vector(config))),
            "i_key": In(stream.Signature(row_beat(config))),
            "o": Out(stream.Signature(logit_item(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def latency(self) -> int:
        return scorer_latency(self.config)

    def elaborate(self, platform):
        m = Module()
        config = self.config

        advance = Signal()
        key = self.i_key.payload
        query = self._read_query(m, key.slot)
        aligned = []
        for block in range(config.blocks):
            dot = self._score_block(m, block, query, advance)
            drop = self._scale(m, block, query, advance, cycles=dot.latency)
            m.submodules[f"align_{block}"] = align = Align(
                in_bits=len(dot.sum), out_bits=BLOCK_LOGIT_BITS)
            m.d.comb += [align.i.eq(dot.sum), align.drop.eq(drop), align.enable.eq(advance)]
            aligned.append(align)
        total, overflow = self._sum_blocks(m, aligned, advance)

        item = Signal(logit_item(config))
        m.d.comb += [
            item.kind.eq(key.kind),
            item.weight.eq(key.weight),
            item.position.eq(key.position),
            item.logits_only.eq(key.logits_only),
        ]
        item = delay(m, item, self.latency - 1, name="item", enable=advance)
        valid = delay(m, self.i_key.valid & key.last, self.latency - 1, name="valid",
                      enable=advance)
        logit, clipped = saturate(total >> LOGIT_GUARD_BITS, LOGIT_BITS)
        is_row = item.kind != Kind.END
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(valid),
                self.o.payload.eq(item),
                self.o.payload.logit.eq(Mux(is_row, logit, 0)),
                self.o.payload.saturated.eq(is_row & (clipped | overflow)),
            ]

        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.i_key.ready.eq(advance),
        ]
        return m

    def _score_block(self, m, block, query, advance):
        """The dot product of a block, fed from operand registers."""
        config = self.config
        key = self.i_key.payload
        elements = operands(config, key)
        m.submodules[f"dot_{block}"] = dot = PlaneDot(
            lanes=config.exponent_block, a_bits=config.query_bits,
            b_bits=operand_bits(config), planes=config.planes_per_beat)
        m.d.comb += dot.enable.eq(advance)
        with m.If(advance):
            m.d.sync += [
                dot.valid.eq(self.i_key.valid),
                dot.upper.eq(is_upper(config, key)),
            ]
            for lane in range(config.exponent_block):
                element = block * config.exponent_block + lane
                m.d.sync += [
                    dot.a[lane].eq(query.vector[element]),
                    dot.b[lane].eq(elements[element]),
                ]
        return dot

    def _scale(self, m, block, query, advance, *, cycles):
        """What `Align` drops of a block's sum, as the sum comes out: 40 - sh_b of section 3."""
        config = self.config
        # All of it but the two exponents.
        constant = (BLOCK_LOGIT_BITS + 2 * EXPONENT_BIAS + (config.query_bits - 2)
                    + ELEMENT_FRACTION_BITS - LOGIT_FRACTION_BITS - LOGIT_GUARD_BITS)
        exponent = Signal(EXPONENT_BITS + 1, name=f"exponent_{block}")
        drop = Signal(DROP_BITS, name=f"drop_{block}")
        wanted = constant - exponent
        with m.If(advance):
            m.d.sync += [
                exponent.eq(query.exponent + self.i_key.payload.exponents[block]),
                drop.eq(Mux(wanted < 0, 0, clip_unsigned(wanted.as_unsigned(), DROP_BITS))),
            ]
        return delay(m, drop, cycles - 1, name=f"drop_{block}", enable=advance)

    def _sum_blocks(self, m, aligned, advance):
        """Sum of the blocks with half a unit of the logit, and whether a block was clipped.

        The half and the first block's carry lie side by side, so that one block needs one adder.
        """
        half_and_carry = Cat(aligned[0].carry, Const(1 << (LOGIT_GUARD_BITS - 2), LOGIT_GUARD_BITS))
        terms = [align.o for align in aligned] + [align.carry for align in aligned[1:]]
        return (
            delay(m, sum(terms) + half_and_carry, _sum_latency(self.config), name="total",
                  enable=advance),
            delay(m, Cat(align.clipped for align in aligned).any(), _sum_latency(self.config),
                  name="overflow", enable=advance),
        )

    def _read_query(self, m, slot):
        layout = query_vector(self.config)
        m.submodules.slots = slots = Memory(
            shape=data.StructLayout({
                "vector": layout["vector"].shape, "exponent": layout["exponent"].shape}),
            depth=self.config.query_slots, init=[])
        write = slots.write_port()
        read = slots.read_port(domain="comb")
        loaded = self.i_query.payload
        m.d.comb += [
            self.i_query.ready.eq(1),
            write.en.eq(self.i_query.valid),
            write.addr.eq(loaded.slot),
            write.data.vector.eq(loaded.vector),
            write.data.exponent.eq(loaded.exponent),
            read.addr.eq(slot),
        ]
        return read.data
