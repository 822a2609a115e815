"""Configuration of the hash attention unit."""

from dataclasses import dataclass, fields
from math import ceil

from hw.config.checks import check_choice, check_int, check_range, is_power_of_two
from hw.config.constants import ELEMENT_BITS, MX_BLOCK, PAGE_TOKENS, PROBABILITY_BITS

__all__ = ["AttentionConfig"]


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Parameters of the hash attention unit (DASH-KV, arXiv 2604.19351).

    The paper fixes the algorithm, not the hardware: every default here is ours.

    Parameters
    ----------
    head_dim : int
        Elements of a query, key or value row: 32, 64, 128 or 256.
    code_bits : int
        Hash code length b: 32, 64, 128 or 256.
    lanes : int
        Codes matched per cycle, P: a power of two in 4..64.
    max_tokens : int
        Longest context in tokens: a multiple of 256, at most 2**20.
    memory_bytes : int
        Width W of the memory port: a power of two in 4..``head_dim``. ``head_dim // 2`` is the
        natural one.
    group : int
        Query heads that share one KV head (GQA): 1..8.
    code_source : str
        ``"resident"`` (codes on chip) or ``"streamed"`` (codes read from memory for each query).
    resident_tokens : int or None
        Tokens, over all contexts, whose codes and exponents are held on chip: a multiple of
        ``max(lanes, 16)``. ``None``: ``max_tokens``. Resident mode only.
    exponent_block : int
        Elements that share an exponent: 32 or ``head_dim``.
    query_bits : int
        Width of a query mantissa: 8 or 16.
    contexts : int
        Entries of the context table: 1..1024.
    table_pages : int
        Entries of the block table, shared by all contexts: 1..65536.
    encoder_lanes : int
        Code bits encoded per cycle: a power of two up to ``code_bits``.
    encoder_sets : int
        Pairs of encoder weights (query, key) held on chip: 1..64.
    query_slots : int
        Queries in flight, each with its mantissas held: 2..8.
    bins_per_cycle : int
        Histogram bins examined per cycle by the threshold search: a power of two in 1..64.
    distance_shift : int or None
        Right shift of the group's summed distance. ``None``: ``max(0, ceil(log2(group)) - 1)``.
    read_rows : int
        Rows of K, and of V, in flight at the memory port: a power of two in 2..256.
    result_lanes : int
        32-bit words per beat of the result stream: a power of two in 4..32 that divides
        ``head_dim``.
    address_bits : int
        Width of a byte address: 16..64.

    Raises
    ------
    TypeError
        A field is not of its type.
    ValueError
        A field, or a combination of fields, is not allowed; the message names field, value and
        range.
    """

    head_dim: int
    code_bits: int
    lanes: int
    max_tokens: int
    memory_bytes: int
    group: int = 1
    code_source: str = "resident"
    resident_tokens: int | None = None
    exponent_block: int = MX_BLOCK
    query_bits: int = 16
    contexts: int = 4
    table_pages: int = 1024
    encoder_lanes: int = 1
    encoder_sets: int = 1
    query_slots: int = 4
    bins_per_cycle: int = 8
    distance_shift: int | None = None
    read_rows: int = 32
    result_lanes: int = 4
    address_bits: int = 40

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for field in fields(self):
            value = getattr(self, field.name)
            optional = field.name in ("resident_tokens", "distance_shift") and value is None
            if field.name == "code_source":
                if not isinstance(value, str):
                    raise TypeError(f"{owner}.code_source must be a string, not {value!r}")
            elif not optional:
                check_int(owner, field.name, value)
        check_choice(owner, "head_dim", self.head_dim, (32, 64, 128, 256))
        check_choice(owner, "code_bits", self.code_bits, (32, 64, 128, 256))
        check_choice(owner, "lanes", self.lanes, (4, 8, 16, 32, 64))
        check_choice(owner, "code_source", self.code_source, ("resident", "streamed"))
        check_choice(owner, "query_bits", self.query_bits, (8, 16))
        if self.exponent_block not in (MX_BLOCK, self.head_dim):
            raise ValueError(
                f"{owner}.exponent_block must be {MX_BLOCK} or head_dim ({self.head_dim}), "
                f"not {self.exponent_block!r}"
            )
        check_range(owner, "max_tokens", self.max_tokens, 256, 1 << 20)
        if self.max_tokens % 256:
            raise ValueError(
                f"{owner}.max_tokens must be a multiple of 256, not {self.max_tokens!r}"
            )
        check_range(owner, "memory_bytes", self.memory_bytes, 4, self.head_dim)
        check_range(owner, "group", self.group, 1, 8)
        check_range(owner, "contexts", self.contexts, 1, 1024)
        check_range(owner, "table_pages", self.table_pages, 1, 65536)
        check_range(owner, "encoder_lanes", self.encoder_lanes, 1, self.code_bits)
        check_range(owner, "encoder_sets", self.encoder_sets, 1, 64)
        check_range(owner, "query_slots", self.query_slots, 2, 8)
        check_range(owner, "bins_per_cycle", self.bins_per_cycle, 1, 64)
        check_range(owner, "read_rows", self.read_rows, 2, 256)
        check_range(owner, "result_lanes", self.result_lanes, 4, 32)
        check_range(owner, "address_bits", self.address_bits, 16, 64)
        for name in (
            "memory_bytes", "encoder_lanes", "bins_per_cycle", "read_rows", "result_lanes"
        ):
            if not is_power_of_two(getattr(self, name)):
                raise ValueError(
                    f"{owner}.{name} must be a power of two, not {getattr(self, name)!r}"
                )
        self._fill_optional(owner)

    def _fill_optional(self, owner: str) -> None:
        """Put values in place of ``None``, and check the combinations that they take part in."""
        line = max(self.lanes, PAGE_TOKENS)
        if self.code_source == "streamed":
            if self.resident_tokens is not None:
                raise ValueError(
                    f"{owner}.resident_tokens must be None when code_source is 'streamed', "
                    f"not {self.resident_tokens!r}"
                )
            if self.lanes < PAGE_TOKENS:
                raise ValueError(
                    f"{owner}.lanes must be at least {PAGE_TOKENS} when code_source is 'streamed', "
                    f"not {self.lanes!r}"
                )
        elif self.resident_tokens is None:
            object.__setattr__(self, "resident_tokens", self.max_tokens)
        elif self.resident_tokens < line or self.resident_tokens % line:
            raise ValueError(
                f"{owner}.resident_tokens must be a positive multiple of {line}, "
                f"not {self.resident_tokens!r}"
            )
        default_shift = max(0, (self.group - 1).bit_length() - 1)
        if self.distance_shift is None:
            object.__setattr__(self, "distance_shift", default_shift)
        check_range(owner, "distance_shift", self.distance_shift, 0, 3)

    # Rows and beats.

    @property
    def blocks(self) -> int:
        """Exponent blocks of a row."""
        return self.head_dim // self.exponent_block

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored row, both planes, without exponents."""
        return self.head_dim

    @property
    def plane_bytes(self) -> int:
        return self.head_dim // 2

    @property
    def planes_per_beat(self) -> int:
        """Planes in a datapath beat: 2 when the memory delivers a whole row per beat, else 1."""
        return 2 if self.memory_bytes == self.head_dim else 1

    @property
    def beat_bytes(self) -> int:
        """Bytes of a datapath beat: a plane, or a whole row; narrower memory beats are gathered."""
        return self.plane_bytes * self.planes_per_beat

    @property
    def bus_beats_per_beat(self) -> int:
        """Memory beats gathered into one datapath beat."""
        return self.beat_bytes // self.memory_bytes

    @property
    def full_beats(self) -> int:
        """Memory beats of a full row read."""
        return self.head_dim // self.memory_bytes

    @property
    def coarse_beats(self) -> int:
        """Memory beats of a coarse row read."""
        return max(1, self.plane_bytes // self.memory_bytes)

    @property
    def exponent_bytes(self) -> int:
        """Exponent bytes of a token, K and V."""
        return 2 * self.blocks

    # Tokens and pages.

    @property
    def token_bits(self) -> int:
        """Width of a token count, 0..max_tokens inclusive."""
        return self.max_tokens.bit_length()

    @property
    def position_bits(self) -> int:
        return (self.max_tokens - 1).bit_length()

    @property
    def max_pages(self) -> int:
        return self.max_tokens // PAGE_TOKENS

    @property
    def page_bits(self) -> int:
        return (self.max_pages - 1).bit_length()

    @property
    def max_lines(self) -> int:
        return self.max_tokens // self.lanes

    # Distances.

    @property
    def max_distance(self) -> int:
        assert self.distance_shift is not None
        return (self.group * self.code_bits) >> self.distance_shift

    @property
    def distance_bins(self) -> int:
        return self.max_distance + 1

    @property
    def distance_bits(self) -> int:
        return self.max_distance.bit_length()

    # Streamed code lines.

    @property
    def code_line_bytes(self) -> int:
        """Bytes of a code line in memory: P codes, P tokens' exponents, padded to whole beats."""
        used = self.lanes * (self.code_bits // 8 + self.exponent_bytes)
        return ceil(used / self.memory_bytes) * self.memory_bytes

    @property
    def code_line_beats(self) -> int:
        return self.code_line_bytes // self.memory_bytes

    # Sums.

    @property
    def weight_sum_bits(self) -> int:
        """Width of l, unsigned."""
        return PROBABILITY_BITS + 1 + self.position_bits

    @property
    def value_sum_bits(self) -> int:
        """Width of an element of o, signed."""
        return PROBABILITY_BITS + ELEMENT_BITS + 1 + self.position_bits

    @property
    def context_bits(self) -> int:
        return max(1, (self.contexts - 1).bit_length())

    @property
    def slot_bits(self) -> int:
        return (self.query_slots - 1).bit_length()

    @property
    def table_bits(self) -> int:
        return max(1, (self.table_pages - 1).bit_length())

    # Input data beats.

    @property
    def query_data_bytes(self) -> int:
        """Bytes of a query on the data stream, per head: mantissas, little-endian."""
        return self.head_dim * self.query_bits // 8
