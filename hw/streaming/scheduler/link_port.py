"""Requests on the link, and the giving up of them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import compute_request

__all__ = ["LinkPort"]


class LinkPort(wiring.Component):
    """Offers link requests; takes them back, or has them given up, when they expire.

    A request that is still on offer is withdrawn: ``o_link.valid`` falls without a transfer. For
    one that was taken ``o_cancel`` asks the receive side to give it up. Until that is taken, and
    while answers wait that may be of such a request, nothing new is requested.

    **Latency**: 1 cycle from ``i`` to ``o_link``, from ``withdraw`` to ``o_cancel``.

    **Throughput**: a request every other cycle.

    **Numerics**: none, chunks pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(compute_request(config)))``
        Requests, as `Flying` holds them.
    withdraw, expired : ``In(1)``, chunk : ``In(chunk_bits)``
        The request for a chunk, taken from ``i`` before, has ended; by expiry.
    hold : ``In(1)``
        Answers wait.
    is_clear : ``Out(1)``
        Nothing is to be given up.
    o_link : ``Out(stream.Signature(config.chunk_bits))``
    o_cancel : ``Out(stream.Signature(config.chunk_bits))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("LinkPort", config)
        super().__init__({
            "i": In(stream.Signature(compute_request(config))),
            "withdraw": In(1), "expired": In(1), "chunk": In(config.chunk_bits),
            "hold": In(1),
            "is_clear": Out(1),
            "o_link": Out(stream.Signature(config.chunk_bits)),
            "o_cancel": Out(stream.Signature(config.chunk_bits)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        # Whatever is given up was in flight, and meanwhile nothing else is sent.
        m.submodules.cancels = cancels = Queue(
            self.config.chunk_bits, depth=self.config.outstanding + 1)
        wiring.connect(m, cancels.o, wiring.flipped(self.o_cancel))

        offered = self.o_link
        is_on_offer = Signal()
        m.d.comb += [
            is_on_offer.eq(offered.valid & ~offered.ready & (offered.payload == self.chunk)),
            cancels.i.payload.eq(self.chunk),
            cancels.i.valid.eq(self.withdraw & self.expired & ~is_on_offer),
            self.is_clear.eq((cancels.level == 0) & ~cancels.i.valid),
            self.i.ready.eq(~offered.valid & self.is_clear & ~self.hold),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [offered.valid.eq(1), offered.payload.eq(self.i.payload.chunk)]
        with m.Elif(offered.ready | self.withdraw & is_on_offer):
            m.d.sync += offered.valid.eq(0)
        return m
