"""Copy commands for tests: random ones, and the way they are given to hardware."""

from golden.streaming.copy import Copy, CopyKind, Window, find_fault, run_copy
from hw.config import StreamingConfig

__all__ = ["Scene", "fields", "make_config", "sizes", "window_fields"]


def make_config(bus_bytes=16, **options):
    return StreamingConfig(**{
        "head_dim": 64, "bus_bytes": bus_bytes, "burst_bytes": 256, "bursts": 8, "windows": 2,
        "address_bits": 20, **options})


def fields(command: Copy):
    """A command as a ``copy_command``."""
    return {name: int(getattr(command, name)) for name in (
        "kind", "tag", "source", "destination", "row_bytes", "rows", "source_stride",
        "destination_stride", "window_mask")}


def window_fields(windows):
    return [{"valid": 0} if window is None
            else {"valid": 1, "base": window.base, "last": window.last} for window in windows]


def sizes(config: StreamingConfig):
    return {"bus_bytes": config.bus_bytes, "burst_bytes": config.burst_bytes}


class Scene:
    """Commands that do not get in each other's way, and what golden makes of them.

    The lower half of the memory is read, the upper half is granted and written.

    Parameters
    ----------
    config : StreamingConfig
    rng : random.Random
    memory : bytes
    read_faults, write_faults : (int, int)
        Bursts that begin in this range of addresses are answered with an error.
    """

    def __init__(self, config, rng, memory, *, read_faults=(0, 0), write_faults=(0, 0)):
        self.config = config
        self.rng = rng
        self.half = len(memory) // 2
        self.free = self.half          # where the next destination may begin
        self.initial = bytes(memory)
        self.memory = bytearray(memory)
        self.windows = [Window(self.half, len(memory) - 1), None]
        self.faults = {"read_fails": lambda address: read_faults[0] <= address < read_faults[1],
                       "write_fails": lambda address: write_faults[0] <= address < write_faults[1]}
        self.commands = []
        self.results = []

    def run(self, command):
        """Add a command; returns golden's result."""
        result = run_copy(self.memory, command, address_bits=self.config.address_bits,
                          windows=self.windows, **sizes(self.config), **self.faults)
        self.commands.append(command)
        self.results.append(result)
        return result

    def fault(self, command):
        return find_fault(command, address_bits=self.config.address_bits, windows=self.windows)

    def copy(self, *, row_bytes, rows=1, source=None, offset=None, gap=0, source_stride=None,
             feed=False):
        """A copy (or feed) of a random source to the next free place."""
        rng = self.rng
        if source_stride is None:
            source_stride = rng.randrange(2 * row_bytes + 1)
        span = (rows - 1) * source_stride + row_bytes
        if source is None:
            source = rng.randrange(self.half - span)
        destination = self.free + (
            rng.randrange(2 * self.config.bus_bytes) if offset is None else offset)
        command = Copy(
            kind=CopyKind.FEED if feed else CopyKind.COPY, tag=rng.getrandbits(16), source=source,
            row_bytes=row_bytes, destination=destination, rows=rows, source_stride=source_stride,
            destination_stride=row_bytes + gap)
        if not feed:
            self.free = command.destination_last + 1
        return self.run(command)

    def random(self, *, most=600):
        """A random command of any kind that moves up to ``most`` bytes."""
        rng = self.rng
        size = rng.choice([1, 2, rng.randrange(1, 20), rng.randrange(1, most)])
        if rng.random() < 0.2:
            return self.copy(row_bytes=size, feed=True)
        rows = rng.randrange(2, 9) if rng.random() < 0.3 else 1
        return self.copy(row_bytes=max(1, size // rows), rows=rows, gap=rng.randrange(40))

    def bad(self):
        """A random command that is refused."""
        rng = self.rng
        good = Copy(source=rng.randrange(self.half - 200), row_bytes=rng.randrange(1, 100),
                    destination=self.free, tag=rng.getrandbits(16))
        top = 1 << self.config.address_bits
        bad = rng.choice([
            {"row_bytes": 0},
            {"rows": 0},
            {"kind": CopyKind.FEED, "rows": 2},
            {"kind": CopyKind.FEED, "source": top - good.row_bytes + 1},
            {"source": good.destination + good.row_bytes - 1},
            {"rows": 3, "destination_stride": good.row_bytes - 1},
            {"source": top - good.row_bytes + 1},
            {"destination": top - good.row_bytes + 1},
            {"destination": self.half - 1, "source": 0, "row_bytes": 2},
            {"window_mask": 2},
            {"rows": 65535, "destination_stride": (1 << 32) - 1},
        ])
        values = {name: getattr(good, name) for name in good.__dataclass_fields__}
        result = self.run(Copy(**{**values, **bad}))
        assert result.error
        return result

    def done(self):
        """What ``o_done`` must give."""
        return [{"tag": command.tag, "error": int(result.error)}
                for command, result in zip(self.commands, self.results, strict=True)]

    def frames(self):
        return [result.feed for result in self.results if result.feed is not None]
