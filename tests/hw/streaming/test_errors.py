"""Units refuse what is no configuration of theirs."""

import pytest

from hw.config import StreamingConfig
from hw.streaming.barrier import FrameBarrier
from hw.streaming.block_scale import BlockScale
from hw.streaming.decoder import Decoder
from hw.streaming.dispatch import Dispatch
from hw.streaming.fixed import FixedDecoder
from hw.streaming.framer import Framer
from hw.streaming.header import HeaderCheck
from hw.streaming.place import PacketPlace
from hw.streaming.planes import Planes
from hw.streaming.quantiser import Quantiser
from hw.streaming.receive import ReceivePath
from hw.streaming.receiver import FrameReceiver
from hw.streaming.shaper import RowShaper
from hw.streaming.side_buffer import SideBuffer
from hw.streaming.unpack import Unpack
from hw.streaming.walker import PageWalker

FIXED_ONLY = [PageWalker, RowShaper, Unpack]
UNITS = [FrameBarrier, BlockScale, Decoder, Dispatch, FixedDecoder, Framer, HeaderCheck,
         PacketPlace, Planes, Quantiser, ReceivePath, FrameReceiver, SideBuffer, *FIXED_ONLY]


@pytest.mark.parametrize("unit", UNITS)
def test_a_config_is_asked_for(unit):
    with pytest.raises(TypeError) as raised:
        unit(3)
    assert str(raised.value) == f"{unit.__name__} config must be a StreamingConfig, not 3"


@pytest.mark.parametrize("unit", [FixedDecoder, *FIXED_ONLY])
def test_a_fixed_rate_format_is_asked_for(unit):
    config = StreamingConfig(head_dim=32, bus_bytes=8, formats=("HUFFMAN4", "HUFFMAN8"))
    with pytest.raises(ValueError, match=f"{unit.__name__} config.formats must have a fixed-rate "
                                         r"format, not \('HUFFMAN4', 'HUFFMAN8'\)"):
        unit(config)


def test_a_side_block_is_asked_for():
    config = StreamingConfig(head_dim=32, bus_bytes=8, formats=("FP16", "HUFFMAN4"))
    with pytest.raises(ValueError, match="SideBuffer config.formats must have a fixed-rate format "
                                         "with a side block"):
        SideBuffer(config)
