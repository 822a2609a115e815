"""The rules of AXI4 that a bus must keep, checked burst by burst.

`AxiRules` is told of every transfer; `AxiChecker` watches the channels of a model under cocotb and
tells it. The channels' own rules (``valid`` and payload hold until taken) are those of
`sim.stream.StreamMonitor`, which it uses.
"""

from collections import defaultdict, deque
from dataclasses import dataclass

__all__ = ["AxiChecker", "AxiRules"]

BOUNDARY = 4096
LONGEST = 256
INCR = 1


@dataclass
class _Burst:
    id: int
    address: int
    beats: int
    left: int   # beats that have not come


class AxiRules:
    """Follows the bursts of one bus; each method raises AssertionError when a rule is broken.

    Parameters
    ----------
    data_bytes : int
        Width of the bus.

    Attributes
    ----------
    reads, writes : list of (int, int)
        Address and beats of each burst asked for.
    most_reads, most_writes : int
        Most bursts of each kind outstanding at a time.
    """

    def __init__(self, data_bytes):
        self.data_bytes = data_bytes
        self.reads, self.writes = [], []
        self.most_reads = self.most_writes = 0
        self._reading = defaultdict(deque)     # by id
        self._unsent = deque()                 # writes whose beats are not all there
        self._early = deque()                  # strobes of beats that came before their request
        self._unanswered = defaultdict(deque)  # by id: writes complete or not

    def take_ar(self, item):
        """A request to read."""
        burst = self._check_request("read", item)
        self.reads.append((burst.address, burst.beats))
        self._reading[burst.id].append(burst)
        self.most_reads = max(self.most_reads, sum(map(len, self._reading.values())))

    def take_r(self, item):
        """A beat read: of the oldest burst of its id, the last one marked."""
        bursts = self._reading[item["id"]]
        assert bursts, f"a beat of id {item['id']}, of which nothing was asked"
        burst = bursts[0]
        burst.left -= 1
        assert item["last"] == (burst.left == 0), (
            f"rlast is {item['last']} with {burst.left} of {burst.beats} beats still to come from "
            f"{burst.address:#x}")
        if item["last"]:
            bursts.popleft()

    def take_aw(self, item):
        """A request to write."""
        burst = self._check_request("write", item)
        self.writes.append((burst.address, burst.beats))
        self._unsent.append(burst)
        self._unanswered[burst.id].append(burst)
        self.most_writes = max(self.most_writes, sum(map(len, self._unanswered.values())))
        while self._early and self._unsent:
            self._send(*self._early.popleft())

    def take_w(self, item):
        """A beat to write: of the oldest burst that lacks one, the last one marked."""
        if self._unsent:
            self._send(item["strb"], item["last"])
        else:
            self._early.append((item["strb"], item["last"]))

    def take_b(self, item):
        """A response: to the oldest write of its id, after its last beat."""
        bursts = self._unanswered[item["id"]]
        assert bursts, f"a response of id {item['id']}, of which nothing is outstanding"
        burst = bursts.popleft()
        assert burst.left == 0, (
            f"a response with {burst.left} of {burst.beats} beats still to come to "
            f"{burst.address:#x}")

    def drain(self):
        """Check that nothing is outstanding."""
        assert not any(self._reading.values()), "reads are outstanding"
        assert not self._unsent, "beats of writes are outstanding"
        assert not self._early, "beats came of which nothing was asked"
        assert not any(self._unanswered.values()), "responses are outstanding"

    def _check_request(self, kind, item):
        address, beats = item["addr"], item["len"] + 1
        size = 1 << item["size"]
        what = f"{kind} of {beats} beats at {address:#x}"
        assert item["burst"] == INCR, f"{what} is not incrementing"
        assert size == self.data_bytes, f"{what} has beats of {size} bytes"
        assert beats <= LONGEST, f"{what} is too long"
        end = address - address % self.data_bytes + beats * self.data_bytes - 1
        assert address // BOUNDARY == end // BOUNDARY, f"{what} crosses 4 KiB"
        return _Burst(item["id"], address, beats, beats)

    def _send(self, strobe, last):
        burst = self._unsent[0]
        if burst.left == burst.beats:
            below = (1 << burst.address % self.data_bytes) - 1
            assert not strobe & below, f"a strobe below the address of a write, {burst.address:#x}"
        burst.left -= 1
        assert last == (burst.left == 0), (
            f"wlast is {last} with {burst.left} of {burst.beats} beats still to come to "
            f"{burst.address:#x}")
        if last:
            self._unsent.popleft()


class AxiChecker(AxiRules):
    """Watches a bus of the top module in every cycle.

    Parameters
    ----------
    dut : handle
        The top module.
    name : str
        Name of the bus.
    """

    def __init__(self, dut, name="m_axi"):
        from sim.stream import StreamMonitor

        super().__init__(len(getattr(dut, f"{name}_wdata")) // 8)
        self._monitors = [
            StreamMonitor(dut, f"{name}_{channel}", on_item=getattr(self, f"take_{channel}"))
            for channel in ("ar", "r", "aw", "w", "b")]

    def stop(self):
        """Leave the bus alone from now on, for a reset in mid-burst."""
        for monitor in self._monitors:
            monitor.stop()
