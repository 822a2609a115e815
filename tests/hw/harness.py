"""Drive the streams of a unit in the Amaranth simulator.

A unit test says which values go in, how many come out, and compares::

    result = run_stream_test(
        Queue(data.StructLayout({"tag": 4, "value": signed(8)}), depth=4),
        feeds={"i": [{"tag": 1, "value": -3}, {"tag": 2, "value": 7}]},
        sinks={"o": 2},
        seed=1,
        stall_probability=0.3,
    )
    assert result.outputs["o"] == [{"tag": 1, "value": -3}, {"tag": 2, "value": 7}]
    assert result.output_cycles["o"][0] - result.input_cycles["i"][0] == 1
"""

import random
from dataclasses import dataclass, field

from amaranth.hdl import ClockDomain, Module, ValueCastable
from amaranth.lib import data
from amaranth.sim import Simulator

PERIOD = 1e-6  # of the clock, in seconds


class StreamRuleError(AssertionError):
    """A stream of the unit broke a rule: it dropped ``valid``, changed ``payload``, or waited."""


@dataclass
class StreamResult:
    """What came out of the unit, and when.

    Attributes
    ----------
    outputs : dict of str to list
        Items of each sink in order, as `plain` values: int, dict, list or enum member.
    output_cycles : dict of str to list of int
        Cycle of the transfer of each of these items.
    input_cycles : dict of str to list of int
        Cycle of the transfer of each item fed.
    cycles : int
        Cycles run in all, the quiet ones at the end included.
    """

    outputs: dict = field(default_factory=dict)
    output_cycles: dict = field(default_factory=dict)
    input_cycles: dict = field(default_factory=dict)
    cycles: int = 0


def plain(value):
    """Turn a ``data.Const`` into nested dicts and lists; leave anything else as it is."""
    if not isinstance(value, data.Const):
        return value
    layout = data.Layout.cast(value.shape())
    fields = {key: plain(value[key]) for key, _ in layout}
    return list(fields.values()) if isinstance(layout, data.ArrayLayout) else fields


def find_port(dut, path):
    """Return the port that a path such as ``"i"``, ``"i.0"`` or ``"bus.aw"`` names."""
    port = dut
    for part in path.split("."):
        port = port[int(part)] if part.isdecimal() else getattr(port, part)
    return port


def run_stream_test(dut, *, feeds, sinks, seed, stall_probability=0.0, timeout_cycles=10_000,
                    quiet_cycles=16, inputs=None, testbenches=(), vcd_path=None):
    """Feed a unit, drain it, and check the stream rules on every output.

    Each stream stalls on its own: a feed holds ``valid`` low, and a sink holds ``ready`` low, in a
    share ``stall_probability`` of the cycles. Some sinks, drawn from the seed, also wait for
    ``valid`` before they raise ``ready``, so a unit whose ``valid`` waits for ``ready`` times out.
    With a probability of 0 nothing ever stalls and the cycle stamps give latency and throughput.

    Parameters
    ----------
    dut : wiring.Component
        The unit, with its logic in the ``sync`` domain. Each call needs a fresh one.
    feeds : dict of str to iterable
        Values for each input stream, by path (see `find_port`). A value is whatever
        ``ctx.set`` takes for the payload: int, dict (fields left out are zero), list,
        ``data.Const``, enum member.
    sinks : dict of str to (int or None)
        Number of items expected from each output stream. ``None`` takes what comes: the test then
        ends once everything is fed and the unit has been silent for ``quiet_cycles``.
    seed : int
        Seed of the stalls. Printed, so that pytest shows it beside a failure.
    stall_probability : float
        Share of stalled cycles, 0 up to (not including) 1.
    timeout_cycles : int
        Cycles after which the test fails, naming what is outstanding.
    quiet_cycles : int
        Cycles without a transfer at the end, in which no sink may see another item.
    inputs : dict of str to value
        Plain (not stream) inputs to set before the first cycle, by path.
    testbenches : iterable
        More ``async def testbench(ctx)`` to run beside, for ports that are no streams.
    vcd_path : str or Path
        Where to write a waveform.

    Returns
    -------
    StreamResult

    Raises
    ------
    StreamRuleError
        A valid item changed or vanished before it was taken, or more items came than expected.
    TimeoutError
        The unit did not take all feeds and deliver all items in ``timeout_cycles``.
    """
    if not 0 <= stall_probability < 1:
        raise ValueError(f"stall_probability must be in [0, 1), not {stall_probability!r}")
    print(f"stream test of {type(dut).__name__}: seed={seed} stall={stall_probability}")

    rng = random.Random(seed)
    drivers = [_Feed(path, find_port(dut, path), values, rng, stall_probability)
               for path, values in feeds.items()]
    drivers += [_Sink(path, find_port(dut, path), count, rng, stall_probability)
                for path, count in sinks.items()]
    result = StreamResult()

    async def drive(ctx):
        for path, value in (inputs or {}).items():
            ctx.set(find_port(dut, path), value)
        quiet = 0
        while quiet < quiet_cycles:
            if result.cycles >= timeout_cycles:
                outstanding = ", ".join(d.describe() for d in drivers if not d.is_done())
                raise TimeoutError(f"after {timeout_cycles} cycles: {outstanding or 'never quiet'}")
            for driver in drivers:
                driver.drive(ctx)
            signals = [signal for driver in drivers for signal in driver.observed()]
            _, _, *samples = await ctx.tick().sample(*signals)
            moved = False
            for driver in drivers:
                moved |= driver.settle(result.cycles, samples)
            result.cycles += 1
            quiet = 0 if moved or not all(driver.is_done() for driver in drivers) else quiet + 1

    _simulate(dut, drive, testbenches, vcd_path)
    for driver in drivers:
        driver.report(result)
    return result


def run_testbench(dut, testbench, *, beside=(), timeout_cycles=20_000, vcd_path=None):
    """Run an ``async def testbench(ctx)`` to its end: for a unit whose ports answer each other.

    Parameters
    ----------
    dut : wiring.Component
        The unit, with its logic in the ``sync`` domain. Each call needs a fresh one.
    testbench : coroutine function
    beside : iterable
        More of them, which need not end.
    timeout_cycles : int
    vcd_path : str or Path
        Where to write a waveform.

    Raises
    ------
    TimeoutError
        The testbench did not end in ``timeout_cycles``.
    """
    async def watch(ctx):
        await ctx.delay(timeout_cycles * PERIOD)
        raise TimeoutError(f"the testbench did not end in {timeout_cycles} cycles")

    _simulate(dut, testbench, (*beside, watch), vcd_path)


def _simulate(dut, testbench, beside, vcd_path):
    top = Module()
    top.domains.sync = ClockDomain()  # a combinational unit would otherwise have no clock
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(PERIOD)
    simulator.add_testbench(testbench)
    for other in beside:
        simulator.add_testbench(other, background=True)
    if vcd_path is None:
        simulator.run()
    else:
        with simulator.write_vcd(str(vcd_path)):
            simulator.run()


class _Feed:
    """Drives an input stream."""

    def __init__(self, path, port, values, rng, stall_probability):
        self.path = path
        self.port = port
        self.values = list(values)
        self.rng = rng
        self.stall_probability = stall_probability
        self.valid = False
        self.cycles = []

    def is_done(self):
        return len(self.cycles) == len(self.values)

    def describe(self):
        return f"{self.path} took {len(self.cycles)} of {len(self.values)}"

    def drive(self, ctx):
        if not self.valid and not self.is_done() and self.rng.random() >= self.stall_probability:
            ctx.set(self.port.payload, self.values[len(self.cycles)])
            self.valid = True
        ctx.set(self.port.valid, self.valid)

    def observed(self):
        return [self.port.ready]

    def settle(self, cycle, samples):
        ready = samples.pop(0)
        transferred = self.valid and bool(ready)
        if transferred:
            self.cycles.append(cycle)
            self.valid = False
        return transferred

    def report(self, result):
        result.input_cycles[self.path] = self.cycles


class _Sink:
    """Takes the items of an output stream, and checks that they hold until taken."""

    def __init__(self, path, port, count, rng, stall_probability):
        self.path = path
        self.port = port
        self.count = count
        self.rng = rng
        self.stall_probability = stall_probability
        self.waits_for_valid = stall_probability > 0 and rng.random() < 0.25
        self.ready = False
        self.pending = None
        self.items = []
        self.cycles = []

    def is_done(self):
        return self.count is None or len(self.items) >= self.count

    def describe(self):
        return f"{self.path} gave {len(self.items)} of {self.count}"

    def drive(self, ctx):
        willing = self.pending is not None or not self.waits_for_valid
        self.ready = willing and self.rng.random() >= self.stall_probability
        ctx.set(self.port.ready, self.ready)

    def observed(self):
        # Sampled as bits, so that an enum or struct compares even when its value is not a member.
        payload = self.port.payload
        bits = payload.as_value() if isinstance(payload, ValueCastable) else payload
        return [self.port.valid, bits]

    def settle(self, cycle, samples):
        valid, bits = samples.pop(0), samples.pop(0)
        if self.pending is not None and not valid:
            raise StreamRuleError(f"{self.path} dropped valid in cycle {cycle} before a transfer")
        if self.pending is not None and bits != self.pending:
            raise StreamRuleError(f"{self.path} changed its payload in cycle {cycle} before a "
                                  f"transfer, from {self.pending:#x} to {bits:#x}")
        self.pending = bits if valid and not self.ready else None
        if not (valid and self.ready):
            return False
        if self.count is not None and len(self.items) == self.count:
            raise StreamRuleError(f"{self.path} gave an item more than the {self.count} expected, "
                                  f"in cycle {cycle}")
        self.items.append(bits)
        self.cycles.append(cycle)
        return True

    def report(self, result):
        payload = self.port.payload
        shape = payload.shape()
        if isinstance(payload, ValueCastable):
            mask = (1 << len(payload.as_value())) - 1
            self.items = [plain(shape.from_bits(bits & mask)) for bits in self.items]
        result.outputs[self.path] = self.items
        result.output_cycles[self.path] = self.cycles
