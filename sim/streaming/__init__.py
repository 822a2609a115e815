"""Scenarios, figures and benches of the KV chunk streaming engine."""
