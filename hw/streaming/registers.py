"""AXI4-Lite register block of the streaming engine."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axil
from hw.bus.register_slave import RegisterSlave, collect_interrupts, enter_page
from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.counters import COUNTER_BITS
from hw.streaming.descriptors import chain
from hw.streaming.layouts import schedule_policy, windows
from hw.streaming.page_finder import page_entry
from hw.streaming.register_map import (
    COUNTERS,
    IDENTITY,
    JOB_FIELDS,
    REGISTERS,
    SIZES,
    VERSION,
    WIDTHS,
)
from hw.streaming.reports import EVENT_BITS, MASK_BITS, Cause

__all__ = ["REGISTER_ADDRESS_BITS", "Registers"]

REGISTER_ADDRESS_BITS = 12


class Registers(wiring.Component):
    """Register file behind an AXI4-Lite slave; the map is ``register_map.REGISTERS``.

    **Latency**: that of `RegisterSlave`; a block-table entry or a chain is answered 1 cycle after
    it was taken.

    **Throughput**: that of `RegisterSlave`.

    **Numerics**: none.

    **Errors**: SLVERR, and nothing changes; see docs/streaming_registers.md.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    bus : ``In(axil.Signature)``
    o_table, o_chain : ``Out``, streams of ``page_entry`` and ``chain``
    windows : ``Out(windows(config))``
    policy : ``Out(schedule_policy(config))``
    records, schedule, first_id, job_chunks, tick_log2 : ``Out``
        Registers of the job.
    job_start, job_abort, copy_abort, counter_clear : ``Out(1)``, for one cycle
    report_mask : ``Out``
    event_index : ``Out``; event_count : ``In(32)``
    causes : ``In(Cause)``
        Interrupts of this cycle.
    job_busy, copy_busy, present, lost, stage, now : ``In``
    counters : ``In``
        In the order of ``register_map.COUNTERS``.
    interrupt : ``Out(1)``
        Level, high while an enabled cause is pending.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Registers", config)
        super().__init__({
            "bus": In(axil.Signature(address_bits=REGISTER_ADDRESS_BITS, data_bytes=4)),
            "o_table": Out(stream.Signature(page_entry(config))),
            "o_chain": Out(stream.Signature(chain(config))),
            "windows": Out(windows(config)),
            "policy": Out(schedule_policy(config)),
            "records": Out(config.address_bits),
            "schedule": Out(config.address_bits),
            "first_id": Out(32),
            "job_chunks": Out(16),
            "tick_log2": Out(4),
            "job_start": Out(1),
            "job_abort": Out(1),
            "copy_abort": Out(1),
            "counter_clear": Out(1),
            "report_mask": Out(MASK_BITS),
            "event_index": Out(EVENT_BITS),
            "event_count": In(32),
            "causes": In(Cause),
            "job_busy": In(1),
            "copy_busy": In(1),
            "present": In(16),
            "lost": In(16),
            "stage": In(8),
            "now": In(32),
            "counters": In(data.ArrayLayout(COUNTER_BITS, len(COUNTERS))),
            "interrupt": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.slave = self._slave = slave = RegisterSlave(
            REGISTERS, address_bits=REGISTER_ADDRESS_BITS)
        wiring.connect(m, wiring.flipped(self.bus), slave.bus)
        initial = {field.name: field.initial for field in JOB_FIELDS}
        self._stored = stored = {
            r.name: Signal(32, name=r.name, init=initial.get(r.name, 0))
            for r in REGISTERS if r.access == "rw"}
        for name, register in stored.items():
            with m.If(slave.strobe[name]):
                m.d.sync += register.eq(slave.word)
        pending, interrupt = collect_interrupts(
            m, slave, self.causes, stored["interrupt_enable"])
        m.d.comb += self.interrupt.eq(interrupt)
        for name, width in WIDTHS.items():
            m.d.comb += slave.accepts[name].eq(~slave.word[width:].any())
        self._guard_job(m)
        enter_page(m, slave, stored["table_index"], self.o_table, entries=self.config.table_pages)
        self._write_window(m)
        self._start_chain(m)
        self._give_orders(m)
        for name, value in self._readable(pending).items():
            m.d.comb += slave.value[name].eq(value)
        return m

    def _address(self, name):
        return Cat(self._stored[name], self._stored[f"{name}_high"])

    def _guard_job(self, m):
        """A job's registers take values in their range, and hold still while it runs."""
        word, address_bits = self._slave.word, self.config.address_bits
        for field in JOB_FIELDS:
            high = getattr(self.config, field.high) if isinstance(field.high, str) else field.high
            in_range = (word >= field.low) & (word <= high)
            if field.name in ("records", "schedule"):
                in_range &= ~(word[:6].any() | word[address_bits:].any())
            elif field.name in ("records_high", "schedule_high"):
                in_range &= ~word[max(0, address_bits - 32):].any()
            m.d.comb += self._slave.accepts[field.name].eq(in_range & ~self.job_busy)
        for name, _ in self.policy.shape():
            m.d.comb += self.policy[name].eq(self._stored[name])

    def _write_window(self, m):
        """Windows stand still while something may write. Bounds above the address space would grant
        what they do not say."""
        slave, config = self._slave, self.config
        base, last = self._address("window_base"), self._address("window_last")
        index = self._stored["window_index"]
        is_bad = Signal()
        # A cycle or more passes between any write of these and the next.
        m.d.sync += is_bad.eq(
            (base > last) | base[config.address_bits:].any() | last[config.address_bits:].any()
            | (index >= config.windows))
        m.d.comb += slave.accepts.window_enter.eq(~is_bad & ~self.job_busy & ~self.copy_busy)
        for number in range(config.windows):
            with m.If(slave.strobe.window_enter & (index == number)):
                window = self.windows[number]
                m.d.sync += [
                    window.valid.eq(slave.word[0]), window.base.eq(base), window.last.eq(last)]

    def _start_chain(self, m):
        slave, start = self._slave, self.o_chain
        address = self._address("chain_address")
        m.d.comb += [
            slave.accepts.chain_start.eq(~address[self.config.address_bits:].any()),
            # The answer waits until what was written was taken.
            slave.slow.eq(slave.strobe.table_page | (slave.strobe.chain_start & slave.word[0])),
            slave.done.eq((start.valid & start.ready) | (self.o_table.valid & self.o_table.ready)),
        ]
        with m.If(slave.strobe.chain_start & slave.word[0]):
            m.d.sync += [
                start.valid.eq(1),
                start.payload.address.eq(address),
                start.payload.limit.eq(self._stored["chain_limit"]),
                start.payload.tag.eq(self._stored["chain_tag"]),
            ]
        with m.Elif(start.ready):
            m.d.sync += start.valid.eq(0)

    def _give_orders(self, m):
        slave, stored = self._slave, self._stored
        m.d.comb += [
            slave.accepts.job_start.eq(~self.job_busy),
            *(getattr(self, name).eq(slave.strobe[name] & slave.word[0]) for name in (
                "job_start", "job_abort", "copy_abort", "counter_clear")),
            *(getattr(self, name).eq(stored[name]) for name in (
                "first_id", "job_chunks", "tick_log2", "report_mask", "event_index")),
            self.records.eq(self._address("records")),
            self.schedule.eq(self._address("schedule")),
        ]

    def _readable(self, pending):
        """What each register that can be read shows."""
        major, minor = VERSION
        return {
            "id": IDENTITY,
            "version": major << 16 | minor,
            **{name: getattr(self.config, name) for name in SIZES},
            "interrupt_pending": pending,
            "busy": Cat(self.job_busy, self.copy_busy),
            "event_count": self.event_count,
            "job_present": self.present,
            "job_lost": self.lost,
            "job_stage": self.stage,
            "now": self.now,
            **self._stored,
            **{name: self.counters[place] for place, (name, _) in enumerate(COUNTERS)},
        }
