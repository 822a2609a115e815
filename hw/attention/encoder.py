"""Hash codes of queries and keys."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum
from hw.arith.rounding import clip_unsigned, delay
from hw.attention.encoder_lane import SHIFT_BITS, EncoderLane
from hw.attention.layouts import encode_request
from hw.attention.weight_loader import weight_row
from hw.config import EXPONENT_BITS, WEIGHT_BITS, AttentionConfig
from hw.shared import Once
from hw.sram import Sram
from hw.stream import Queue

__all__ = ["Encoder"]

READ_CYCLES = 2     # from the address of a word of weights to the multipliers


class Encoder(wiring.Component):
    """Encodes vectors with a query's weights or a key's, some code bits per cycle.

    The memory of weights has a word of ``encoder_lanes`` rows; row ``(set * 2 + is_key) * code_bits
    + bit`` belongs to one code bit.

    **Latency**: `latency` cycles: one per word of weights, and the pipeline.

    **Throughput**: one vector per ``code_bits / encoder_lanes`` cycles; one row of weights stored
    per cycle.

    **Numerics**: ``golden.hashing.encode_queries`` and ``encode_keys``, docs/numerics.md section 8.

    **Errors**: none. ``weight_set`` must be below ``encoder_sets``; a row written while a vector is
    encoded with its set may or may not take part.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(encode_request(config)))``
        Vectors; elements of a key are 8 bits, sign-extended.
    i_weight : ``In(stream.Signature(weight_row(config)))``
        A row of weights to store; always ready.
    o : ``Out(stream.Signature(code_bits))``
        Codes, in order.
    """

    def __init__(self, config):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Encoder config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(encode_request(config))),
            "i_weight": In(stream.Signature(weight_row(config))),
            "o": Out(stream.Signature(config.code_bits)),
        })
        self._lanes = [
            Once(EncoderLane(elements=config.head_dim, element_bits=config.query_bits,
                             blocks=config.blocks))
            for _ in range(config.encoder_lanes)]

    @property
    def config(self):
        return self._config

    @property
    def words(self):
        """Words of weights per vector."""
        return self.config.code_bits // self.config.encoder_lanes

    @property
    def latency(self):
        """Cycles from ``i`` to ``o``: the words, the memory's and the lanes' stages, the queue."""
        return self.words + READ_CYCLES - 1 + self._lanes[0].latency + 1

    def elaborate(self, platform):
        m = Module()
        config = self.config
        row = data.ArrayLayout(signed(WEIGHT_BITS), config.head_dim)
        m.submodules.weights = weights = Sram(
            data.ArrayLayout(row, config.encoder_lanes),
            depth=2 * config.encoder_sets * self.words, granularity=1)
        self._build_store(m, weights.write)

        accept = Signal()
        vector = Signal(self.i.payload.vector.shape())
        with m.If(accept):
            m.d.sync += vector.eq(self.i.payload.vector)
        shifts = self._build_shifts(m, accept)
        # Between the memory and the multipliers lies a register: neither leaves time for the other.
        row_word = delay(m, weights.read.data, READ_CYCLES - 1, name="row_word")
        vector = delay(m, vector, READ_CYCLES - 1, name="vector")
        for index, lane in enumerate(self._lanes):
            m.submodules[f"lane_{index}"] = lane
            m.d.comb += [
                lane.weights.eq(row_word[index]),
                lane.vector.eq(vector),
                lane.shifts.eq(shifts),
            ]

        # A vector is accepted only if the queue will have room for its code.
        depth = -(-self.latency // self.words) + 1
        m.submodules.queue = queue = Queue(config.code_bits, depth=depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        room = Signal(range(depth + 1), init=depth)
        m.d.sync += room.eq(room - accept + (queue.o.valid & queue.o.ready))
        last = self._build_read(m, accept, room, weights.read)
        self._build_code(m, last, queue.i)
        return m

    def _build_store(self, m, port):
        lane_bits = (self.config.encoder_lanes - 1).bit_length()
        index = self.i_weight.payload.index
        m.d.comb += [
            self.i_weight.ready.eq(1),
            port.en.eq(self.i_weight.valid << index[:lane_bits]),
            port.addr.eq(index[lane_bits:]),
        ]
        m.d.comb += [row.eq(self.i_weight.payload.data) for row in port.data]

    def _build_read(self, m, accept, room, port):
        """Read all words of a vector, the first in the cycle of its transfer; return the last one's
        strobe."""
        request = self.i.payload
        word = Signal(range(self.words))
        base = Signal(1 + len(request.weight_set))
        is_reading = word != 0
        place = Mux(is_reading, base, Cat(request.is_key, request.weight_set))
        m.d.comb += [
            self.i.ready.eq(~is_reading & (room != 0)),
            accept.eq(self.i.valid & self.i.ready),
            port.en.eq(accept | is_reading),
            port.addr.eq(Cat(word, place)),
        ]
        with m.If(port.en):
            m.d.sync += [word.eq(word + 1), base.eq(place)]
        return port.en & (word == self.words - 1)

    def _build_shifts(self, m, accept):
        """How far each block's sum lies below the largest block's, when the lanes want to know."""
        blocks = self.config.blocks
        shifts = Signal(data.ArrayLayout(SHIFT_BITS, blocks))
        if blocks == 1:
            return shifts
        exponents = Signal(self.i.payload.exponents.shape())
        is_key = Signal()
        with m.If(accept):
            m.d.sync += [exponents.eq(self.i.payload.exponents), is_key.eq(self.i.payload.is_key)]
        m.submodules.largest = largest = Extremum(bits=EXPONENT_BITS, count=blocks, largest=True)
        m.d.comb += largest.i.eq(exponents)
        late_exponents = delay(m, exponents, largest.latency, name="exponents")
        late_key = delay(m, is_key, largest.latency, name="is_key")
        drop = Signal(data.ArrayLayout(SHIFT_BITS, blocks))
        for block in range(blocks):
            distance = (largest.o - late_exponents[block])[:EXPONENT_BITS]
            with m.If(late_key):
                m.d.comb += drop[block].eq(clip_unsigned(distance, SHIFT_BITS))
        wait = READ_CYCLES - 1 + self._lanes[0].dot_latency - largest.latency
        m.d.comb += shifts.eq(delay(m, drop, wait, name="drop"))
        return shifts

    def _build_code(self, m, last, port):
        """Shift the lanes' bits in from the top; the last ones complete the code."""
        lanes = self.config.encoder_lanes
        bits = Cat(lane.bit for lane in self._lanes)
        gathered = Signal(self.config.code_bits)
        code = Cat(gathered[lanes:], bits)
        m.d.sync += gathered.eq(code)
        m.d.comb += [
            port.payload.eq(code),
            port.valid.eq(delay(m, last, READ_CYCLES + self._lanes[0].latency, name="last")),
        ]
