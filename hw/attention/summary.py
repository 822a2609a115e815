"""Page summaries: the mean key and the mean value of each page, as its tokens come."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import clip_unsigned, delay, round_shift
from hw.arith.shift_add import ShiftAdd
from hw.attention.layouts import exponents
from hw.attention.row_packer import RowPacker, row_bus_beat
from hw.checks import check_int
from hw.config import (
    ELEMENT_BITS,
    EXPONENT_BITS,
    PAGE_TOKENS,
    PLANE_BITS,
    SUMMARY_GUARD_BITS,
    SUMMARY_SUM_BITS,
    AttentionConfig,
)
from hw.shared import Once
from hw.sram import Sram
from hw.stream import Queue

__all__ = ["PageSummary", "page_exponents", "summary_token"]

SLOT_BITS = (PAGE_TOKENS - 1).bit_length()
MEAN_SHIFT = SUMMARY_GUARD_BITS + SLOT_BITS
LONGEST_SHIFT_BITS = 5

# Cycles from reading a running sum to writing it.
SUM_LATENCY = 1 + ShiftAdd.LATENCY


def summary_token(config: AttentionConfig) -> data.StructLayout:
    """A token to add to its page. ``key`` and ``value`` are rows as stored.

    ``first`` and ``last`` mark the first and the last row of an APPEND command. ``has_summary``:
    the token completes the page, and the page's summary rows are wanted.
    """
    return data.StructLayout({
        "context": config.context_bits,
        "slot": SLOT_BITS,
        "first": 1,
        "last": 1,
        "has_summary": 1,
        "key": config.row_bytes * 8, "value": config.row_bytes * 8,
        "keys": exponents(config), "values": exponents(config),
    })


def page_exponents(config: AttentionConfig) -> data.StructLayout:
    """The largest exponents so far of a page's tokens."""
    return data.StructLayout({"keys": exponents(config), "values": exponents(config)})


class PageSummary(wiring.Component):
    """Sums up the tokens of each context's unfinished page, and gives the mean when it is full.

    Running sums and exponents lie in memories, one entry per context, so that pages of several
    contexts may fill up in turn. A command's first row starts from its context's entry and its last
    row updates it; in between, a spare entry is used. A command that ends without its last row thus
    leaves no trace, and may be repeated.

    **Latency**: 2 cycles from a token on ``i`` to ``o_exponents``, as its first elements are read;
    5 cycles from the last elements of a row to the first beat of its summary.

    **Throughput**: a token per 2 + 2 * head_dim / lanes cycles. Where a page ends, the value
    summary is begun once the key summary has left.

    **Numerics**: ``golden.summary.page_summaries``.

    **Errors**: none. Pages must be filled from their first slot.

    Parameters
    ----------
    config : AttentionConfig
    lanes : int
        Elements summed per cycle: a power of two up to ``head_dim / 4``.

    Members
    -------
    i : ``In(stream.Signature(summary_token(config)))``
        Tokens in order; taken when all of their elements have been read.
    o_exponents : ``Out(stream.Signature(page_exponents(config)))``
        For every token, after it.
    o : ``Out(stream.Signature(row_bus_beat(config)))``
        Two rows for each token with ``has_summary``: the keys' mean, then the values'.
    """

    def __init__(self, config: AttentionConfig, *, lanes=8):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"PageSummary config must be an AttentionConfig, not {config!r}")
        self._config = config
        check_int("PageSummary lanes", lanes, minimum=1, maximum=config.head_dim // 4)
        if lanes & (lanes - 1):
            raise ValueError(f"PageSummary lanes must be a power of two, not {lanes!r}")
        self._lanes = lanes
        super().__init__({
            "i": In(stream.Signature(summary_token(config))),
            "o_exponents": Out(stream.Signature(page_exponents(config))),
            "o": Out(stream.Signature(row_bus_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def lanes(self):
        return self._lanes

    @property
    def chunks(self):
        """Chunks of ``lanes`` elements in a token, K and V."""
        return 2 * self.config.head_dim // self.lanes

    def elaborate(self, platform):
        m = Module()
        config, token = self.config, self.i.payload
        entries = config.contexts + 1
        m.submodules.peaks = peaks = Sram(page_exponents(config), depth=entries)
        m.submodules.answers = answers = Queue(page_exponents(config), depth=2)
        wiring.connect(m, answers.o, wiring.flipped(self.o_exponents))

        # The spare entry is the one above the contexts'.
        source = Signal(range(entries))
        target = Signal(range(entries))
        m.d.comb += [
            source.eq(Mux(token.first, token.context, config.contexts)),
            target.eq(Mux(token.last, token.context, config.contexts)),
            # High unless told; the answer must hold while the token's elements are added.
            peaks.read.en.eq(0),
            peaks.read.addr.eq(source),
            peaks.write.addr.eq(target),
            peaks.write.data.eq(answers.i.payload),
        ]
        scales = self._scale(m, peaks.read.data, answers.i.payload)

        chunk = Signal(range(self.chunks))
        step = Signal()
        sums = self._add(m, chunk=chunk, step=step, source=source, target=target, scales=scales)
        is_blocked = self._pack(m, chunk=chunk, step=step, sums=sums)
        with m.FSM():
            with m.State("PEAKS"), m.If(self.i.valid):
                m.d.comb += peaks.read.en.eq(1)
                m.next = "SCALES"
            with m.State("SCALES"):
                m.d.comb += answers.i.valid.eq(1)
                with m.If(answers.i.ready):
                    m.d.comb += peaks.write.en.eq(1)
                    m.next = "ELEMENTS"
            with m.State("ELEMENTS"):
                m.d.comb += step.eq(~is_blocked)
                with m.If(step):
                    m.d.sync += chunk.eq(chunk + 1)
                    with m.If(chunk == self.chunks - 1):
                        m.d.comb += self.i.ready.eq(1)
                        m.next = "PEAKS"
        return m

    def _scale(self, m, before, after):
        """Fill ``after`` with the page's largest exponents; return the shifts, per block."""
        token = self.i.payload
        shift = data.StructLayout({"sum": LONGEST_SHIFT_BITS, "element": LONGEST_SHIFT_BITS})
        scales = Signal(data.ArrayLayout(shift, 2 * self.config.blocks))
        for side, name in enumerate(("keys", "values")):
            for block in range(self.config.blocks):
                old, new, peak = before[name][block], token[name][block], after[name][block]
                scale = scales[side * self.config.blocks + block]
                m.d.comb += peak.eq(Mux((token.slot == 0) | (new > old), new, old))
                m.d.sync += [
                    scale.sum.eq(clip_unsigned((peak - old)[:EXPONENT_BITS], LONGEST_SHIFT_BITS)),
                    scale.element.eq(
                        clip_unsigned((peak - new)[:EXPONENT_BITS], LONGEST_SHIFT_BITS)),
                ]
        return scales

    def _add(self, m, *, chunk, step, source, target, scales):
        """Update the running sums of a chunk; return them as they are written."""
        token = self.i.payload
        word = data.ArrayLayout(signed(SUMMARY_SUM_BITS), self.lanes)
        m.submodules.sums = sums = Sram(word, depth=(self.config.contexts + 1) * self.chunks)
        # Blocks are of whole chunks.
        block_chunks = self.config.exponent_block // self.lanes
        scale = delay(m, scales[chunk // block_chunks], 1, name="scale")
        restart = delay(m, token.slot == 0, 1, name="restart")
        elements = delay(m, self._elements(chunk), 1, name="elements")
        m.d.comb += [
            sums.read.en.eq(step),
            sums.read.addr.eq(Cat(chunk, source)),
            sums.write.en.eq(delay(m, step, SUM_LATENCY, name="written")),
            sums.write.addr.eq(delay(m, Cat(chunk, target), SUM_LATENCY, name="write_address")),
        ]
        for lane in range(self.lanes):
            m.submodules[f"adder_{lane}"] = adder = Once(
                ShiftAdd(bits=SUMMARY_SUM_BITS, is_signed=True))
            element = elements.word_select(lane, ELEMENT_BITS).as_signed()
            m.d.comb += [
                adder.enable.eq(1),
                adder.a.eq(Mux(restart, 0, sums.read.data[lane])),
                adder.b.eq(element << SUMMARY_GUARD_BITS),
                adder.shift_a.eq(scale.sum),
                adder.shift_b.eq(scale.element),
                sums.write.data[lane].eq(adder.o),
            ]
        return sums.write.data

    def _elements(self, chunk):
        """The elements of a chunk, side by side; K first, then V."""
        token, bits = self.i.payload, self.lanes * PLANE_BITS
        upper, lower = (
            Cat(row[plane * len(row) // 2:(plane + 1) * len(row) // 2]
                for row in (token.key, token.value)).word_select(chunk, bits)
            for plane in range(2))
        return Cat(Cat(lower.word_select(lane, PLANE_BITS), upper.word_select(lane, PLANE_BITS))
                   for lane in range(self.lanes))

    def _pack(self, m, *, chunk, step, sums):
        """Give the means of a complete page; return whether a row must wait for the one before."""
        token = self.i.payload
        m.submodules.packer = packer = RowPacker(self.config, lanes=self.lanes)
        wiring.connect(m, packer.o, wiring.flipped(self.o))
        is_taken = Signal()
        begins = token.has_summary & (chunk[:-1] == 0)
        m.d.comb += packer.i.valid.eq(
            delay(m, step & token.has_summary, SUM_LATENCY, name="packed"))
        for mean, total in zip(packer.i.payload, sums, strict=True):
            m.d.comb += mean.eq(round_shift(total, MEAN_SHIFT))
        with m.If(step & begins):
            m.d.sync += is_taken.eq(1)
        with m.Elif(self.o.valid & self.o.ready & self.o.payload.last):
            m.d.sync += is_taken.eq(0)
        return begins & is_taken
