"""Plans the bursts of a page's rows, and checks that they may be written."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.config import PAGE_TOKENS, StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import windows
from hw.streaming.page_finder import page_place

__all__ = ["LENGTH_BITS", "RowPlan", "planned_burst"]

BOUNDARY_BYTES = 4096  # no AXI burst crosses a multiple of it
LENGTH_BITS = 5        # a row, or the exponents of a page, has up to 32 beats
AHEAD = 4              # bursts planned ahead of their data


class _Step(enum.Enum, shape=2):
    KEY = 0
    VALUE = 1
    EXPONENTS = 2


def _marks():
    """What is to be known of a row, or of a page's exponents, and of each of its bursts."""
    return data.StructLayout({
        "is_exponents": 1,
        "slots_less_one": exact_log2(PAGE_TOKENS),   # tokens of the page, less one
        "exponents_follow": 1,   # next, without another row before
        "last": 1,               # of the chunk
    })


def planned_burst(config: StreamingConfig) -> data.StructLayout:
    """A burst to write: of a row, or of a page's exponents. One that is not ``allowed`` must not
    be written, and its beats are dropped. A row that crosses 4 KiB is two bursts."""
    return data.StructLayout({
        "address": config.address_bits,
        "length": LENGTH_BITS,   # beats - 1
        "allowed": 1,
        **{name: field.shape for name, field in _marks()},
    })


class RowPlan(wiring.Component):
    """Plans ahead what is written where, in the order in which rows come.

    Row K, then row V of each token; after a page's last row its exponents, if they are wanted:
    those of the tokens that it has.

    A region may be written if it lies in one window granted as a whole, at a multiple of the bus's
    width; it is 32 * blocks bytes for exponents, however many tokens there are.

    **Latency**: 4 cycles from a page to its first burst.

    **Throughput**: a burst per cycle, also from page to page; up to 4 bursts wait.

    **Numerics**: ``golden.streaming.writer.plan_writes``.

    **Errors**: a burst that is not ``allowed``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(page_place(config)))``
        Pages.
    windows : ``In(windows(config))``
        Holds still while a chunk that uses it is under way.
    o : ``Out(stream.Signature(planned_burst(config)))``
        Bursts.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("RowPlan", config)
        super().__init__({
            "i": In(stream.Signature(page_place(config))),
            "windows": In(windows(config)),
            "o": Out(stream.Signature(planned_burst(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.planned = planned = Queue(planned_burst(self.config), depth=AHEAD)
        wiring.connect(m, planned.o, wiring.flipped(self.o))
        region = self._walk(m)
        measured = self._measure(m, region)
        self._check(m, measured, planned.i)
        return m

    def _region(self):
        """A row, or the exponents of a page, before it is checked."""
        place = page_place(self.config)
        return data.StructLayout({
            **{name: field.shape for name, field in data.Layout.cast(place["key"].shape)},
            **{name: field.shape for name, field in _marks()},
            "window_mask": place["window_mask"].shape,
        })

    def _walk(self, m):
        """The regions of a page, one per cycle; addresses go on by the stride."""
        page, busy = Signal(page_place(self.config)), Signal()
        step, slot = Signal(_Step), Signal(exact_log2(PAGE_TOKENS))
        region = stream.Signature(self._region()).create()
        ends_rows, ends = Signal(), Signal()
        out = region.payload
        m.d.comb += [
            ends_rows.eq((step == _Step.VALUE) & (slot == page.slots_less_one)),
            ends.eq((ends_rows & ~page.has_exponents) | (step == _Step.EXPONENTS)),
            region.valid.eq(busy),
            out.is_exponents.eq(step == _Step.EXPONENTS),
            out.slots_less_one.eq(page.slots_less_one),
            out.exponents_follow.eq(ends_rows & page.has_exponents),
            out.last.eq(ends & page.last),
            out.window_mask.eq(page.window_mask),
            self.i.ready.eq(~busy | (ends & region.ready)),
        ]
        for name, kind in (("key", _Step.KEY), ("value", _Step.VALUE),
                           ("exponent", _Step.EXPONENTS)):
            with m.If(step == kind):
                m.d.comb += [out[part].eq(page[name][part]) for part in ("address", "fault")]
        with m.If(self.i.ready):
            m.d.sync += [
                page.eq(self.i.payload), busy.eq(self.i.valid), step.eq(_Step.KEY), slot.eq(0)]
        with m.Elif(region.ready):
            with m.If(step == _Step.KEY):
                m.d.sync += step.eq(_Step.VALUE)
            with m.Else():
                m.d.sync += [
                    step.eq(Mux(ends_rows, _Step.EXPONENTS, _Step.KEY)),
                    slot.eq(slot + 1),
                    *_advance(page.key, page.row_stride),
                    *_advance(page.value, page.row_stride),
                ]
        return region

    def _measure(self, m, region):
        """Find the last byte, and the beats."""
        config = self.config
        bus_log2, address_bits = exact_log2(config.bus_bytes), config.address_bits
        measured = stream.Signature(data.StructLayout({
            "region": self._region(), "last_byte": address_bits, "length": LENGTH_BITS})).create()
        given, out = region.payload, measured.payload
        token_bytes = 2 * config.blocks  # of exponents
        size = Mux(given.is_exponents, PAGE_TOKENS * token_bytes, config.head_dim)
        end = given.address + (size - 1)
        last_exponent = (given.slots_less_one << exact_log2(token_bytes)) + (token_bytes - 1)
        m.d.comb += region.ready.eq(~measured.valid | measured.ready)
        with m.If(region.ready):
            m.d.sync += [
                measured.valid.eq(region.valid),
                out.region.eq(given),
                out.region.fault.eq(
                    given.fault | end[address_bits:].any() | given.address[:bus_log2].any()),
                out.last_byte.eq(end),
                out.length.eq(Mux(given.is_exponents, last_exponent >> bus_log2,
                                  config.row_beats - 1)),
            ]
        return measured

    def _check(self, m, measured, planned):
        """Compare with the windows, and see what crosses 4 KiB."""
        config, given = self.config, measured.payload
        bus_log2, boundary_log2 = exact_log2(config.bus_bytes), exact_log2(BOUNDARY_BYTES)
        checked = stream.Signature(data.StructLayout({
            "region": self._region(), "fits": config.windows, "length": LENGTH_BITS,
            "to_boundary": LENGTH_BITS, "is_cut": 1})).create()
        out = checked.payload
        to_boundary = ~given.region.address[bus_log2:boundary_log2]  # beats, less one
        m.d.comb += measured.ready.eq(~checked.valid | checked.ready)
        with m.If(measured.ready):
            m.d.sync += [
                checked.valid.eq(measured.valid),
                out.region.eq(given.region),
                out.length.eq(given.length),
                out.to_boundary.eq(to_boundary),
                out.is_cut.eq(given.length > to_boundary),
                out.fits.eq(Cat(
                    window.valid & granted & (window.base <= given.region.address)
                    & (given.last_byte <= window.last)
                    for window, granted in zip(self.windows, given.region.window_mask,
                                               strict=True))),
            ]
        self._cut(m, checked, planned)

    def _cut(self, m, checked, planned):
        """Make bursts of a region, in two cycles if it crosses 4 KiB."""
        given, out = checked.payload, planned.payload
        boundary_log2 = exact_log2(BOUNDARY_BYTES)
        second, is_last = Signal(), Signal()
        m.d.comb += [
            is_last.eq(second | ~given.is_cut),
            planned.valid.eq(checked.valid),
            checked.ready.eq(planned.ready & is_last),
            out.allowed.eq(given.fits.any() & ~given.region.fault),
            out.address.eq(given.region.address),
            out.length.eq(Mux(is_last, given.length, given.to_boundary)),
            *(out[name].eq(given.region[name]) for name, _ in _marks()),
        ]
        with m.If(second):
            m.d.comb += [
                out.address.eq(Cat(Const(0, boundary_log2),
                                   given.region.address[boundary_log2:] + 1)),
                out.length.eq(given.length - given.to_boundary - 1),
            ]
        with m.If(~is_last):
            m.d.comb += [
                out.exponents_follow.eq(given.region.is_exponents),  # the rest of them
                out.last.eq(0),
            ]
        with m.If(planned.valid & planned.ready):
            m.d.sync += second.eq(~is_last)


def _advance(place, stride):
    """Statements that move a place on, and note when it leaves the address space."""
    total = place.address + stride
    return [place.address.eq(total), place.fault.eq(place.fault | total[-1])]
