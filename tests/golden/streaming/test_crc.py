"""CRC-32 against binascii."""

import binascii

from hypothesis import given
from hypothesis import strategies as st

from golden.streaming.crc import crc32


@given(st.binary(max_size=200))
def test_crc32_is_that_of_binascii(data):
    assert crc32(data) == binascii.crc32(data)


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_crc32_goes_on_from_what_came_before(first, second):
    assert crc32(second, crc32(first)) == crc32(first + second)


def test_check_value():
    assert crc32(b"123456789") == 0xCBF43926
    assert crc32(b"") == 0
