"""HDM decode: bijective, equal to a bit-level reading of the standard, and to published figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.memory.hdm import GRANULARITIES, NOWHERE, QUANTUM, WAYS, Decoder, HdmMap

GIB = 1 << 30

# The maps of the published examples, for a granularity of 256 bytes.
MAPS = (0x2020900, 0x4041200, 0x1010400, 0x800)

# Host offsets by position, from the modulo and XOR samples that ndctl checks Linux with
# (test/cxl-translate.sh): device offset, ways, modulo, XOR.
SAMPLES = [
    (0, 4, [0, 256, 512, 768], [0, 256, 512, 768]),
    (256, 4, [1024, 1280, 1536, 1792], [1024, 1280, 1536, 1792]),
    (2048, 4, [8192, 8448, 8704, 8960], [8192, 8448, 8704, 8960]),
    (0, 12, [0, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 2816],
     [0, 256, 512, 768, 1024, 1280, 1536, 1792, 2304, 2048, 2816, 2560]),
    (512, 12, [6144, 6400, 6656, 6912, 7168, 7424, 7680, 7936, 8192, 8448, 8704, 8960],
     [6912, 6656, 6400, 6144, 7936, 7680, 7424, 7168, 8192, 8448, 8704, 8960]),
]

# XOR examples of the CXL memory device software guide (sections 2.13.24 and 25), as ndctl lists
# them: ways, maps, then (device offset, position, host offset).
TABLES = [
    (4, 2, [
        (248, 0, 248), (16, 1, 272), (16, 2, 528), (32, 3, 800), (288, 0, 1056), (288, 1, 1312),
        (288, 2, 1568), (288, 3, 1824), (544, 1, 2080), (544, 0, 2336), (544, 3, 2592),
        (1040, 2, 4112), (1568, 3, 6176), (32784, 1, 131088), (65552, 2, 262160),
        (98336, 3, 393248), (98328, 2, 393496), (98352, 2, 393520), (443953523, 0, 1775813747),
    ]),
    (8, 2, [
        (248, 0, 248), (16, 1, 272), (16, 2, 528), (32, 3, 800), (272, 1, 2064), (528, 2, 4112),
        (800, 3, 6176), (16400, 1, 131088), (32784, 2, 262160), (49184, 3, 393248),
        (49176, 2, 393496), (49200, 2, 393520), (116520373, 3, 932162229),
        (244690459, 5, 1957525275), (292862215, 5, 2342899463), (30721158, 4, 245769350),
        (246386959, 4, 1971096847), (72701249, 5, 581610561), (529382429, 5, 4235060509),
        (191132300, 2, 1529057420), (18589081, 1, 148712089), (344295715, 7, 2754367011),
    ]),
    (12, 2, [
        (224, 0, 224), (16, 1, 272), (16, 2, 528), (32, 3, 800), (32, 4, 1056), (32, 5, 1312),
        (32, 6, 1568), (32, 7, 1824), (32, 9, 2080), (32, 8, 2336), (32, 11, 2592),
        (32, 10, 2848), (288, 0, 3360), (299017087, 7, 3588205439), (329210435, 0, 3950524995),
        (151050637, 11, 1812608653), (145169214, 2, 1742030654), (328998732, 10, 3947985996),
        (159252439, 3, 1911027415), (342098916, 5, 4105186020), (97970344, 8, 1175645096),
        (214995572, 8, 2579948404), (101289661, 7, 1215475645), (40424079, 7, 485088911),
        (231458716, 7, 2777503900),
    ]),
]


def maps_of(ways, granularity, count):
    """The published maps, moved to another granularity; the last one is bit 11 alone."""
    return tuple(bits * (granularity // 256) for bits in MAPS[:count])


def window(ways, *, granularity=256, base=0, maps=0, quanta=16):
    return Decoder(base=base, size=quanta * ways * QUANTUM, ways=ways, granularity=granularity,
                   xor_maps=maps_of(ways, granularity, maps))


@pytest.mark.parametrize("offset, ways, modulo, xor", SAMPLES)
def test_published_samples(offset, ways, modulo, xor):
    positions = np.arange(ways)
    for maps, hosts in ((0, modulo), (2, xor)):
        decoder = window(ways, maps=maps)
        assert decoder.encode(positions, offset).tolist() == hosts
        got, offsets = decoder.decode(np.array(hosts))
        assert got.tolist() == positions.tolist() and set(offsets.tolist()) == {offset}


@pytest.mark.parametrize("ways, maps, rows", TABLES)
def test_published_xor_tables(ways, maps, rows):
    offset, position, host = np.array(rows).T
    decoder = window(ways, maps=maps)
    assert np.array_equal(decoder.encode(position, offset), host)
    got = decoder.decode(host)
    assert np.array_equal(got[0], position) and np.array_equal(got[1], offset)


def test_the_standards_examples():
    # Port: 129 GB + 1028 in a window of 4 ways, 512 bytes, is way 2.
    port = Decoder(base=128 * GIB, size=4 * GIB, ways=4, granularity=512)
    assert port.decode(129 * GIB + 1028)[0] == 2
    # Device: 8 ways of 512 bytes, behind another window of 32 GB.
    device = HdmMap([Decoder(base=32 * GIB, size=32 * GIB, ways=8, granularity=512),
                     Decoder(base=128 * GIB, size=4 * GIB, ways=8, granularity=512)])
    assert device.bases == (0, 4 * GIB)
    assert device.decode(129 * GIB + 1028)[1] == 0x108000004
    # 12 ways.
    device = HdmMap([Decoder(base=32 * GIB, size=48 * GIB, ways=12, granularity=512),
                     Decoder(base=128 * GIB, size=24 * GIB, ways=12, granularity=512)])
    assert device.bases == (0, 4 * GIB)
    assert device.decode(128 * GIB + 24920)[1] == 0x100000958


@st.composite
def decoders(draw):
    ways = draw(st.sampled_from(sorted(WAYS)))
    granularity = draw(st.sampled_from(sorted(GRANULARITIES)))
    binary = ways // 3 if ways % 3 == 0 else ways
    maps = []
    for index in range(draw(st.integers(0, binary.bit_length() - 1))):
        bits = granularity << index
        above = (granularity * 16).bit_length()
        for bit in draw(st.sets(st.integers(above, 45), max_size=6)):
            bits |= 1 << bit
        maps.append(bits)
    return Decoder(
        base=draw(st.integers(0, 1 << 16)) * QUANTUM,
        size=draw(st.integers(1, 99)) * ways * QUANTUM, ways=ways,
        granularity=granularity, xor_maps=tuple(maps),
        targets=tuple(draw(st.permutations(range(20))))[:ways])


@settings(max_examples=120, deadline=None)
@given(decoders(), st.integers(0, 2**32))
def test_bijective(decoder, seed):
    rng = np.random.default_rng(seed)
    hpa = decoder.base + rng.integers(0, decoder.size, 200)
    position, offset = decoder.decode(hpa)
    assert np.array_equal(decoder.encode(position, offset), hpa)
    position = rng.integers(0, decoder.ways, 200)
    offset = rng.integers(0, decoder.device_bytes, 200)
    back = decoder.decode(decoder.encode(position, offset))
    assert np.array_equal(back[0], position) and np.array_equal(back[1], offset)
    # A whole group of rows: every byte of the devices exactly once.
    start = decoder.base + int(rng.integers(0, decoder.size // decoder.ways // (16 << 14))) * (
        16 << 14) * decoder.ways
    chunks = start + np.arange(16 * decoder.ways) * decoder.granularity
    pairs = set(zip(*(part.tolist() for part in decoder.decode(chunks)), strict=True))
    assert len(pairs) == chunks.size


@settings(max_examples=100, deadline=None)
@given(decoders(), st.data())
def test_equal_to_the_device_decode_logic(decoder, data):
    """Bit fields as the standard's implementation note has them; XOR leaves the device offset."""
    hpa = decoder.base + data.draw(st.integers(0, decoder.size - 1))
    position, got = decoder.decode(hpa)
    code, low = decoder.encoded_ways, decoder.encoded_granularity + 8
    offset = hpa - decoder.base
    if code < 8:
        row = offset >> low + code
    else:
        row = (offset >> low + code - 8) // 3
    assert got == row << low | offset & (1 << low) - 1
    binary = decoder.binary_ways.bit_length() - 1
    bits = position % decoder.binary_ways
    plain = (offset >> low) % decoder.ways % decoder.binary_ways
    for index in range(binary):
        if index < len(decoder.xor_maps):
            want = (hpa & decoder.xor_maps[index]).bit_count() & 1
        else:
            want = plain >> index & 1
        assert bits >> index & 1 == want


def test_a_map_of_several_windows():
    hdm = HdmMap([
        Decoder(base=GIB, size=GIB, ways=2, granularity=1024, targets=(3, 1)),
        Decoder(base=4 * GIB, size=3 * GIB, ways=3, granularity=256, targets=(1, 3, 2),
                skip=QUANTUM),
    ])
    rng = np.random.default_rng(1)
    hpa = rng.integers(0, 8 * GIB, (50, 40))
    target, dpa = hdm.decode(hpa)
    inside = ((hpa >= GIB) & (hpa < 2 * GIB)) | ((hpa >= 4 * GIB) & (hpa < 7 * GIB))
    assert np.array_equal(target != NOWHERE, inside)
    assert np.array_equal(dpa == NOWHERE, ~inside)
    assert np.array_equal(hdm.encode(target[inside], dpa[inside]), hpa[inside])
    assert hdm.decode(GIB)[0] == 3 and hdm.decode(GIB + 1024)[0] == 1
    assert hdm.decode(4 * GIB)[1] == GIB // 2 + QUANTUM
    assert hdm.encode(np.array([2, 9]), np.array([0, 0])).tolist() == [NOWHERE, NOWHERE]


@pytest.mark.parametrize("change, message", [
    ({"ways": 5}, "ways must be one of"),
    ({"granularity": 128}, "granularity must be one of"),
    ({"granularity": 32768}, "granularity must be one of"),
    ({"base": 4096}, "base must be a multiple of 0x10000000, not 0x1000"),
    ({"size": 3 * QUANTUM}, "size must be a multiple of 0x40000000"),
    ({"size": 0}, "size must be in 1..0x10000000000000, not 0x0"),
    ({"base": (1 << 52) - QUANTUM}, "size must be in"),
    ({"targets": (0, 1, 2, 2)}, "targets must be 4 different ones"),
    ({"targets": (0, 1)}, "targets must be 4 different ones"),
    ({"xor_maps": (0x100, 0x200, 0x400)}, "xor_maps must be at most 2 for 4 ways, not 3"),
    ({"xor_maps": (0x1200,)}, "xor_maps must have 0x100 as lowest bit"),
    ({"xor_maps": (0x300, 0x200)}, "xor_maps must have 0x100 as lowest bit and none"),
])
def test_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Decoder(**{"base": 0, "size": 4 * QUANTUM, "ways": 4} | change)


def test_refused_addresses():
    decoder = window(4, base=GIB)
    for hpa in (GIB - 1, decoder.base + decoder.size):
        with pytest.raises(ValueError, match="hpa must be in"):
            decoder.decode(hpa)
    with pytest.raises(TypeError, match="hpa must be an integer array"):
        decoder.decode(np.array([1.5]))
    with pytest.raises(ValueError, match="position must be in 0..3"):
        decoder.encode(4, 0)
    with pytest.raises(ValueError, match="disjoint and rising"):
        HdmMap([decoder, decoder])
    with pytest.raises(TypeError, match="must be Decoders"):
        HdmMap([4])
