"""Synthesis of emitted units: area and speed, as figures.

The tools are YoWASP's Yosys and nextpnr (the extra ``synth``); for standard cells Debian's
``qflow-tech-osu018`` and ``opensta``, where they are installed.
"""
