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
"""
