"""The KV chunk streaming engine: wiring of its sub-units."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axi4, axil
from hw.bus.axi4 import connect_channels
from hw.bus.read_mux import ReadMux
from hw.bus.traffic import Traffic, watch
from hw.bus.write_mux import WriteMux
from hw.config import StreamingConfig
from hw.streaming.arrival import Arrival
from hw.streaming.checks import check_config
from hw.streaming.copies import Copies
from hw.streaming.counters import Counters
from hw.streaming.job import JobControl
from hw.streaming.layouts import copy_command, link_beat
from hw.streaming.link_mux import LinkMux
from hw.streaming.loader import Loader
from hw.streaming.registers import REGISTER_ADDRESS_BITS, Registers
from hw.streaming.reports import Reports, report
from hw.streaming.scheduler.layouts import event_record
from hw.streaming.scheduler.scheduler import RouteScheduler

__all__ = ["StreamingUnit", "compute_answer", "compute_order"]

ID_BITS = 2


def compute_order() -> data.StructLayout:
    """A chunk to compute; with ``state_only`` its keys and values are present already."""
    return data.StructLayout({"chunk_id": 32, "state_only": 1})


def compute_answer() -> data.StructLayout:
    """The end of a computation; ``good`` low: it failed."""
    return data.StructLayout({"chunk_id": 32, "good": 1})


class StreamingUnit(wiring.Component):
    """Brings the chunks of a prompt's KV cache into pages, by the link and by computing.

    A job is a schedule in memory. The engine asks the link for chunks (``o_request``), takes their
    frames (``s_axis``, or FEED commands), converts them and writes the rows into pages; it asks for
    computations (``o_compute``) and is told their ends (``i_computed``); and it moves work between
    both routes as it measures them. Beside that it runs plain copies. See docs/streaming.md and
    docs/streaming_registers.md.

    **Latency**: see the parts, and docs/performance.md.

    **Throughput**: a bus beat per cycle: of plain copies, and of stored rows in each format whose
    frames are not longer than the rows.

    **Numerics**: ``golden.streaming.wire.decode_frame`` for what is written,
    ``golden.streaming.runtime.Scheduler`` for what is decided, ``golden.streaming.copy.run_copy``.

    **Errors**: reports, see `hw.streaming.reports`; a chunk is PRESENT only when its frame passed
    every check and its last write was answered, or the compute port said so.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    s_axis : ``In(stream)`` of ``link_beat``
        AXI-Stream, one frame per packet.
    s_axil : AXI4-Lite slave, 32 bits
    m_axi : AXI4 master, ``bus_bytes`` wide
        Read id 0 copies, 1 descriptors, 2 records, 3 schedules; write id 0 pages, 1 copies.
    i_command : ``In(stream)`` of ``copy_command``
    o_request : ``Out(stream)`` of frame id
        The link is to bring this chunk.
    o_compute : ``Out(stream)`` of ``compute_order``
        Taken: accepted.
    i_computed : ``In(stream)`` of ``compute_answer``
        In any order.
    o_report : ``Out(stream)`` of ``report``
    route_event : ``Out(event_record(config))``
        Each event that the route scheduler takes up: what golden must be told to decide the same.
    interrupt : ``Out(1)``, level
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("StreamingUnit", config)
        super().__init__({
            "s_axis": In(stream.Signature(link_beat(config))),
            "s_axil": In(axil.Signature(address_bits=REGISTER_ADDRESS_BITS, data_bytes=4)),
            "m_axi": Out(axi4.Signature(
                address_bits=config.address_bits, data_bytes=config.bus_bytes, id_bits=ID_BITS)),
            "i_command": In(stream.Signature(copy_command(config))),
            "o_request": Out(stream.Signature(32)),
            "o_compute": Out(stream.Signature(compute_order())),
            "i_computed": In(stream.Signature(compute_answer())),
            "o_report": Out(stream.Signature(report())),
            "route_event": Out(event_record(config)),
            "interrupt": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.registers = registers = Registers(config)
        m.submodules.job = job = JobControl(config)
        m.submodules.loader = loader = Loader(config)
        m.submodules.scheduler = scheduler = RouteScheduler(config)
        m.submodules.arrival = arrival = Arrival(config)
        m.submodules.copies = copies = Copies(config)
        m.submodules.reports = reports = Reports(config)

        self._connect_job(m, registers, job, loader, scheduler, arrival)
        self._connect_frames(m, registers, copies, arrival)
        self._connect_routes(m, registers, scheduler, arrival)
        self._connect_copies(m, registers, copies)
        self._connect_reports(m, registers, job, scheduler, arrival, copies, reports)
        self._connect_memory(m, copies, arrival, loader)
        self._connect_counters(m, registers, arrival)
        return m

    def _connect_job(self, m, registers, job, loader, scheduler, arrival):
        wiring.connect(m, wiring.flipped(self.s_axil), registers.bus)
        m.d.comb += [
            job.start.eq(registers.job_start),
            job.abort.eq(registers.job_abort),
            job.tick_log2.eq(registers.tick_log2),
            loader.start.eq(job.load),
            loader.base.eq(registers.schedule),
            loader.count.eq(registers.job_chunks),
            job.loaded.eq(loader.done),
            job.load_failed.eq(loader.failed),
            scheduler.i_entry.payload.eq(loader.o_entry.payload),
            scheduler.i_entry.valid.eq(loader.o_entry.valid & ~job.stop),
            loader.o_entry.ready.eq(scheduler.i_entry.ready | job.stop),
            scheduler.policy.eq(registers.policy),
            scheduler.now.eq(job.now),
            scheduler.start.eq(job.run),
            scheduler.abort.eq(job.give_up),
            job.loading.eq(scheduler.loading),
            job.running.eq(scheduler.busy),
            job.finished.eq(scheduler.finished),
            job.lost.eq(scheduler.lost),
            job.error.eq(scheduler.error),
            arrival.abort.eq(job.stop),
            job.draining.eq(arrival.busy),
            registers.job_busy.eq(job.busy),
            registers.present.eq(scheduler.present),
            registers.lost.eq(scheduler.lost),
            registers.stage.eq(scheduler.stage),
            registers.now.eq(job.now),
        ]

    def _connect_frames(self, m, registers, copies, arrival):
        """Frames come from the link and from memory."""
        m.submodules.link_mux = link_mux = LinkMux(self.config)
        wiring.connect(m, wiring.flipped(self.s_axis), link_mux.i[0])
        wiring.connect(m, copies.o_feed, link_mux.i[1])
        wiring.connect(m, link_mux.o, arrival.i_link)
        wiring.connect(m, registers.o_table, arrival.i_entry)
        m.d.comb += arrival.windows.eq(registers.windows)

    def _connect_routes(self, m, registers, scheduler, arrival):
        """Requests go out, answers come back; outside a chunk has its frame id."""
        connect = wiring.connect
        config, first_id = self.config, registers.first_id
        connect(m, scheduler.o_link, arrival.i_request)
        connect(m, scheduler.o_cancel, arrival.i_cancel)
        connect(m, arrival.o_answer, scheduler.i_link)
        connect(m, arrival.o_request, wiring.flipped(self.o_request))
        self._is_unknown = Signal()
        index = Signal(32)
        m.d.comb += [
            arrival.records.eq(registers.records),
            arrival.first_id.eq(first_id),
            self.o_compute.valid.eq(scheduler.o_compute.valid),
            self.o_compute.payload.chunk_id.eq(first_id + scheduler.o_compute.payload.chunk),
            self.o_compute.payload.state_only.eq(scheduler.o_compute.payload.state_only),
            scheduler.o_compute.ready.eq(self.o_compute.ready),
            index.eq(self.i_computed.payload.chunk_id - first_id),
            self._is_unknown.eq(index[config.chunk_bits:].any()),
            scheduler.i_computed.valid.eq(self.i_computed.valid & ~self._is_unknown),
            scheduler.i_computed.payload.chunk.eq(index),
            scheduler.i_computed.payload.good.eq(self.i_computed.payload.good),
            self.i_computed.ready.eq(scheduler.i_computed.ready | self._is_unknown),
        ]

    def _connect_copies(self, m, registers, copies):
        wiring.connect(m, registers.o_chain, copies.i_chain)
        wiring.connect(m, wiring.flipped(self.i_command), copies.i_command)
        m.d.comb += [
            copies.windows.eq(registers.windows),
            copies.abort.eq(registers.copy_abort),
            registers.copy_busy.eq(copies.busy),
        ]

    def _connect_reports(self, m, registers, job, scheduler, arrival, copies, reports):
        connect = wiring.connect
        connect(m, scheduler.o_record, reports.i_record)
        connect(m, arrival.o_report, reports.i_frame)
        connect(m, copies.o_done, reports.i_copy)
        connect(m, job.o_report, reports.i_job)
        connect(m, reports.o, wiring.flipped(self.o_report))
        m.d.comb += [
            reports.first_id.eq(registers.first_id),
            reports.now.eq(job.now),
            reports.mask.eq(registers.report_mask),
            reports.event_index.eq(registers.event_index),
            registers.event_count.eq(reports.event_count),
            reports.clear.eq(registers.counter_clear),
            registers.causes.eq(reports.causes),
            self.interrupt.eq(registers.interrupt),
            self.route_event.eq(scheduler.event),
        ]

    def _connect_memory(self, m, copies, arrival, loader):
        """The ports' numbers are their ids."""
        config = self.config
        reads = (copies.read, copies.fetch, arrival.read, loader.bus)
        m.submodules.read_mux = read_mux = ReadMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=len(reads))
        for port, bus in zip(read_mux.port, reads, strict=True):
            wiring.connect(m, bus, port)
        m.submodules.write_mux = write_mux = WriteMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=2)
        wiring.connect(m, arrival.write, write_mux.port[0])
        wiring.connect(m, copies.write, write_mux.port[1])
        connect_channels(m, read_mux.axi, self.m_axi, ("ar", "r"))
        connect_channels(m, write_mux.axi, self.m_axi, ("aw", "w", "b"))

    def _connect_counters(self, m, registers, arrival):
        m.submodules.traffic = traffic = Traffic()
        m.submodules.counters = counters = Counters()
        watch(m, traffic, self.m_axi)
        link = self.s_axis
        m.d.comb += [
            counters.beat_read.eq(traffic.beat_read),
            counters.beat_written.eq(traffic.beat_written),
            counters.beat_link.eq(link.valid & link.ready),
            counters.memory_held.eq(traffic.held),
            counters.output_held.eq(self.o_report.valid & ~self.o_report.ready),
            counters.link_held.eq(arrival.busy & link.ready & ~link.valid),
            counters.idle.eq(~(registers.job_busy | registers.copy_busy | link.valid)),
            counters.record_failed.eq(arrival.record_failed),
            counters.answer_unknown.eq(self.i_computed.valid & self._is_unknown),
            counters.clear.eq(registers.counter_clear),
            registers.counters.eq(counters.values),
        ]
