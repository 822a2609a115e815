"""Arithmetic of the datapaths: small units and expressions, each with a golden twin."""
