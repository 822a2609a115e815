"""Runs jobs on the route scheduler and notes how long they took: see `schedule_error`."""

import json
from pathlib import Path

import cocotb

from golden.streaming.simulate import simulate
from sim.streaming.schedule_error import TICK_LOG2, error_jobs
from sim.streaming.schedule_host import Surroundings
from sim.testbench import arguments, start


class Sides:
    """Link and device as ``golden.streaming.simulate`` drives them."""

    def __init__(self, sides):
        self.sides = sides

    def request(self, now, route, chunk):
        answer = self.sides[route].request(now, chunk)
        return [(answer.time, answer.good)]


@cocotb.test(timeout_time=60, timeout_unit="sec")
async def makespans(dut):
    await start(dut)
    around = Surroundings(dut)
    runs = []
    for job, sides in error_jobs(arguments()["jobs"], arguments()["most"]):
        predicted = simulate(job.scheduler(), *sides())
        await around.run(job, Sides(sides()), TICK_LOG2)
        runs.append({
            "chunks": job.schedule.grid.count,
            "predicted": predicted.makespan,
            "measured": max(record["time"] for record in around.log),
            "longest": dut.longest.value.to_unsigned(),
        })
        cocotb.log.info("%s", runs[-1])
    Path(arguments()["output"]).write_text(json.dumps(runs), encoding="utf-8")
