"""Buses: AXI4 and AXI4-Lite at the chip edge, and the ports that units inside are written with."""
