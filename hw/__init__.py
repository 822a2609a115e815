"""Synthesizable units of the KV cache, written in Amaranth."""

__version__ = "0.1.0"
