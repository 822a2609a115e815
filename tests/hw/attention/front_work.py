"""Commands for the front end, with their data."""

from dataclasses import dataclass, field

from hw.attention.layouts import Opcode, Select, command
from hw.config import EXPONENT_NAN
from tests.hw.attention.packing import garbage


@dataclass
class Work:
    """A command with the records of its data.

    ``extra``: beats after the records (negative: beats missing from them). ``fault``: (row, error)
    that the append unit meets. The rest is what a test may want to look at.
    """

    command: dict
    records: list
    extra: int = 0
    fault: tuple | None = None
    vectors: list = field(default_factory=list)
    codes: list | None = None
    tokens: list = field(default_factory=list)

    def beats_of(self, config):
        return [-(-len(record) // config.memory_bytes) for record in self.records]

    def beats(self, config, rng):
        """Data beats; unused bytes are garbage."""
        size = config.memory_bytes
        padded = b"".join(record + rng.randbytes(-len(record) % size) for record in self.records)
        padded += rng.randbytes(max(0, self.extra) * size)
        words = [padded[start:start + size] for start in range(0, len(padded), size)]
        words = words[:len(words) + min(0, self.extra)]
        assert words, "a command carries at least one beat"
        return [{"data": int.from_bytes(word, "little"), "last": int(number == len(words) - 1)}
                for number, word in enumerate(words)]

    def judge(self, config):
        """Records that the front end takes: (index, is it bad), to the final or first bad one."""
        shapes = self.beats_of(config)
        length = sum(shapes) + self.extra
        end = 0
        for index, size in enumerate(shapes):
            end += size
            is_final = index == len(shapes) - 1
            is_bad = end > length or (end == length) != is_final
            yield index, is_bad
            if is_bad:
                return


class Maker:
    """Makes commands whose unused fields are garbage."""

    def __init__(self, config, rng, entries):
        self.config = config
        self.rng = rng
        self.entries = entries

    def _command(self, **fields):
        tag = self.rng.getrandbits(16)
        return garbage(self.rng, command(self.config)) | {"tag": tag} | fields

    def query(self, context, *, has_code=0, select=Select.BUDGET, visible=0, extra=0, **fields):
        config, rng = self.config, self.rng
        length = self.entries[context]["length"] if context in self.entries else 0
        seen = visible or length
        budget = rng.randint(0, seen)
        counts = {"full": budget, "coarse": rng.randint(0, max(0, seen - budget))}
        if select != Select.BUDGET:
            counts = {}
        item = self._command(opcode=Opcode.QUERY, context=context, has_code=has_code,
                             select=select, visible=visible, **(counts | fields))
        limit = 1 << (config.query_bits - 1)
        vectors = [[rng.randrange(-limit, limit) for _ in range(config.head_dim)]
                   for _ in range(config.group)]
        size = config.query_bits // 8
        records = [b"".join(value.to_bytes(size, "little", signed=True) for value in vector)
                   for vector in vectors]
        codes = None
        if has_code:
            codes = [rng.getrandbits(config.code_bits) for _ in range(config.group)]
            records.append(b"".join(code.to_bytes(config.code_bits // 8, "little")
                                    for code in codes))
        return Work(item, records, extra, vectors=vectors, codes=codes)

    def append(self, context, count, *, has_code=0, extra=0, fault=None, nan=None):
        """``nan``: (token, index among its exponents) that is 255."""
        config, rng = self.config, self.rng
        item = self._command(opcode=Opcode.APPEND, context=context, count=count,
                             has_code=has_code)
        tokens, records = [], []
        for number in range(count):
            exponents = [rng.randrange(EXPONENT_NAN) for _ in range(2 * config.blocks)]
            if nan and nan[0] == number:
                exponents[nan[1]] = EXPONENT_NAN
            token = {
                "key": rng.randbytes(config.row_bytes), "value": rng.randbytes(config.row_bytes),
                "keys": exponents[:config.blocks], "values": exponents[config.blocks:],
                "code": rng.randbytes(config.code_bits // 8)}
            tokens.append(token)
            records.append(token["key"] + token["value"] + bytes(exponents)
                           + (token["code"] if has_code else b""))
        return Work(item, records or [rng.randbytes(3)], extra, fault, tokens=tokens)

    def weights(self, index, count, *, extra=0):
        item = self._command(opcode=Opcode.WEIGHTS, index=index, count=count)
        records = [self.rng.randbytes(self.config.head_dim) for _ in range(count)]
        return Work(item, records or [self.rng.randbytes(3)], extra)

    def unknown(self, opcode):
        records = [self.rng.randbytes(self.rng.randint(1, 100))]
        return Work(self._command(opcode=opcode), records)
