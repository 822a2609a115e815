"""A job for the route scheduler: what is loaded, and what golden decides."""

from dataclasses import dataclass

from golden.streaming.costs import Costs
from golden.streaming.policy import NEVER, Event, Policy, Record
from golden.streaming.runtime import Scheduler
from golden.streaming.schedule import Schedule

__all__ = ["Job"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A schedule with all that is predicted and demanded of it."""

    schedule: Schedule
    costs: Costs
    policy: Policy
    deadlines: list | None = None

    def scheduler(self):
        """A new golden scheduler."""
        return Scheduler(self.schedule, self.costs, self.policy, self.deadlines)

    def policy_fields(self):
        """Values of ``hw.streaming.layouts.schedule_policy``."""
        grid = self.schedule.grid
        return {
            "blocks": grid.blocks, "layers": grid.layers, "heads": grid.heads,
            "stages": self.schedule.stages, "rule": int(self.schedule.rule),
            **{name: int(value) for name, value in vars(self.policy).items()},
        }

    def entries(self, rng):
        """Values of ``hw.streaming.layouts.schedule_entry``, the lists mixed at random."""
        stage_of = self.schedule.stage_of()
        lists = [list(self.schedule.stream_list), list(self.schedule.compute_list)]
        entries = []
        while lists[0] or lists[1]:
            route = rng.choice([route for route in (0, 1) if lists[route]])
            chunk = lists[route].pop(0)
            entries.append({
                "chunk": chunk, "route": route, "stage": stage_of[chunk],
                "stream_ticks": int(self.costs.stream[chunk]),
                "compute_ticks": int(self.costs.compute[chunk]),
                "deadline": NEVER if self.deadlines is None else self.deadlines[chunk],
            })
        return entries

    def check(self, events, log):
        """Replay what the hardware was told, and compare all that it decided.

        Parameters
        ----------
        events, log : list of dict
            Values of ``event_record`` and ``record``.

        Returns
        -------
        Scheduler
        """
        golden = self.scheduler()
        log = [Record(item["time"], item["decision"], item["chunk"]) for item in log]
        seen = 0
        for event in events:
            golden.react(event["time"], Event(event["event"]), event["chunk"])
            expected = golden.log[seen:]
            found = log[seen:len(golden.log)]
            assert found == expected, f"{event}: {expected}, not {found}"
            seen = len(golden.log)
        assert len(log) == seen, f"decided without an event: {log[seen:]}"
        return golden
