"""The numeric constants of ``docs/numerics.md``."""

# Stored rows: OCP MXINT8.
ELEMENT_BITS = 8
ELEMENT_FRACTION_BITS = 6
PLANE_BITS = 4
EXPONENT_BITS = 8
EXPONENT_BIAS = 127
EXPONENT_NAN = 255
MX_BLOCK = 32

# Logits, in base 2.
LOGIT_BITS = 32
LOGIT_FRACTION_BITS = 16
LOGIT_GUARD_BITS = 4
BLOCK_LOGIT_BITS = 40

# Probabilities.
EXP2_INDEX_BITS = 8
EXP2_FRACTION_BITS = 24
PROBABILITY_FRACTION_BITS = 32
PROBABILITY_BITS = PROBABILITY_FRACTION_BITS + 1
MAXIMUM_BITS = 18  # running maximum: the logit's integer part, plus the weight's octaves

# State words on the result stream.
STATE_BITS = 64
EMPTY_MAXIMUM = -(1 << 31)

# Paging.
PAGE_TOKENS = 16
PAGES_PER_GROUP = 16  # pages whose smallest distance shares one word of the page-minimum memory

# Page summaries.
SUMMARY_GUARD_BITS = 8
SUMMARY_SUM_BITS = ELEMENT_BITS + SUMMARY_GUARD_BITS + 4

# Codes.
WEIGHT_BITS = 8
KEY_ALIGN_BITS = 8

PERCENT_FRACTION_BITS = 16
