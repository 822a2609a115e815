"""Golden models of the tiered memory controller: CXL link, tiers, DRAM, ECC.

``docs/memory_link.md`` is the specification of what travels, and of where things lie:

======================= =========================================================================
:mod:`.messages`        CXL.mem messages: fields, opcodes, packing
:mod:`.device`          how the device answers; DevLoad
:mod:`.crc`             CRC-16 of flits, with or without their sequence number
:mod:`.slots`           flit header, slot formats, credits, control flits
:mod:`.flits`           messages into flits and out of them
:mod:`.replay`          the retry buffer
:mod:`.retry`           one end of the link
:mod:`.hdm`             host addresses to devices, and back
:mod:`.mapping`         page table of the tiers, placements, moves
:mod:`.heat`            page heat, and which page moves when
:mod:`.windows`         which context may touch what
======================= =========================================================================

``docs/memory_dram.md`` is that of the memory behind it.
"""
