"""State collector: turns the heads' final states into STATE and OUTPUT beats."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import ResultKind, float_beat, state_beat
from hw.attention.normaliser import Normaliser
from hw.config import STATE_BITS, AttentionConfig
from hw.stream import Queue

__all__ = ["StateCollector", "collected_beat"]


def collected_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat for the result stream. ``empty`` marks one that only closes its head."""
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

    **Latency**: STATE beats 1 cycle; OUTPUT beats the normaliser's latency plus 1.

    **Throughput**: one beat per cycle; per head, the normaliser's division is exposed only when it
    is longer than the head's beats.

    **Numerics**: ``golden.pipeline`` (state words and float32 output).

    Members
    -------
    i : stream of {want_output, want_state}, one per query that has states
    i_state : per head, stream of ``state_beat``
    o : stream of ``collected_beat``
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        self._wanted = data.StructLayout({"want_output": 1, "want_state": 1})
        super().__init__({
            "i": In(stream.Signature(self._wanted)),
            "i_state": In(stream.Signature(state_beat(config))).array(config.group),
            "o": Out(stream.Signature(collected_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        beats = config.head_dim // config.result_lanes
        words = data.ArrayLayout(32, config.result_lanes)
        m.submodules.intake = intake = Queue(self._wanted, depth=config.query_slots)
        m.submodules.output = output = Queue(self._wanted, depth=config.query_slots)
        m.submodules.normaliser = normaliser = Normaliser(config)
        # Whole heads fit, so that state and output beats of a head never wait for each other.
        m.submodules.floats = floats = Queue(float_beat(config), depth=2 * beats)
        m.submodules.states = states = Queue(words, depth=4 * beats)
        m.submodules.saturations = saturations = Queue(1, depth=2 * config.group)
        wiring.connect(m, normaliser.o, floats.i)

        m.d.comb += [
            intake.i.payload.eq(self.i.payload), output.i.payload.eq(self.i.payload),
            intake.i.valid.eq(self.i.valid & output.i.ready),
            output.i.valid.eq(self.i.valid & intake.i.ready),
            self.i.ready.eq(intake.i.ready & output.i.ready),
        ]
        self._take(m, intake, normaliser, states, saturations)
        self._give(m, output, floats, states, saturations)
        return m

    def _take(self, m, intake, normaliser, states, saturations):
        """Split each state beat between the normaliser and the state words."""
        config = self.config
        head = Signal(range(config.group))
        beat = Signal(state_beat(config))
        valid, advance = Signal(), Signal()
        for number, port in enumerate(self.i_state):
            with m.If(head == number):
                m.d.comb += [beat.eq(port.payload), valid.eq(port.valid), port.ready.eq(advance)]

        wanted = intake.o.payload
        header, half = Signal(init=1), Signal()
        half_lanes = config.result_lanes // 2
        values = Signal(data.ArrayLayout(STATE_BITS, config.result_lanes))
        for lane in range(config.result_lanes):
            m.d.comb += values[lane].eq(beat.values[lane])
        halves = Array(Cat(values[part * half_lanes + lane] for lane in range(half_lanes))
                       for part in range(2))
        words_bits = 32 * config.result_lanes
        header_words = Cat(beat.maximum, Const(0, 0), beat.exponent, Const(0, 24),
                           beat.weight_sum, Const(0, 64 - config.weight_sum_bits))

        state_done = Signal()   # this beat's words are stored
        normal_done = Signal()  # the normaliser has this beat
        saturation_done = Signal()
        m.d.comb += [
            states.i.payload.as_value().eq(Mux(header, header_words, halves[half])[:words_bits]),
            states.i.valid.eq(valid & intake.o.valid & wanted.want_state & ~state_done),
            normaliser.i.payload.eq(beat),
            normaliser.i.valid.eq(valid & intake.o.valid & wanted.want_output & ~normal_done),
            saturations.i.payload.eq(beat.saturated),
            saturations.i.valid.eq(valid & intake.o.valid & beat.last & ~saturation_done),
        ]
        with m.If(states.i.valid & states.i.ready):
            m.d.sync += header.eq(0)
            with m.If(~header):
                m.d.sync += [half.eq(~half), state_done.eq(half)]
        with m.If(normaliser.i.valid & normaliser.i.ready):
            m.d.sync += normal_done.eq(1)
        with m.If(saturations.i.valid & saturations.i.ready):
            m.d.sync += saturation_done.eq(1)
        state_ready = ~wanted.want_state | state_done | (states.i.ready & ~header & half)
        normal_ready = ~wanted.want_output | normal_done | normaliser.i.ready
        saturation_ready = ~beat.last | saturation_done | saturations.i.ready
        m.d.comb += advance.eq(intake.o.valid & state_ready & normal_ready & saturation_ready)
        with m.If(valid & advance):
            m.d.sync += [state_done.eq(0), normal_done.eq(0), saturation_done.eq(0)]
            with m.If(beat.last):
                m.d.sync += [header.eq(1), half.eq(0)]
                last_head = head == config.group - 1
                m.d.sync += head.eq(Mux(last_head, 0, head + 1))
                m.d.comb += intake.o.ready.eq(last_head)

    def _give(self, m, output, floats, states, saturations):
        """Per head: state words, then floats, then the note that the head is done."""
        config = self.config
        beats = config.head_dim // config.result_lanes
        head = Signal(range(config.group))
        count = Signal(range(2 * beats + 1))
        wanted = output.o.payload
        out = self.o.payload
        in_output = Signal()
        only_note = ~wanted.want_state & ~wanted.want_output
        with m.If(output.o.valid):
            with m.If(only_note):
                m.d.comb += [
                    self.o.valid.eq(saturations.o.valid),
                    out.empty.eq(1), out.last.eq(1), out.last_of_head.eq(1),
                ]
            with m.Elif(wanted.want_state & ~in_output):
                m.d.comb += [
                    self.o.valid.eq(states.o.valid & (saturations.o.valid | ~out.last_of_head)),
                    out.kind.eq(ResultKind.STATE),
                    out.words.eq(states.o.payload),
                    out.last.eq(count == 2 * beats),
                    out.last_of_head.eq(out.last & ~wanted.want_output),
                    states.o.ready.eq(self.o.valid & self.o.ready),
                ]
            with m.Else():
                m.d.comb += [
                    self.o.valid.eq(floats.o.valid & (saturations.o.valid | ~out.last_of_head)),
                    out.kind.eq(ResultKind.OUTPUT),
                    out.words.eq(floats.o.payload.values),
                    out.last.eq(floats.o.payload.last),
                    out.last_of_head.eq(out.last),
                    floats.o.ready.eq(self.o.valid & self.o.ready),
                ]
        m.d.comb += out.saturated.eq(saturations.o.valid & saturations.o.payload & out.last_of_head)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += count.eq(Mux(out.last, 0, count + 1))
            with m.If(out.last):
                m.d.sync += in_output.eq((out.kind == ResultKind.STATE) & wanted.want_output)
            with m.If(out.last_of_head):
                last_head = head == config.group - 1
                m.d.sync += head.eq(Mux(last_head, 0, head + 1))
                m.d.comb += [saturations.o.ready.eq(1), output.o.ready.eq(last_head)]
