"""Golden models of the KV chunk streaming engine.

``docs/wire_format.md`` is the specification of what arrives; these modules are its executable form:

======================= =========================================================================
:mod:`.layout`          formats, and how many bytes each part of a payload takes
:mod:`.crc`             CRC-32
:mod:`.huffman`         length-limited canonical codes; packing and decoding of sub-streams
:mod:`.elements`        element formats to and from integers times powers of two
:mod:`.payload`         tables and pages: encoder and decoder
:mod:`.convert`         elements to stored MXINT8 rows, in the hardware's integer steps
:mod:`.errors`          why a frame is refused
:mod:`.wire`            header and frame: encoder, and the decision to accept or refuse
:mod:`.mutations`       damaged frames, for fuzzing
======================= =========================================================================

``docs/scheduling.md`` is that of what is brought when, and by which route:

======================= =========================================================================
:mod:`.chunks`          the grid of chunks, and what each needs
:mod:`.costs`           what a chunk costs on either route
:mod:`.schedule`        a plan: two ordered lists with stage boundaries; bounds of any plan
:mod:`.greedy`          the potential-aware greedy plan of SparKV
:mod:`.balance`         the plan used: greedy, then balanced
:mod:`.baselines`       all stream, all compute, Cake, CacheGen's rule, static hybrid
:mod:`.tasks`           the chunk table of the run-time scheduler
:mod:`.work`            list and queue of one route
:mod:`.meter`           actual against predicted time, over a sliding window
:mod:`.policy`          the scheduler's registers, events and decisions
:mod:`.refine`          when work moves to the other route
:mod:`.runtime`         the run-time scheduler, event by event
:mod:`.simulate`        a whole run on a link and a device
:mod:`.traces`          links and loads over time
:mod:`.energy`          what either route draws
======================= =========================================================================
"""
