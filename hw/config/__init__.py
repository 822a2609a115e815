"""Configuration of the hardware units: frozen, checked, with every derived size in one place.

No Amaranth import here: golden models, test benches and tools read sizes from these classes without
pulling in the hardware description.
"""

from hw.config.attention import AttentionConfig
from hw.config.constants import (
    BLOCK_LOGIT_BITS,
    ELEMENT_BITS,
    ELEMENT_FRACTION_BITS,
    EMPTY_MAXIMUM,
    EXP2_FRACTION_BITS,
    EXP2_INDEX_BITS,
    EXPONENT_BIAS,
    EXPONENT_BITS,
    EXPONENT_NAN,
    KEY_ALIGN_BITS,
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    LOGIT_GUARD_BITS,
    MAXIMUM_BITS,
    MX_BLOCK,
    PAGE_TOKENS,
    PAGES_PER_GROUP,
    PERCENT_FRACTION_BITS,
    PLANE_BITS,
    PROBABILITY_BITS,
    PROBABILITY_FRACTION_BITS,
    STATE_BITS,
    SUMMARY_GUARD_BITS,
    SUMMARY_SUM_BITS,
    WEIGHT_BITS,
)
from hw.config.memory import MemoryConfig
from hw.config.streaming import WIRE_FORMATS, StreamingConfig

__all__ = [
    "WIRE_FORMATS",
    "BLOCK_LOGIT_BITS",
    "ELEMENT_BITS",
    "ELEMENT_FRACTION_BITS",
    "EMPTY_MAXIMUM",
    "EXP2_FRACTION_BITS",
    "EXP2_INDEX_BITS",
    "EXPONENT_BIAS",
    "EXPONENT_BITS",
    "EXPONENT_NAN",
    "KEY_ALIGN_BITS",
    "LOGIT_BITS",
    "LOGIT_FRACTION_BITS",
    "LOGIT_GUARD_BITS",
    "MAXIMUM_BITS",
    "MX_BLOCK",
    "PAGES_PER_GROUP",
    "PAGE_TOKENS",
    "PERCENT_FRACTION_BITS",
    "PLANE_BITS",
    "PROBABILITY_BITS",
    "PROBABILITY_FRACTION_BITS",
    "STATE_BITS",
    "SUMMARY_GUARD_BITS",
    "SUMMARY_SUM_BITS",
    "WEIGHT_BITS",
    "AttentionConfig",
    "MemoryConfig",
    "StreamingConfig",
]
