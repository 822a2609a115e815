"""CXL-style tiered memory controller: link, tiers, DRAM scheduler, ECC, device models."""
