"""Co-simulation: builds units with Verilator, and runs cocotb benches against the golden models."""
