"""State collector: turns the heads' final states into STATE and OUTPUT beats."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import ResultKind, float_beat, state_beat
from hw.attention.normaliser import Normaliser
from hw.attention.state_words import StateWords, word_beat
from hw.config import AttentionConfig
from hw.stream import Fork, Queue

__all__ = ["StateCollector", "collected_beat", "wanted_beats"]


def wanted_beats(_config: AttentionConfig) -> data.StructLayout:
    """What a query wants of its states."""
    return data.StructLayout({"want_output": 1, "want_state": 1})


def collected_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat for the result stream.

    ``last`` closes the run of its kind, ``last_of_head`` its head; with it, ``saturated`` tells of
    the head. ``empty``: the beat only closes its head, of a query that wants nothing.
    """
    return data.StructLayout({
        "kind": ResultKind,
        "words": data.ArrayLayout(32, config.result_lanes),
        "last": 1,
        "last_of_head": 1,
        "saturated": 1,
        "empty": 1,
    })


class StateCollector(wiring.Component):
    """Takes the heads' states in turn; per head gives STATE beats if wanted, then OUTPUT beats.

    The normaliser works on head h+1 while the OUTPUT beats of head h leave.

    **Latency**: from a head's first state beat 1 cycle to its first STATE beat, and 1 more than the
    normaliser's to its first OUTPUT beat where no STATE beat stands before it.

    **Throughput**: one beat per cycle; a state beat is two STATE beats. A head's division takes
    place while the beats of the head before leave, and is exposed as far as these are fewer.

    **Numerics**: ``golden.pipeline``: state words, and ``golden.pipeline.normalise``.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream)`` of ``wanted_beats``, one per query that has states
    i_state : per head, ``In(stream)`` of ``state_beat``
    o : ``Out(stream)`` of ``collected_beat``
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"StateCollector config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(wanted_beats(config))),
            "i_state": In(stream.Signature(state_beat(config))).array(config.group),
            "o": Out(stream.Signature(collected_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, wanted = self.config, wanted_beats(self.config)
        m.submodules.queries = queries = Fork(wanted, count=2)
        m.submodules.taking = taking = Queue(wanted, depth=config.query_slots)
        m.submodules.giving = giving = Queue(wanted, depth=config.query_slots)
        m.submodules.split = split = Fork(state_beat(config), count=3)
        m.submodules.normaliser = normaliser = Normaliser(config)
        m.submodules.spell = spell = StateWords(config)
        # All floats of a head fit: they come while its STATE beats, which go first, still leave.
        m.submodules.floats = floats = Queue(
            float_beat(config), depth=config.head_dim // config.result_lanes)
        m.submodules.words = words = Queue(word_beat(config), depth=2)
        m.submodules.saturations = saturations = Queue(1, depth=4)

        wiring.connect(m, wiring.flipped(self.i), queries.i)
        wiring.connect(m, queries.o[0], taking.i)
        wiring.connect(m, queries.o[1], giving.i)
        wiring.connect(m, normaliser.o, floats.i)
        wiring.connect(m, spell.o, words.i)
        self._take(m, taking, split)
        self._pass(m, split.o[0], normaliser.i, when=taking.o.payload.want_output)
        self._pass(m, split.o[1], spell.i, when=taking.o.payload.want_state)
        m.d.comb += [
            saturations.i.payload.eq(split.o[2].payload.saturated),
            saturations.i.valid.eq(split.o[2].valid & split.o[2].payload.last),
            split.o[2].ready.eq(saturations.i.ready | ~split.o[2].payload.last),
        ]
        self._give(m, giving, words, floats, saturations)
        return m

    def _next_head(self, m, head):
        """Statement that moves on to the next head, and whether the one at hand is the last."""
        is_last = head == self.config.group - 1
        m.d.sync += head.eq(Mux(is_last, 0, head + 1))
        return is_last

    def _take(self, m, taking, split):
        """The states of the heads, one head after the other, of the query at hand."""
        head = Signal(range(self.config.group))
        for number, port in enumerate(self.i_state):
            with m.If(head == number):
                m.d.comb += [
                    split.i.payload.eq(port.payload),
                    split.i.valid.eq(port.valid & taking.o.valid),
                    port.ready.eq(split.i.ready & taking.o.valid),
                ]
        with m.If(split.i.valid & split.i.ready & split.i.payload.last):
            m.d.comb += taking.o.ready.eq(self._next_head(m, head))

    def _pass(self, m, source, target, *, when):
        """Connect two streams; items that are not wanted are dropped."""
        m.d.comb += [
            target.payload.eq(source.payload),
            target.valid.eq(source.valid & when),
            source.ready.eq(target.ready | ~when),
        ]

    def _give(self, m, giving, words, floats, saturations):
        """Per head: state words, then floats; the last beat brings the head's saturation."""
        out, wanted = self.o.payload, giving.o.payload
        head, stated = Signal(range(self.config.group)), Signal()
        is_there, moves = Signal(), Signal()
        with m.If(wanted.want_state & ~stated):
            m.d.comb += [
                is_there.eq(words.o.valid),
                words.o.ready.eq(moves),
                out.kind.eq(ResultKind.STATE),
                out.words.eq(words.o.payload.words),
                out.last.eq(words.o.payload.last),
                out.last_of_head.eq(out.last & ~wanted.want_output),
            ]
        with m.Elif(wanted.want_output):
            m.d.comb += [
                is_there.eq(floats.o.valid),
                floats.o.ready.eq(moves),
                out.kind.eq(ResultKind.OUTPUT),
                out.words.eq(floats.o.payload.values),
                out.last.eq(floats.o.payload.last),
                out.last_of_head.eq(out.last),
            ]
        with m.Else():
            m.d.comb += [is_there.eq(1), out.empty.eq(1), out.last.eq(1), out.last_of_head.eq(1)]
        m.d.comb += [
            self.o.valid.eq(giving.o.valid & is_there
                            & (saturations.o.valid | ~out.last_of_head)),
            moves.eq(self.o.valid & self.o.ready),
            out.saturated.eq(out.last_of_head & saturations.o.payload),
            saturations.o.ready.eq(moves & out.last_of_head),
        ]
        with m.If(moves & out.last):
            m.d.sync += stated.eq(~out.last_of_head)
        with m.If(moves & out.last_of_head):
            m.d.comb += giving.o.ready.eq(self._next_head(m, head))
