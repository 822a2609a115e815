"""Loads a query: vectors to the heads, and codes from the encoder or the data stream."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error, Select, encode_request, query_vector
from hw.attention.loader import loader_members
from hw.config import AttentionConfig
from hw.stream import Fork

__all__ = ["QueryLoader"]


class QueryLoader(wiring.Component):
    """Gives each head its vector and collects the group's codes.

    Codes are encoded unless they come with the command or the query is DENSE, which needs none.

    **Latency**: a vector leaves in the cycle of its record; ``done`` 1 cycle after the final record
    or, where that is later, the last code.

    **Throughput**: one record per cycle.

    **Numerics**: none, see ``Encoder``.

    **Errors**: DATA, once the codes still under way have come back.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    loader_members
    slot : ``In``
        Where the heads keep the vectors, constant until ``done``.
    o_query : per head, ``Out(stream)`` of ``query_vector``
    o_encode, i_encoded : streams of ``encode_request``, and codes in the order of the requests
    codes : ``Out``
        The group's codes; hold from ``done`` until the next query.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"QueryLoader config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__(loader_members(config) | {
            "slot": In(config.slot_bits),
            "o_query": Out(stream.Signature(query_vector(config))).array(config.group),
            "o_encode": Out(stream.Signature(encode_request(config))),
            "i_encoded": In(stream.Signature(config.code_bits)),
            "codes": Out(data.ArrayLayout(config.code_bits, config.group)),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, record = self.config, self.i.payload
        vector = data.ArrayLayout(signed(config.query_bits), config.head_dim)
        m.submodules.fork = fork = Fork(vector, count=2)

        is_vector = self.index != config.group  # the record past the heads' has the codes
        code_beats = -(-config.group * config.code_bits // 8 // config.memory_bytes)
        m.d.comb += [
            self.records.eq(config.group + self.command.has_code),
            self.beats.eq(Mux(
                is_vector, config.query_data_bytes // config.memory_bytes, code_beats)),
            fork.i.payload.eq(record.data),
            fork.i.valid.eq(self.i.valid & is_vector & ~record.bad),
            self.i.ready.eq(~fork.i.valid | fork.i.ready),
        ]
        self._load_head(m, fork.o[0])
        pending = self._encode(m, fork.o[1])

        loaded, failed = Signal(), Signal()
        with m.If(self.done):
            m.d.sync += loaded.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [loaded.eq(record.final | record.bad), failed.eq(record.bad)]
        m.d.comb += [
            self.done.eq(loaded & (pending == 0)),
            self.error.eq(Mux(failed, Error.DATA, Error.NONE)),
        ]
        return m

    def _load_head(self, m, vector):
        for head, port in enumerate(self.o_query):
            m.d.comb += [
                port.payload.slot.eq(self.slot),
                port.payload.vector.eq(vector.payload),
                port.payload.exponent.eq(self.command.exponents[head]),
            ]
            with m.If(self.index == head):
                m.d.comb += [port.valid.eq(vector.valid), vector.ready.eq(port.ready)]

    def _encode(self, m, vector):
        """Ask for codes and take them. Returns the number that is still to come."""
        config, codes = self.config, self.codes.as_value()
        is_wanted = ~self.command.has_code & (self.command.select != Select.DENSE)
        m.d.comb += [
            self.o_encode.payload.weight_set.eq(self.entry.weight_set),
            self.o_encode.payload.vector.eq(vector.payload),
            self.o_encode.valid.eq(vector.valid & is_wanted),
            vector.ready.eq(~is_wanted | self.o_encode.ready),
            self.i_encoded.ready.eq(1),
        ]
        sent = self.o_encode.valid & self.o_encode.ready
        came = self.i_encoded.valid & self.i_encoded.ready
        pending = Signal(range(config.group + 1))
        m.d.sync += pending.eq(pending + sent - came)
        # They come in the order of the heads: the first ends up lowest.
        with m.If(came):
            m.d.sync += codes.eq(Cat(codes, self.i_encoded.payload)[config.code_bits:])
        with m.Elif(self.i.valid & (self.index == config.group)):
            m.d.sync += codes.eq(self.i.payload.data)
        return pending
