"""What the header of a frame says, as far as it can be judged by itself."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import PAGE_TOKENS, WIRE_FORMATS, StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import Reason
from hw.streaming.wire import (
    HEADER_FIELDS,
    MAGIC,
    SMALLEST_PAGE_BYTES,
    UNIT_BYTES,
    VERSION,
    is_coded,
    largest_coded_page,
    row_bytes,
    side_bytes,
    table_bytes,
)

__all__ = ["HeaderCheck", "frame_head", "frame_header"]

UNITS_BITS = 32 - (UNIT_BYTES - 1).bit_length()  # of a payload's length in units of 64 bytes


def frame_header() -> data.StructLayout:
    """The 64 bytes of a header."""
    return data.StructLayout({name: 8 * size for name, size in HEADER_FIELDS.items()})


def frame_head(config: StreamingConfig) -> data.StructLayout:
    """A header judged by itself. ``reason``: the first of `MAGIC` to `HEADER_CRC` that fails, or
    `TRUNCATED` where the packet ends within the header; what follows counts if it is `NONE`."""
    fields = {name: 8 * HEADER_FIELDS[name]
              for name in ("chunk_id", "layer", "kv_head", "token_block", "format", "tokens")}
    return data.StructLayout({
        "reason": Reason,
        **fields,
        "is_shape": 1,         # head_dim and exponent_block are those of this engine
        "is_length": 1,        # payload_bytes fits the format and the tokens
        "payload_beats": 32,
    })


class HeaderCheck(wiring.Component):
    """Makes the checks of a header that need nothing else: 1 to 4, shape and length.

    Rows are powers of two and a page's side block is whole units, so that the length of a payload
    takes shifts and additions only: its rows rounded up to units, and a side block per page.

    **Latency**: 3 cycles (`LATENCY`) from ``start`` to ``o.valid``.

    **Throughput**: a header per 2 cycles. ``header`` must not change after the first cycle,
    while ``settles`` is high.

    **Numerics**: ``golden.streaming.wire.decode_frame``;
    ``golden.streaming.layout.payload_bounds``.

    **Errors**: in ``o.payload``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    header : ``In(frame_header())``
    start : ``In(1)``
        The packet's header is over, and in ``header`` from the next cycle on.
    is_whole : ``In(1)``
        With ``start``: all of its bytes came.
    is_sealed : ``In(1)``
        Two cycles after ``start``: its CRC is right.
    settles : ``Out(1)``
        A header is being checked: no beat may be written to it.
    o : ``Out(stream.Signature(frame_head(config)))``
        Must be taken at once.
    """

    LATENCY = 3

    def __init__(self, config: StreamingConfig):
        self._config = check_config("HeaderCheck", config)
        super().__init__({
            "header": In(frame_header()),
            "start": In(1),
            "is_whole": In(1),
            "is_sealed": In(1),
            "settles": Out(1),
            "o": Out(stream.Signature(frame_head(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, header, head = self.config, self.header, self.o.payload
        is_whole, is_judged = Signal(), Signal()
        reason = self._judge(m, is_whole)
        low, high = self._bound(m)
        units = header.payload_bytes[-UNITS_BITS:]

        m.d.sync += [
            self.settles.eq(self.start),
            is_whole.eq(self.is_whole),
            is_judged.eq(self.settles),
            self.o.valid.eq(is_judged),
            head.reason.eq(reason),
            head.is_length.eq((header.payload_bytes[:-UNITS_BITS] == 0)
                              & (units >= low) & (units <= high)),
            head.is_shape.eq((header.head_dim == config.head_dim)
                             & (header.exponent_block == config.exponent_block)),
            head.payload_beats.eq(header.payload_bytes // config.bus_bytes),
        ]
        m.d.sync += [head[name].eq(header[name])
                     for name, _ in frame_head(config) if name in HEADER_FIELDS]
        with m.If((reason == Reason.NONE) & ~self.is_sealed):
            m.d.sync += head.reason.eq(Reason.HEADER_CRC)
        return m

    def _judge(self, m, is_whole):
        """The checks before that of the CRC, a cycle after the header; the last assignment wins."""
        header = self.header
        reason = Signal(Reason)
        is_built = Signal()
        m.d.sync += reason.eq(Reason.NONE)
        with m.Switch(header.format):
            with m.Case(*(WIRE_FORMATS[name] for name in self.config.formats)):
                m.d.comb += is_built.eq(1)
        for fails, failed in (
            (~is_built | (header.flags != 0), Reason.FORMAT),
            (header.version != VERSION, Reason.VERSION),
            (header.magic != MAGIC, Reason.MAGIC),
            (~is_whole, Reason.TRUNCATED),
        ):
            with m.If(fails):
                m.d.sync += reason.eq(failed)
        return reason

    def _bound(self, m):
        """Smallest and largest payload in units of 64 bytes, a cycle after the header."""
        config, tokens = self.config, self.header.tokens
        low, high = Signal(UNITS_BITS), Signal(UNITS_BITS)
        pages = (tokens + (PAGE_TOKENS - 1)) // PAGE_TOKENS
        with m.Switch(self.header.format):
            for name in config.formats:
                with m.Case(WIRE_FORMATS[name]):
                    if is_coded(name):
                        tables = 2 * table_bytes(name) // UNIT_BYTES
                        smallest = pages * (SMALLEST_PAGE_BYTES // UNIT_BYTES) + tables
                        largest = pages * (largest_coded_page(config.head_dim) // UNIT_BYTES)
                        m.d.sync += [low.eq(smallest), high.eq(largest + tables)]
                    else:
                        rows = tokens * (2 * row_bytes(name, config.head_dim))
                        side = pages * (side_bytes(name, config.blocks) // UNIT_BYTES)
                        exact = (rows + (UNIT_BYTES - 1)) // UNIT_BYTES + side
                        m.d.sync += [low.eq(exact), high.eq(exact)]
        return low, high
