"""The hash attention unit: wiring of its sub-units."""

from amaranth.hdl import Array, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.append import Append
from hw.attention.contexts import ContextTable
from hw.attention.counters import Counters
from hw.attention.encoder import Encoder
from hw.attention.fetch import Fetch
from hw.attention.front import Front
from hw.attention.head import HeadSlice
from hw.attention.layouts import (
    command,
    data_beat,
    encode_request,
    result_beat,
    row_beat,
)
from hw.attention.paging import Paging
from hw.attention.registers import REGISTER_ADDRESS_BITS, Registers
from hw.attention.results import Results
from hw.attention.retrieval import Retrieval
from hw.bus import axi4, axil
from hw.bus.axi4 import connect_channels
from hw.bus.read_mux import ReadMux
from hw.bus.traffic import Traffic, watch
from hw.config import AttentionConfig
from hw.shared import Once
from hw.stream import Arbiter, Fork, Queue
from hw.stream.skid import connect_sliced

__all__ = ["AttentionUnit"]

ID_BITS = 2


class AttentionUnit(wiring.Component):
    """Attention over a cached context, reading in full only what code distance says is near.

    Commands and their data come in on streams, results leave on one; rows of K, V and page
    summaries are read and written through one AXI4 master; contexts, block table and counters are
    behind AXI4-Lite. See docs/architecture.md and docs/registers.md.

    **Latency**: of a query over N tokens that reads B beats: code phase (N / lanes) + B + a
    constant, see ``golden.cycles`` and docs/performance.md.

    **Throughput**: back-to-back queries overlap: max(code phase, B) per query.

    **Numerics**: ``golden.unit.AttentionModel``, in every bit.

    **Errors**: every command ends with one STATUS beat; see ``hw.attention.layouts.Error``.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_command : ``In(stream)`` of ``command``
    i_data : ``In(stream)`` of ``data_beat``
    o_result : ``Out(stream)`` of ``result_beat``
    s_axil : AXI4-Lite slave, 32 bits
    m_axi : AXI4 master, ``memory_bytes`` wide; id 0 K rows, 1 V rows, 2 code lines
    interrupt : ``Out(1)``, level
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"AttentionUnit config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_command": In(stream.Signature(command(config))),
            "i_data": In(stream.Signature(data_beat(config))),
            "o_result": Out(stream.Signature(result_beat(config))),
            "s_axil": In(axil.Signature(address_bits=REGISTER_ADDRESS_BITS, data_bytes=4)),
            "m_axi": Out(axi4.Signature(
                address_bits=config.address_bits, data_bytes=config.memory_bytes, id_bits=ID_BITS)),
            "interrupt": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.registers = registers = Registers(config)
        m.submodules.contexts = contexts = ContextTable(config)
        m.submodules.front = front = Front(config)
        m.submodules.encoder = encoder = Encoder(config)
        m.submodules.retrieval = retrieval = Retrieval(config)
        m.submodules.paging = paging = Paging(config)
        m.submodules.fetch = fetch = Fetch(config)
        m.submodules.append = append = Append(config, id_bits=ID_BITS)
        m.submodules.results = results = Results(config)
        m.submodules.counters = counters = Counters()
        heads = [Once(HeadSlice(config)) for _ in range(config.group)]
        for index, head in enumerate(heads):
            m.submodules[f"head_{index}"] = head

        self._connect_control(m, registers, contexts, front, append, results, paging)
        self._connect_encoder(m, encoder, front, append)
        self._connect_query(m, front, retrieval, fetch, paging, heads, results)
        self._connect_append(m, append, paging, retrieval)
        self._connect_memory(m, fetch, retrieval, append)
        self._connect_counters(m, counters, front, retrieval, results, contexts, registers)
        return m

    def _connect_control(self, m, registers, contexts, front, append, results, paging):
        connect = wiring.connect
        connect(m, wiring.flipped(self.s_axil), registers.bus)
        connect(m, wiring.flipped(self.i_command), front.i_command)
        connect(m, wiring.flipped(self.i_data), front.i_data)
        connect(m, results.o, wiring.flipped(self.o_result))
        connect(m, registers.o_table, paging.i_entry)
        connect(m, registers.o_context, contexts.i_write)
        connect(m, front.o_lookup, contexts.i_lookup)
        connect(m, contexts.o_view, front.i_view)
        connect(m, front.o_length, contexts.i_length)
        connect_sliced(m, "append_slice", front.o_append, append.i)
        connect(m, append.o_done, front.i_appended)
        connect(m, front.o_issued, results.i_issued)
        connect(m, front.o_status, results.i_status)
        connect(m, results.o_release, front.i_release)
        m.d.comb += [
            registers.context_fault.eq(contexts.fault),
            contexts.length_index.eq(registers.length_index),
            registers.length_valid.eq(contexts.length_valid),
            registers.length.eq(contexts.length),
            registers.closed.eq(results.done),
            registers.error.eq(results.error),
            self.interrupt.eq(registers.interrupt),
        ]

    def _connect_encoder(self, m, encoder, front, append):
        """One encoder serves queries and keys; codes return to whoever asked, in order."""
        m.submodules.encode_arbiter = arbiter = Arbiter(encode_request(self.config), count=2)
        m.submodules.encode_order = order = Queue(1, depth=4)
        connect_sliced(m, "query_slice", front.o_encode, arbiter.i[0])
        connect_sliced(m, "key_slice", append.o_encode, arbiter.i[1])
        wiring.connect(m, front.o_weight, encoder.i_weight)
        askers = (front.i_encoded, append.i_encoded)
        m.d.comb += [
            encoder.i.payload.eq(arbiter.o.payload),
            encoder.i.valid.eq(arbiter.o.valid & order.i.ready),
            order.i.payload.eq(arbiter.grant),
            order.i.valid.eq(arbiter.o.valid & encoder.i.ready),
            arbiter.o.ready.eq(encoder.i.ready & order.i.ready),
            encoder.o.ready.eq(Array(port.ready for port in askers)[order.o.payload]
                               & order.o.valid),
            order.o.ready.eq(encoder.o.valid & encoder.o.ready),
        ]
        for number, port in enumerate(askers):
            m.d.comb += [
                port.payload.eq(encoder.o.payload),
                port.valid.eq(encoder.o.valid & order.o.valid & (order.o.payload == number)),
            ]

    def _connect_query(self, m, front, retrieval, fetch, paging, heads, results):
        """Job -> tokens -> rows, which all heads of the group share -> states."""
        connect = wiring.connect
        connect_sliced(m, "search_slice", front.o_job, retrieval.i)
        connect_sliced(m, "job_slice", retrieval.o_job, fetch.i_job)
        connect_sliced(m, "token_slice", retrieval.o_token, fetch.i_token)
        connect(m, retrieval.o_counts, results.i_counts)
        connect(m, fetch.paging, paging.fetch)
        connect(m, fetch.o_status, results.i_fetch)
        row = row_beat(self.config)
        m.submodules.key_fork = key_fork = Fork(row, count=len(heads))
        m.submodules.value_fork = value_fork = Fork(row, count=len(heads))
        connect_sliced(m, "key_row_slice", fetch.o_key, key_fork.i)
        connect_sliced(m, "value_row_slice", fetch.o_value, value_fork.i)
        for index, head in enumerate(heads):
            connect(m, front.o_query[index], head.i_query)
            connect(m, key_fork.o[index], head.i_key)
            connect(m, value_fork.o[index], head.i_value)
            connect(m, head.o_state, results.i_state[index])
            connect(m, head.o_logit, results.i_logit[index])

    def _connect_append(self, m, append, paging, retrieval):
        wiring.connect(m, append.paging, paging.append)
        if self.config.code_source == "resident":
            wiring.connect(m, append.o_code, retrieval.i_code)

    def _connect_memory(self, m, fetch, retrieval, append):
        """Read ports 0 (K), 1 (V) and 2 (codes) share the read channels; append has the others."""
        config = self.config
        ports = [fetch.bus_key, fetch.bus_value]
        if config.code_source == "streamed":
            ports.append(retrieval.bus)
        m.submodules.read_mux = mux = ReadMux(
            address_bits=config.address_bits, data_bytes=config.memory_bytes, ports=len(ports))
        for port, master in zip(mux.port, ports, strict=True):
            wiring.connect(m, master, port)
        connect_channels(m, mux.axi, self.m_axi, ("ar", "r"))
        connect_channels(m, append.axi, self.m_axi, ("aw", "w", "b"))

    def _connect_counters(self, m, counters, front, retrieval, results, contexts, registers):
        m.submodules.traffic = traffic = Traffic()
        watch(m, traffic, self.m_axi)
        m.d.comb += [
            counters.beat_read.eq(traffic.beat_read),
            counters.beat_written.eq(traffic.beat_written),
            counters.memory_held.eq(traffic.held),
            counters.idle.eq(front.idle & results.idle),
            counters.output_held.eq(self.o_result.valid & ~self.o_result.ready),
            counters.matching.eq(retrieval.matching),
            counters.scanning.eq(retrieval.scanning),
            counters.closed.eq(results.done),
            counters.error.eq(results.error),
            counters.rejected.eq(contexts.rejected),
            counters.clear.eq(registers.counter_clear),
            registers.counters.eq(counters.values),
            registers.busy.eq(~counters.idle),
        ]
