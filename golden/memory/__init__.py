"""Golden models of the tiered memory controller: CXL link, tiers, DRAM, ECC."""
