"""Measures the published figures: ``python -m sim.bench``."""
