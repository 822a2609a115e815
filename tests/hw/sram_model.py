"""What an Sram must do, as a few lines of Python, and stimulus that reaches every rule."""

import random


def make_operations(seed, *, depth, width, granules, count):
    """Random cycles: dicts of the inputs. Every word is written once before anything is read."""
    rng = random.Random(seed)
    operations = [{"write_en": (1 << granules) - 1, "write_addr": address,
                   "write_data": rng.getrandbits(width), "read_en": 0, "read_addr": 0}
                  for address in range(depth)]
    for _ in range(count):
        address = rng.randrange(depth)
        operations.append({
            "write_en": rng.getrandbits(granules) & rng.choice([0, -1]),
            "write_addr": address,
            "write_data": rng.getrandbits(width),
            "read_en": rng.randrange(2),
            # Half of the reads meet the write of the same cycle.
            "read_addr": rng.choice([address, rng.randrange(depth)]),
        })
    return operations


def expected_reads(operations, *, depth, width, granules):
    """Value of ``read_data`` after each cycle; None before the first read."""
    words = [0] * depth
    granule_bits = width // granules
    reads, data = [], None
    for operation in operations:
        if operation["read_en"]:
            data = words[operation["read_addr"]]
        for granule in range(granules):
            if operation["write_en"] >> granule & 1:
                mask = (1 << granule_bits) - 1 << granule * granule_bits
                word = words[operation["write_addr"]]
                words[operation["write_addr"]] = word & ~mask | operation["write_data"] & mask
        reads.append(data)
    return reads
