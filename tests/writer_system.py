"""The page writer on a shared bus, as one unit, and scenes for it."""

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.streaming.writer import (
    Burst,
    Outcome,
    Placement,
    Window,
    outcome_of,
    plan_writes,
    store,
)
from hw.bus import axi4
from hw.bus.write_mux import WriteMux
from hw.bus.write_port import WritePort
from hw.streaming.layouts import stored_beat
from hw.streaming.writer import PageWriter
from tests.hw.streaming.payloads import stored_beats

__all__ = ["WriterScene", "WriterSystem"]


def ordered_item(config):
    """A beat of a row, or a close: in one stream, as the receive path keeps them in order."""
    return data.StructLayout({"beat": stored_beat(config), "is_close": 1, "refused": 1})


class WriterSystem(wiring.Component):
    """`PageWriter` and another master on a `WriteMux`.

    Placements wait until ``entries`` block-table entries have been written.

    Parameters
    ----------
    config : StreamingConfig
    entries : int
    """

    def __init__(self, config, *, entries):
        self.config = config
        self.entries = entries
        writer = PageWriter(config).signature.members
        super().__init__({
            **{name: writer[name] for name in ("i_entry", "i_placement", "windows", "o_done")},
            "i": In(stream.Signature(ordered_item(config))),
            "other": In(WritePort(config.address_bits, config.bus_bytes)),
            "m_axi": Out(axi4.WriteSignature(config.address_bits, config.bus_bytes, 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = PageWriter(self.config)
        m.submodules.mux = mux = WriteMux(
            address_bits=self.config.address_bits, data_bytes=self.config.bus_bytes, ports=2)
        wiring.connect(m, wiring.flipped(self.i_entry), writer.i_entry)
        wiring.connect(m, writer.bus, mux.port[0])
        wiring.connect(m, wiring.flipped(self.other), mux.port[1])
        wiring.connect(m, mux.axi, wiring.flipped(self.m_axi))
        wiring.connect(m, writer.o_done, wiring.flipped(self.o_done))
        written = Signal(range(self.entries + 1))
        is_open = written == self.entries
        with m.If(self.i_entry.valid & ~is_open):
            m.d.sync += written.eq(written + 1)
        item = self.i.payload
        m.d.comb += [
            writer.windows.eq(self.windows),
            writer.i_placement.payload.eq(self.i_placement.payload),
            writer.i_placement.valid.eq(self.i_placement.valid & is_open),
            self.i_placement.ready.eq(writer.i_placement.ready & is_open),
            writer.i_stored.payload.eq(item.beat),
            writer.i_stored.valid.eq(self.i.valid & ~item.is_close),
            writer.i_close.payload.eq(item.refused),
            writer.i_close.valid.eq(self.i.valid & item.is_close),
        ]
        with m.If(item.is_close):
            m.d.comb += self.i.ready.eq(writer.i_close.ready)
        with m.Else():
            m.d.comb += self.i.ready.eq(writer.i_stored.ready)
        return m


class WriterScene:
    """Chunks, the stimuli for them, and all that must come of it.

    The memory's quarters are for keys, values, exponents, and the other master. Window 0 is the
    first three, 1 a part of them, 2 is not valid, and 3 a part of the values.

    Parameters
    ----------
    config : StreamingConfig
        Of 4 windows or more.
    memory : bytes
        The memory before; ``expected`` is what it must hold in the end.
    seed : int

    Attributes
    ----------
    faults : list of (int, int)
        Bursts that begin at ``low <= address < high`` fail.
    placements, items, done : list
        Stimuli, and the outcomes that they lead to.
    bursts : list of golden.streaming.writer.Burst
        Of the page writer, those that fail included.
    """

    def __init__(self, config, memory, *, seed):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.expected = bytearray(memory)
        self.quarter = quarter = len(memory) // 4
        self.pages = quarter // (16 * (2 * config.head_dim + config.bus_bytes)) - 1
        self.table = self.rng.integers(self.pages, size=config.table_pages).tolist()
        last = 3 * quarter - 1
        self.windows = [Window(True, 0, last), Window(True, quarter // 2, quarter * 5 // 2 - 1),
                        Window(False, 0, last),
                        Window(True, quarter + quarter // 4, quarter * 3 // 2 - 1)]
        self.windows += [Window(False, 0, 0)] * (config.windows - 4)
        self.faults = []
        self.placements, self.items, self.done, self.bursts = [], [], [], []
        self.other_requests, self.other_beats = [], []

    @property
    def table_writes(self):
        return [{"index": index, "page": page} for index, page in enumerate(self.table)]

    @property
    def window_values(self):
        return [{name: int(value) for name, value in window._asdict().items()}
                for window in self.windows]

    def chunk(self, tokens, *, rows=None, refused=False, **fields):
        """Add a chunk of which ``rows`` rows come; ``fields`` of its placement, others random."""
        config, rng = self.config, self.rng
        bus, quarter = config.bus_bytes, self.quarter
        row_stride = int(rng.choice([config.head_dim, config.head_dim + bus, 2 * config.head_dim]))
        placement = Placement(**{
            "tokens": tokens,
            "table_index": int(rng.integers(config.table_pages - (tokens + 15) // 16 + 1)),
            # Off the rows' own size by a beat, so that some cross 4 KiB.
            "key_base": bus * int(rng.integers(4)),
            "value_base": quarter + bus * int(rng.integers(4)),
            "exponent_base": 2 * quarter + bus * int(rng.integers(4)),
            "page_stride": 16 * row_stride, "row_stride": row_stride,
            "exponent_stride": max(bus, 32 * config.blocks) + bus,
            "has_exponents": bool(rng.random() < 0.7), "window_mask": 1, **fields})
        count = 2 * tokens if rows is None else rows
        contents = rng.integers(0, 256, (count, config.head_dim), np.uint8)
        exponents = rng.integers(0, 255, (count, config.blocks), np.uint8)
        plan = plan_writes(config, placement, self.table, self.windows, contents, exponents)
        good = [burst for burst in plan.bursts if not self._fails(burst.address)]
        store(self.expected, good)
        self.bursts += plan.bursts
        outcome = outcome_of(plan, refused=refused, failed=len(good) < len(plan.bursts))
        self.done.append({"outcome": int(outcome), "beats": plan.beats})
        self.placements.append({name: int(value) for name, value in vars(placement).items()})
        self.items += [{"beat": beat} for beat in stored_beats(config, contents, exponents)]
        self.items.append({"is_close": 1, "refused": int(refused)})
        return plan

    def random_chunk(self):
        """A chunk of any kind, small."""
        rng = self.rng
        tokens = int(rng.choice([1, 2, 7, 16, 17, 33]))
        fields = {"window_mask": int(rng.choice([1, 1, 1, 2, 4, 8, 10, 0]))}
        if rng.random() < 0.1:
            fields["table_index"] = int(rng.choice([self.config.table_pages - 1,
                                                    self.config.table_pages]))
        if rng.random() < 0.1:
            field = str(rng.choice(["key_base", "value_base", "exponent_base"]))
            fields[field] = (1 << self.config.address_bits) - self.config.head_dim
        if rng.random() < 0.1:
            fields["value_base"] = self.quarter + 1
        rows = int(rng.integers(2 * tokens + 1)) if rng.random() < 0.3 else None
        return self.chunk(tokens, rows=rows, refused=bool(rng.random() < 0.2), **fields)

    def other_burst(self):
        """Add a burst of the other master."""
        bus = self.config.bus_bytes
        beats = int(self.rng.integers(1, 9))
        address = 3 * self.quarter + bus * int(self.rng.integers(self.quarter // bus))
        address -= max(0, address % 4096 + bus * beats - 4096)
        contents = self.rng.bytes(bus * beats)
        self.other_requests.append({"address": address, "length": beats - 1})
        self.other_beats += [
            {"data": int.from_bytes(contents[bus * beat:bus * (beat + 1)], "little"),
             "strobe": (1 << bus) - 1, "last": int(beat == beats - 1)} for beat in range(beats)]
        store(self.expected, [Burst(address, contents)])

    def outcomes(self):
        return {Outcome(done["outcome"]) for done in self.done}

    def _fails(self, address):
        return any(low <= address < high for low, high in self.faults)
