"""Where rows lie: the block table and the address arithmetic."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.attention.layouts import context_entry
from hw.config import PAGE_TOKENS, AttentionConfig
from hw.sram import Sram
from hw.stream import Arbiter, Queue

__all__ = ["LookupPort", "Paging", "assign_lookup", "row_lookup", "row_place", "table_entry"]

PAGE_NUMBER_BITS = 24
HALF_PAGE_BITS = PAGE_NUMBER_BITS // 2
SLOT_BITS = (PAGE_TOKENS - 1).bit_length()

# Lookups of a client that may be under way: the length of the pipeline, and the way back.
CREDITS = 8


def table_entry(config: AttentionConfig) -> data.StructLayout:
    """An entry of the block table: the physical page number of one page of a context."""
    return data.StructLayout({"index": config.table_bits, "page": PAGE_NUMBER_BITS})


def row_lookup(config: AttentionConfig) -> data.StructLayout:
    """A row to be found: one slot of one page, and the region that it lies in.

    Its address is ``base + block_table[table_base + page] * page_stride + slot * row_stride``.
    """
    entry = context_entry(config)
    return data.StructLayout({
        "table_base": entry["table_base"].shape,
        "page": config.page_bits,
        "slot": SLOT_BITS,
        "base": config.address_bits,
        "limit": config.address_bits,
        "page_stride": entry["key_page_stride"].shape,
        "row_stride": entry["key_row_stride"].shape,
    })


def row_place(config: AttentionConfig) -> data.StructLayout:
    """The answer to a lookup. A row with a ``fault`` must not be touched."""
    return data.StructLayout({"address": config.address_bits, "fault": 1})


def assign_lookup(config: AttentionConfig, lookup, entry, *, position, is_value, is_summary):
    """Statements that fill a `row_lookup` for a row of a context.

    Parameters
    ----------
    lookup : view of ``row_lookup``
    entry : view of ``context_entry``
    position : Value
        The token's position, or any position of the page whose summary is wanted.
    is_value, is_summary : Value
        Which row: key or value, of the token or of its page.
    """
    def of_region(name):
        token = Mux(is_value, entry[f"value_{name}"], entry[f"key_{name}"])
        return lookup[name].eq(Mux(is_summary, entry[f"summary_{name}"], token))

    token_stride = Mux(is_value, entry.value_row_stride, entry.key_row_stride)
    return [
        lookup.table_base.eq(entry.table_base),
        lookup.page.eq(position >> SLOT_BITS),
        of_region("base"), of_region("limit"), of_region("page_stride"),
        # The summary rows of a page lie one behind the other: slot 0 for keys, 1 for values.
        lookup.slot.eq(Mux(is_summary, is_value, position[:SLOT_BITS])),
        lookup.row_stride.eq(Mux(is_summary, config.row_bytes, token_stride)),
    ]


class LookupPort(wiring.Signature):
    """A client's side of `Paging`.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    lookup : ``Out(stream.Signature(row_lookup(config)))``
        Rows to find.
    place : ``In(stream.Signature(row_place(config)))``
        Where they are, in the same order.
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        super().__init__({
            "lookup": Out(stream.Signature(row_lookup(config))),
            "place": In(stream.Signature(row_place(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config


class Paging(wiring.Component):
    """Block table and address arithmetic, shared by fetch and append.

    A client that does not take its answers holds up only itself.

    **Latency**: 5 cycles from a transfer on ``lookup`` to ``valid`` on ``place``.

    **Throughput**: 1 lookup per cycle, from one client or shared in turn.

    **Numerics**: exact, in enough bits that nothing wraps.

    **Errors**: ``fault`` when the table index is ``table_pages`` or above, when the row ends above
    its region's limit, or when it is not aligned to its size (it might then cross 4 KiB).

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_entry : ``In(stream.Signature(table_entry(config)))``
        Entries to write, always taken. The table keeps its contents through a reset.
    fetch, append : ``In(LookupPort(config))``
        The clients.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Paging config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_entry": In(stream.Signature(table_entry(config))),
            "fetch": In(LookupPort(config)),
            "append": In(LookupPort(config)),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        clients = (self.fetch, self.append)
        m.submodules.arbiter = arbiter = Arbiter(row_lookup(self.config), count=len(clients))
        m.submodules.table = table = Sram(PAGE_NUMBER_BITS, depth=max(2, self.config.table_pages))
        m.d.comb += [
            self.i_entry.ready.eq(1),
            table.write.en.eq(self.i_entry.valid),
            table.write.addr.eq(self.i_entry.payload.index),
            table.write.data.eq(self.i_entry.payload.page),
        ]

        accepted, place = self._find(m, arbiter, table)
        for index, client in enumerate(clients):
            answers = Queue(row_place(self.config), depth=CREDITS)
            m.submodules[f"answers_{index}"] = answers
            # Every lookup under way has a place in the queue, so the pipeline never stops.
            owed = Signal(range(CREDITS + 1))
            asked = Signal()
            contender = arbiter.i[index]
            m.d.comb += [
                contender.payload.eq(client.lookup.payload),
                contender.valid.eq(client.lookup.valid & (owed != CREDITS)),
                asked.eq(contender.valid & contender.ready),
                client.lookup.ready.eq(asked),
                answers.i.payload.eq(place),
                answers.i.valid.eq(accepted[index]),
            ]
            m.d.sync += owed.eq(owed + asked - (answers.o.valid & answers.o.ready))
            wiring.connect(m, answers.o, wiring.flipped(client.place))
        return m

    def _find(self, m, arbiter, table):
        """Build the pipeline; return a valid bit per client, and the answer."""
        lookup = arbiter.o.payload
        row_bits = self.config.row_bytes.bit_length() - 1

        # Cycle 0: ask the table.
        index = Signal(max(len(lookup.table_base), len(lookup.page)) + 1)
        m.d.comb += [
            arbiter.o.ready.eq(1),
            index.eq(lookup.table_base + lookup.page),
            table.read.en.eq(1),
            table.read.addr.eq(index),
        ]
        valid = [delay(m, arbiter.o.valid & (arbiter.grant == client), 4, name=f"valid_{client}")
                 for client in range(2)]
        outside = delay(m, index >= self.config.table_pages, 4, name="outside")
        region = delay(m, lookup, 1, name="region")

        # Cycle 1: the table answers. What does not need the page number is done meanwhile.
        page = delay(m, table.read.data, 1, name="page")
        stride = delay(m, region.page_stride, 1, name="stride")
        base = delay(m, region.base, 1, name="base")
        offset = delay(m, region.slot * region.row_stride, 1, name="offset")
        margin = delay(m, region.limit - Const(self.config.row_bytes), 3, name="margin")

        # Cycle 2: products that fit a multiplier block each.
        halves = (page[:HALF_PAGE_BITS], page[HALF_PAGE_BITS:])
        low_low, high_low = (delay(m, half * stride[:16], 1, name="product") for half in halves)
        low_high, high_high = (delay(m, half * stride[16:], 1, name="product") for half in halves)
        start = delay(m, base + offset, 1, name="start")

        # Cycle 3: their sum. The outer two products do not overlap.
        total = start + Cat(low_low, high_high) + (low_high << 16) + (high_low << HALF_PAGE_BITS)
        address = delay(m, total, 1, name="address")

        # Cycle 4: is it where a row may be?
        place = Signal(row_place(self.config))
        m.d.comb += [
            place.address.eq(address),
            place.fault.eq(outside | (address > margin) | (margin < 0) | address[:row_bits].any()),
        ]
        return valid, place
