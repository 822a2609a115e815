"""Decoder of the entropy-coded formats (docs/wire_format.md, sections 4 and 7)."""
