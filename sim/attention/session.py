"""A session: a list of operations carried out on the unit in simulation, with all their results."""

import pickle
import tempfile

from hw.attention.unit import AttentionUnit
from hw.config import AttentionConfig
from sim.build import build, default_seed, run
from sim.memory import MemoryBench, memory_source
from sim.tools import BUILD

__all__ = ["Session", "build_model"]

BENCH = "sim.attention.bench_session"


def build_model(config: AttentionConfig, *, memory_size, waves=False):
    """Build (or find) the unit on a memory of ``memory_size`` bytes."""
    bench = MemoryBench(AttentionUnit(config), size_bytes=memory_size, outstanding=256)
    return build(bench, name="attention_bench", sources=[memory_source()], waves=waves)


class Session:
    """Operations for one simulation, in order.

    ::

        session = Session(PRESETS["tiny"].attention, memory_size=1 << 20)
        session.add(Weights(...), Table(...), Context(...), Append(...))
        session.add(Wait(), Query(...))
        results = session.run()

    ``run`` returns a list with one entry per operation: `Status` for Weights, Append and
    Raw, `QueryResult` for Query, the fault code for Context, a dict for Counters, None for the
    others (and for commands cut off by a Reset).

    Parameters
    ----------
    config : AttentionConfig
    memory_size : int
        Bytes of the simulated memory, a power of two.
    idle_probability, stall_probability : float
        See `AttentionDriver`.
    """

    def __init__(self, config: AttentionConfig, *, memory_size, idle_probability=0.0,
                 stall_probability=0.0):
        self.config = config
        self.memory_size = memory_size
        self.idle_probability = idle_probability
        self.stall_probability = stall_probability
        self.operations = []

    def add(self, *operations):
        """Add operations, and return the index of the last."""
        self.operations += operations
        return len(self.operations) - 1

    def run(self, *, seed=None, waves=False, timeout_cycles=20_000_000):
        """Carry all out and return their results.

        Raises
        ------
        SimulationError
            The unit broke a protocol rule or did not finish in ``timeout_cycles``.
        """
        seed = default_seed() if seed is None else seed
        model = build_model(self.config, memory_size=self.memory_size, waves=waves)
        return self.run_on(model, bench=BENCH, seed=seed, timeout_cycles=timeout_cycles)

    def run_on(self, model, *, bench, seed, timeout_cycles=20_000_000):
        """Carry all out on another model of the unit, by a cocotb bench that takes the same job."""
        BUILD.mkdir(parents=True, exist_ok=True)
        job = {
            "config": self.config, "operations": self.operations,
            "idle_probability": self.idle_probability,
            "stall_probability": self.stall_probability, "timeout_cycles": timeout_cycles,
        }
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="session-") as folder:
            path = f"{folder}/job.pickle"
            with open(path, "wb") as file:
                pickle.dump(job, file)
            run(model, bench=bench, seed=seed, arguments={"job": path}, quiet=True)
            with open(f"{folder}/job.results", "rb") as file:
                return pickle.load(file)
