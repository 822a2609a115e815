"""Words of a page to the lanes that they belong to."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.huffman.geometry import LANES, WORD_BITS, check_coded, largest_bits

__all__ = ["WordRouter", "page_word"]

# The words that come while a directory is read wait here.
DEPTH = 16


def page_word() -> data.StructLayout:
    """A word behind the directory of a page; ``last`` of the page."""
    return data.StructLayout({"data": WORD_BITS, "last": 1})


class WordRouter(wiring.Component):
    """Writes the words of a page to the lanes, one sub-stream after the other.

    **Latency**: 2 cycles from a word to its write.

    **Throughput**: a word per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    opens : ``In(1)``
        The word that comes next is the first of a page; nothing of the one before is left.
    i : ``In(stream.Signature(page_word()))``
        Words of a page, of which the last ones may be padding.
    may_route : ``In(1)``
        ``ends`` is that of the page, and ``closes`` may follow in the next cycle.
    ends : ``In(ArrayLayout(..., 8))``
        Word behind each sub-stream.
    discards : ``In(1)``
        Drop what has come of the page. No word may come, until ``is_empty``.
    is_empty : ``Out(1)``
        No word waits.
    write_enable : ``Out(8)``
        Write a word to this lane.
    word : ``Out(64)``
    closes : ``Out(1)``
        The last word of the page is written, if it is no padding.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("WordRouter", config)
        most_words = LANES * largest_bits(config.head_dim) // WORD_BITS
        super().__init__({
            "opens": In(1),
            "i": In(stream.Signature(page_word())),
            "may_route": In(1),
            "ends": In(data.ArrayLayout(range(most_words + 1), LANES)),
            "discards": In(1),
            "is_empty": Out(1),
            "write_enable": Out(LANES),
            "word": Out(WORD_BITS),
            "closes": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.waiting = waiting = Queue(page_word(), depth=DEPTH)
        wiring.connect(m, wiring.flipped(self.i), waiting.i)
        place, routes = Signal.like(self.ends[0]), Signal()
        below = Cat(place < end for end in self.ends)
        m.d.comb += [
            routes.eq(waiting.o.valid & self.may_route & ~self.discards),
            waiting.o.ready.eq(self.may_route | self.discards),
            self.is_empty.eq(~waiting.o.valid),
        ]
        m.d.sync += [
            place.eq(Mux(self.opens, 0, place + routes)),
            self.word.eq(waiting.o.payload.data),
            # Ends do not decrease: the word is below its own and those that follow.
            self.write_enable.eq(Mux(routes, below & ~(below << 1), 0)),
            self.closes.eq(routes & waiting.o.payload.last),
        ]
        return m
