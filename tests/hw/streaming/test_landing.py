from collections import Counter

import pytest

from hw.config import StreamingConfig
from hw.streaming.landing import Landing
from hw.streaming.layouts import Outcome, Reason
from tests.hw.streaming.landing_bench import Frame, Landings, Rates

FAST = {"header": 1, "row": 1, "verdict": 1, "place": 1, "stored": 1, "close": 1, "done": 1,
        "report": 1, "zombie": 0}


def make_config(**fields):
    return StreamingConfig(**{"head_dim": 64, "bus_bytes": 16, "chunks": 16, "outstanding": 4,
                              **fields})


def good(number, rows=3, reason=Reason.NONE, outcome=Outcome.DONE):
    return Frame(number, reason, is_known=True, rows=rows, outcome=outcome)


def fates(frames):
    """How often each thing happened to a frame of rows."""
    found = Counter()
    for frame in frames:
        if frame.has_rows:
            found[frame.reason, frame.told] += not frame.is_zombie
            found["dropped without a placement"] += not frame.is_placed
            if frame.is_placed and frame.is_zombie:
                found["cut"] += frame.closed_cycle != frame.verdict_cycle
                found["given up when placed"] += frame.placed_cycle >= frame.zombie_since
                found["given up after its verdict"] += frame.zombie_since > frame.verdict_cycle
                found["all rows passed"] += not frame.was_cut
        else:
            found[frame.reason] += 1
    return found


RATES = {
    "usual": Rates(),
    "fast": Rates(**{**FAST, "zombie": 0.005}),
    "slow writer": Rates(header=1, row=1, place=0.05, stored=0.2, close=0.1, done=0.03),
    "slow link": Rates(header=0.05, row=0.1, verdict=0.1),
    "late outcomes": Rates(**{**FAST, "done": 0.02, "zombie": 0.002}),
    "slow reports": Rates(**{**FAST, "report": 0.03, "zombie": 0.002}),
}


@pytest.mark.parametrize("bus_bytes", [16, 64])   # rows of 4 beats, and of 1
@pytest.mark.parametrize("name", [
    "usual", *(pytest.param(name, marks=pytest.mark.regress) for name in RATES if name != "usual")])
def test_frames_at_random(name, bus_bytes):
    Landings(make_config(bus_bytes=bus_bytes), seed=len(name), rates=RATES[name], frames=60).run()


def test_everything_happens_to_some_frame():
    rates = Rates(**{**FAST, "row": 0.7, "place": 0.2, "done": 0.2, "zombie": 0.006})
    frames = Landings(make_config(), seed=1, rates=rates, frames=300).run().frames
    found = fates(frames)
    print(found)
    assert all(found[reason] for reason in Reason
               if reason.value in (1, 2, 3, 4, 5, 6, 7, 8))
    assert all(found[reason, Outcome.REFUSED] for reason in Reason if reason.value >= 9)
    assert all(found[Reason.NONE, outcome]
               for outcome in (Outcome.DONE, Outcome.WINDOW, Outcome.WRITE))
    assert all(found[fate] for fate in (
        "dropped without a placement", "cut", "given up when placed", "given up after its verdict",
        "all rows passed"))


def test_cycles():
    frames = [good(0), good(1, rows=1), good(2, rows=6)]
    Landings(make_config(), seed=1, rates=Rates(**FAST), frames=frames).run()
    # The third waits until the first is through.
    assert [frame.offered_cycle for frame in frames] == [
        frames[0].begun_cycle + 2, frames[1].begun_cycle + 2, frames[0].verdict_cycle + 2]
    for frame in frames:
        assert frame.placed_cycle == frame.offered_cycle
        assert frame.started == [frame.started[0] + 4 * row for row in range(frame.rows)]
        # The verdict is offered one cycle after the last beat was taken, which then leaves the
        # register; the writer tells its outcome a cycle after the close.
        assert frame.closed_cycle == frame.verdict_cycle == frame.started[-1] + 5
        assert frame.done_cycle == frame.verdict_cycle + 1
        assert frame.ended_cycle == frame.done_cycle + 1
    assert frames[0].started[0] == frames[0].placed_cycle + 1
    for frame, following in zip(frames, frames[1:], strict=False):
        assert following.placed_cycle < frame.verdict_cycle
        assert following.started[0] == frame.verdict_cycle + 1


def test_an_outcome_long_before_or_behind_the_verdict():
    """The frame ends a cycle after the later of the two."""
    def hold_outcome(bench):
        bench.rates.done = float(bench.cycle > 60)

    def hold_verdict(bench):
        frame = bench.frames[0]
        bench.rates.verdict = float(bench.cycle > 60)
        if frame.beats == 4:
            bench.give_up(frame)

    late = good(0)
    Landings(make_config(), seed=1, rates=Rates(**FAST), frames=[late], script=hold_outcome).run()
    assert late.verdict_cycle < 30 < late.done_cycle == late.ended_cycle - 1
    early = good(0)
    Landings(make_config(), seed=1, rates=Rates(**FAST), frames=[early], script=hold_verdict).run()
    assert early.was_cut
    assert early.done_cycle < 30 < early.verdict_cycle == early.ended_cycle - 1


@pytest.mark.parametrize("beats", range(9))
def test_given_up_at_each_beat(beats):
    """A row that has begun passes as a whole, no other begins, and the cut waits for no more."""
    def script(bench):
        frame = bench.frames[0]
        if frame.beats == beats and frame.is_placed and not frame.is_zombie:
            bench.give_up(frame)
            bench.rates.row = 0    # rows that have not begun do not come
        if bench.cycle > 80:
            bench.rates.row = 1

    frame = good(0, rows=5)
    Landings(make_config(), seed=2, rates=Rates(**FAST), frames=[frame, good(1)],
             script=script).run()
    assert frame.was_cut
    assert frame.stored == -(-beats // 4) * 4
    under_way = frame.stored - beats    # beats of the row that had begun
    # The register is empty a cycle after its last beat.
    delay = under_way + 1 if under_way else max(1, 1 if beats == 0 else 2)
    assert frame.closed_cycle <= frame.zombie_since + delay + 1
    assert frame.closed_cycle < 60 < frame.verdict_cycle


def test_a_zombie_is_cut_while_reports_are_stalled():
    frames = [Frame(number, Reason.CHUNK, is_known=False) for number in range(5)]
    frames += [good(5), good(6)]

    def script(bench):
        bench.rates.report = float(bench.cycle > 150)
        if frames[5].is_placed and bench.cycle == 60:
            bench.give_up(frames[5])
            bench.rates.row = 0
        if bench.cycle == 149:
            assert frames[4].verdict_cycle is None
            assert frames[5].done_cycle is not None
            bench.rates.row = 1

    Landings(make_config(), seed=3, rates=Rates(**{**FAST, "row": 0}), frames=frames,
             script=script).run()
    assert frames[5].was_cut


def test_bad_config():
    with pytest.raises(TypeError, match="Landing config must be a StreamingConfig, not 3"):
        Landing(3)
