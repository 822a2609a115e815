"""The demo: a trace of a real model through the attention unit in simulation.

``python -m sim.demo`` appends the keys and values of every head, runs its queries in hash mode and
in dense mode, compares each result with the golden model bit for bit, and writes a report.
"""
