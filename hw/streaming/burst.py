"""Cuts runs of bytes into AXI bursts."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import beat_size
from hw.config import StreamingConfig
from hw.streaming.checks import check_config

__all__ = ["BurstSplitter", "burst", "run"]

RUN_BITS = 32


def run(config: StreamingConfig, context=0) -> data.StructLayout:
    """``bytes`` bytes from ``address`` on, and what its bursts are to carry along."""
    return data.StructLayout({
        "address": config.address_bits, "bytes": RUN_BITS, "context": context})


def burst(config: StreamingConfig, context=0) -> data.StructLayout:
    """A burst of ``length + 1`` beats. ``address`` is that of its first byte, wherever in the first
    beat; ``tail`` is the place of its last byte in the last beat. ``is_empty``: no burst at all,
    but the mark of a run that ends without one."""
    return data.StructLayout({
        "address": config.address_bits,
        "length": 8,
        "tail": beat_size(config.bus_bytes),
        "is_empty": 1,
        "last": 1,   # of the run
        "context": context,
    })


class BurstSplitter(wiring.Component):
    """Cuts a run of bytes at each multiple of ``config.burst_bytes``.

    That being a power of two of at most 4 KiB and 256 beats, no burst crosses 4 KiB or is longer
    than AXI allows, whatever the alignment of the run. The last burst ends with the last byte: a
    run that ends at a boundary is followed by no burst of its own.

    Of every run comes exactly one burst that is marked ``last``. For a run of no bytes, or one that
    was cut after a burst, that is one marked ``is_empty``.

    **Latency**: 1 cycle from ``i`` to ``o``, from registers.

    **Throughput**: 1 burst per cycle, from one run to the next too. ``i.ready`` depends on
    ``o.ready`` within the cycle.

    **Numerics**: ``golden.streaming.copy.split``.

    **Errors**: none. A run past the end of the address space wraps around.

    Parameters
    ----------
    config : StreamingConfig
    context : shape-like
        Shape of what bursts carry along.

    Members
    -------
    i : ``In(stream.Signature(run(config, context)))``
        Runs.
    o : ``Out(stream.Signature(burst(config, context)))``
        Their bursts, in order.
    cut : ``In(1)``
        When a burst is taken that is not the last of its run: the rest of the run is given up.
    """

    def __init__(self, config: StreamingConfig, *, context=0):
        self._config = check_config("BurstSplitter", config)
        self._context = context
        super().__init__({
            "i": In(stream.Signature(run(config, context))),
            "o": Out(stream.Signature(burst(config, context))),
            "cut": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def context(self):
        return self._context

    def elaborate(self, platform):
        m = Module()
        config, output = self.config, self.o.payload
        block_bits = beat_size(config.burst_bytes)
        block = 1 << block_bits
        rest = Signal(RUN_BITS)   # bytes behind the burst on offer
        is_new = Signal()

        # What the next burst is to begin with: a new run, or the next block of this one.
        next_block = output.address[block_bits:] + 1
        offset = Signal(block_bits)
        size = Signal(RUN_BITS)
        room = Signal(range(block + 1))
        m.d.comb += [
            is_new.eq(~self.o.valid | output.last),
            offset.eq(Mux(is_new, self.i.payload.address, 0)),
            size.eq(Mux(is_new, self.i.payload.bytes, rest)),
            room.eq(block - offset),
        ]
        is_last, end = Signal(), Signal(block_bits)
        beat_bits = len(output.tail)
        m.d.comb += [
            is_last.eq(self._fits(size, room)),
            end.eq(Mux(is_last, offset + size - 1, block - 1)),
            self.i.ready.eq(~self.o.valid | (output.last & self.o.ready)),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | ~is_new),
                rest.eq(size - room),
                output.length.eq(end[beat_bits:] - offset[beat_bits:]),
                output.tail.eq(end),
                output.is_empty.eq(size == 0),
                output.last.eq(is_last),
            ]
            with m.If(is_new):
                m.d.sync += [
                    output.address.eq(self.i.payload.address),
                    output.context.eq(self.i.payload.context),
                ]
            with m.Else():
                m.d.sync += output.address.eq(next_block << block_bits)
                with m.If(self.cut):
                    m.d.sync += [output.is_empty.eq(1), output.last.eq(1)]
        return m

    @staticmethod
    def _fits(size, room):
        """Whether what is left of a run, ``size`` bytes, ends in a block with ``room`` bytes."""
        return size <= room
