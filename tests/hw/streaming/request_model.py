"""What `Requests` must do in each cycle, from what is seen at its ports."""

from collections import Counter, deque
from dataclasses import dataclass

__all__ = ["WATCHED", "Request", "RequestModel"]

IDS = 1 << 32
WATCHED = (
    "i_request.valid", "i_request.ready", "i_request.payload", "i_cancel.valid", "i_cancel.ready",
    "i_cancel.payload", "abort", "o_answer.valid", "o_answer.ready", "o_answer.payload",
    "o_request.valid", "o_request.ready", "o_request.payload", "i_lookup.valid", "i_lookup.ready",
    "i_lookup.payload", "o_expected.valid", "o_expected.ready", "o_expected.payload", "taken",
    "taken_slot", "zombies", "placed_slot", "placement", "writing", "ended", "ended_slot",
    "ended_good", "record_failed", "busy",
)
PLACED = ("tokens", "table_index", "key_base", "value_base", "exponent_base", "page_stride",
          "row_stride", "exponent_stride", "window_mask")


@dataclass(eq=False)
class Request:
    """A request on its way: RECORD, AWAITED, FOUND (looked up), TAKEN (by the receiver), ENDED."""

    chunk: int
    state: str = "RECORD"
    is_zombie: bool = False
    slot: int | None = None   # known when it is taken
    good: bool = False


class RequestModel:
    """Follows `Requests` cycle by cycle and asserts each of its outputs.

    Parameters
    ----------
    records : list of dict
        The record of each chunk, with ``is_good``.
    first_id : int

    Attributes
    ----------
    live : list of Request
        Requests that hold a slot, except one that is given up while its record is read: nobody
        sees when that is over.
    answers : list of (int, bool)
    met : Counter
        In which states, and together with what, requests were given up.
    """

    def __init__(self, records, first_id):
        self.records = records
        self.first_id = first_id
        self.live = []
        self.answers = []
        self.met = Counter()
        self._offered_answer = None
        self._offered_request = None
        self._given_up = None      # while its record was read, in the cycle before
        self._compared = None      # a lookup that is compared in this cycle
        self._replies = deque()
        self._waits, self._target = False, []

    def awaited(self):
        return [request.chunk for request in self.live if not request.is_zombie]

    def is_reading(self, chunk):
        return any(r.chunk == chunk and r.state == "RECORD" for r in self.live)

    def step(self, seen):
        """A cycle: ``seen`` has the values of WATCHED."""
        self._check_levels(seen)
        self._sent(seen)
        failed = self._failed(seen)
        found = self._look_up(seen)
        self._reply(seen)
        self._answer(seen)
        ended = self._end(seen)
        self._give_up(seen, failed, found, ended)
        if seen["i_request.valid"] and seen["i_request.ready"]:
            assert not any(request.state == "RECORD" for request in self.live)
            self.live.append(Request(seen["i_request.payload"]))

    def _in_slot(self, slot):
        return next((request for request in self.live if request.slot == slot), None)

    def _check_levels(self, seen):
        assert seen["busy"] == bool(
            seen["writing"] or any(not request.is_zombie for request in self.live))
        for request in self.live:
            if request.slot is not None:
                assert seen["zombies"] >> request.slot & 1 == request.is_zombie
        placed = self._in_slot(seen["placed_slot"])
        if placed is not None:
            record, given = self.records[placed.chunk], seen["placement"]
            assert given["has_exponents"] == record["flags"] & 1
            for name in PLACED:
                assert given[name] == record[name], name

    def _sent(self, seen):
        """A request that goes out is awaited from its first cycle on."""
        if not seen["o_request.valid"]:
            assert self._offered_request is None
            return
        chunk = (seen["o_request.payload"] - self.first_id) % IDS
        if self._offered_request is None:
            assert self.records[chunk]["is_good"]
            reading = [request for request in self.live if request.state == "RECORD"]
            if self._given_up is not None:
                assert (chunk, reading) == (self._given_up, [])
                self.met["given up with its record"] += 1
            else:
                assert [request.chunk for request in reading] == [chunk]
                reading[0].state = "AWAITED"
        else:
            assert chunk == self._offered_request
        self._offered_request = None if seen["o_request.ready"] else chunk

    def _failed(self, seen):
        """A record that is no good ends its request, unless that was given up."""
        if not seen["record_failed"]:
            return None
        request = next((r for r in self.live if r.state == "RECORD"), None)
        if request is not None:
            assert not self.records[request.chunk]["is_good"]
            request.state = "FAILED"
        return request

    def _look_up(self, seen):
        """A lookup is compared in the cycle after it was taken."""
        found = None
        if self._compared is not None:
            index = (self._compared - self.first_id) % IDS
            found = next((request for request in self.live
                          if request.state == "AWAITED" and request.chunk == index), None)
            self._replies.append((found, index))
            if found is not None:
                found.state = "FOUND"
        is_taken = seen["i_lookup.valid"] and seen["i_lookup.ready"]
        self._compared = seen["i_lookup.payload"] if is_taken else None
        return found

    def _reply(self, seen):
        given = seen["o_expected.payload"]
        if not (seen["o_expected.valid"] and seen["o_expected.ready"]):
            assert not seen["taken"]
            return
        request, index = self._replies.popleft()
        assert given["awaited"] == seen["taken"] == (request is not None), hex(index)
        if request is not None:
            assert given["index"] == request.chunk == index
            for name in ("layer", "kv_head", "token_block", "tokens"):
                assert given[name] == self.records[request.chunk][name]
            assert self._in_slot(seen["taken_slot"]) is None
            request.slot, request.state = seen["taken_slot"], "TAKEN"

    def _answer(self, seen):
        held = seen["i_cancel.valid"] or seen["abort"]
        waiting = {request.chunk: request for request in self.live if request.state == "ENDED"}
        assert seen["o_answer.valid"] == bool(waiting and not held)
        offered, self._offered_answer = self._offered_answer, None
        if not seen["o_answer.valid"]:
            return
        given = seen["o_answer.payload"]
        assert offered in (None, (given["chunk"], given["good"]))
        assert given["good"] == waiting[given["chunk"]].good
        if seen["o_answer.ready"]:
            self.answers.append((given["chunk"], bool(given["good"])))
            self.live.remove(waiting[given["chunk"]])
        else:
            self._offered_answer = given["chunk"], given["good"]

    def _end(self, seen):
        if not seen["ended"]:
            return None
        request = self._in_slot(seen["ended_slot"])
        request.good, request.slot = bool(seen["ended_good"]), None
        if request.is_zombie:
            self.live.remove(request)
        else:
            request.state = "ENDS"
        return request

    def _give_up(self, seen, failed, found, ended):
        """Cancels and aborts outrank what else happens in the cycle."""
        slots = [request.slot for request in self._target]
        is_ready = self._waits and not any(
            seen["writing"] >> slot & 1 for slot in slots if slot is not None)
        assert seen["i_cancel.ready"] == is_ready
        begins = seen["i_cancel.valid"] and not self._waits
        given_up = [request for request in self.live if not request.is_zombie and (
            seen["abort"] or (begins and request.chunk == seen["i_cancel.payload"]))]
        if begins:
            self._waits, self._target = True, list(given_up)
            if not given_up:
                self.met["nothing"] += 1
        elif is_ready:
            self._waits = False
        self._given_up = None
        for request in given_up:
            how = "abort" if seen["abort"] else "cancel"
            self.met[how, request.state] += 1
            if request is found:
                self.met[how, "looked up"] += 1
            if request.slot is not None and seen["writing"] >> request.slot & 1:
                self.met[how, "writing"] += 1
            request.is_zombie = True
            if request.state == "RECORD":
                self._given_up = request.chunk
            if request.state not in ("FOUND", "TAKEN"):
                self.live.remove(request)
        for request in (failed, ended):
            if request in self.live:
                request.state = "ENDED"
