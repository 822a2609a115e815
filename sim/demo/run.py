"""Carry out the jobs of a demo in processes side by side, and measure what comes back."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sim.attention.session import build_model
from sim.attention.twin import expected_results
from sim.demo.measure import Mismatch, measure

__all__ = ["Outcome", "simulate"]


@dataclass(kw_only=True)
class Outcome:
    """What a demo gave.

    Members
    -------
    figures : list of Figures
        Of the heads whose results are right, in the order of the trace.
    mismatches : list of str
        How the others differ.
    first_results : list
        Of the first job's operations.
    """

    figures: list = field(default_factory=list)
    mismatches: list = field(default_factory=list)
    first_results: list = field(default_factory=list)


def simulate(jobs, console, *, workers):
    """Run jobs with their golden twins, showing progress.

    Raises
    ------
    SimulationError
        The model does not build, or the unit broke a protocol rule or did not finish.
    """
    outcome = Outcome()
    measured = {}
    session = jobs[0].session
    with _Progress(console, sum(len(job.heads) for job in jobs)) as progress:
        build_model(session.config, memory_size=session.memory_size)
        progress.start()
        for number, results, twins in _run_all(jobs, workers):
            job = jobs[number]
            if number == 0:
                outcome.first_results = results
            for index, head in enumerate(job.heads):
                try:
                    measured[number, index] = measure(job, index, results, twins)
                except Mismatch as error:
                    outcome.mismatches.append(str(error))
                progress.advance(head.label)
    outcome.figures = [measured[key] for key in sorted(measured)]
    return outcome


def _run_all(jobs, workers):
    """Yield (job number, results, golden results) of each job as it ends."""
    # Not forked: the progress display has a thread, which does not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = {pool.submit(_run, job.session, job.timeout_cycles): number
                   for number, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], *future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _run(session, timeout_cycles):
    results = session.run(timeout_cycles=timeout_cycles)
    return results, expected_results(session.config, session.operations)


class _Progress:
    """A bar on a terminal; a line per head elsewhere."""

    def __init__(self, console, heads):
        self._console = console
        self._heads = heads
        self._ended = 0
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), console=console, transient=True,
            disable=not console.is_terminal)
        self._task = self._bar.add_task("building the unit (once)", total=None)

    def __enter__(self):
        if not self._console.is_terminal:
            self._console.print("building the unit, unless it was built before")
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def start(self):
        self._bar.reset(self._task, description="simulating heads", total=self._heads)

    def advance(self, label):
        self._ended += 1
        self._bar.advance(self._task)
        if not self._console.is_terminal:
            self._console.print(f"simulated {label} ({self._ended} of {self._heads})")
