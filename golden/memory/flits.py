"""Messages into flits and out of them, with credits. ``docs/memory_link.md`` section 3.

Source: CXL 2.0 and later, 68-byte flit mode. The packing rules are the standard's (data follow
their header in the next data slots, an all-data flit once four chunks are due, limits per flit);
the choice among messages that wait is ours.
"""

from collections import deque
from enum import IntEnum

from golden.checks import check_int
from golden.memory.crc import BODY_BYTES
from golden.memory.image import ALL_BYTES, LINE_BYTES
from golden.memory.messages import Drs, Ndr, Req, Rwd, RwdOp
from golden.memory.slots import (
    DATA_SLOT,
    SLOT_BYTES,
    SLOTS,
    Direction,
    Header,
    credit_code,
    credits_of,
    formats,
    join,
    split,
)

__all__ = ["LIMITS", "MOST_ALL_DATA", "Fault", "FlitError", "Packer", "Unpacker"]

LIMITS = {Req: 2, Rwd: 1, Ndr: 2, Drs: 3}
"""Most messages of a kind in one flit."""

MOST_ALL_DATA = 4
"""Most all-data flits in a row."""

CREDIT_FIELDS = {Req: "req_crd", Rwd: "data_crd", Ndr: "rsp_crd", Drs: "data_crd"}
CREDITS_MAX = 1023
KINDS = {Direction.M2S: (Req, Rwd), Direction.S2M: (Ndr, Drs)}
EMPTY = {(Direction.M2S, True): 5, (Direction.M2S, False): 4,
         (Direction.S2M, True): 4, (Direction.S2M, False): 5}


class Fault(IntEnum):
    """Why an intact flit breaks the link's rules. All are fatal: the peer is broken."""

    FORMAT = 1        # a slot format that does not carry CXL.mem in this direction
    ROLLOVER = 2      # data where none are due, or something else where they are
    LIMIT = 3         # too many messages of a kind
    SIZE = 4          # a transfer of half a line
    BYTE_ENABLES = 5  # where none are allowed
    OVERFLOW = 6      # a message without a credit
    CONTROL = 7       # a control flit with wrong fixed bits, or one that is not due
    ACKNOWLEDGE = 8   # more flits acknowledged than were sent


class FlitError(Exception):
    """The peer broke a rule of the link layer."""

    def __init__(self, fault):
        super().__init__(fault.name)
        self.fault = fault


def _chunks(message):
    """The data slots of a message: four chunks, then byte enables unless all are set."""
    slots = [int.from_bytes(message.data[low:low + SLOT_BYTES], "little")
             for low in range(0, LINE_BYTES, SLOT_BYTES)]
    if getattr(message, "byte_enables", ALL_BYTES) != ALL_BYTES:
        slots.append(message.byte_enables)
    return slots


class Packer:
    """Sending half: queues of messages to flits.

    Parameters
    ----------
    direction : Direction
    multi_header : bool
        Whether slots with several data headers (S2M formats H5 and G6) are used.

    Members
    -------
    credits : dict of message class to int
        Messages the peer has room for.
    """

    def __init__(self, direction, *, multi_header=False):
        self.direction = Direction(direction)
        self.multi_header = multi_header
        self.queues = {kind: deque() for kind in KINDS[self.direction]}
        self.credits = dict.fromkeys(self.queues, 0)
        self._data = deque()
        self._last = None

    def push(self, message):
        """Queue a message; TypeError if it does not travel in this direction."""
        if type(message) not in self.queues:
            raise TypeError(f"message must travel {self.direction.name}, not {message!r}")
        self.queues[type(message)].append(message)

    def gain(self, header):
        """Take the credits that a header of the other direction returns; counters saturate."""
        for kind in self.credits:
            count = credits_of(getattr(header, CREDIT_FIELDS[kind]))
            self.credits[kind] = min(self.credits[kind] + count, CREDITS_MAX)

    @property
    def all_data(self):
        """Whether the next flit has no header."""
        return len(self._data) >= SLOTS

    @property
    def ready(self):
        """Whether there is something to send."""
        return bool(self._data) or any(self._waiting(kind) for kind in self.queues)

    def _waiting(self, kind):
        return min(len(self.queues[kind]), self.credits[kind])

    def flit(self, **fields):
        """The 64 bytes of the next flit.

        Parameters
        ----------
        fields
            ``ak`` and credit fields of the header; none for an all-data flit.
        """
        if self.all_data:
            words = [self._data.popleft() for _ in range(SLOTS)]
            return b"".join(word.to_bytes(SLOT_BYTES, "little") for word in words)
        room = dict(LIMITS)
        codes, words = [], []
        for slot in range(SLOTS):
            if slot and self._data:
                codes.append(DATA_SLOT)
                words.append(self._data.popleft())
                continue
            code, messages = self._choose(slot == 0, room, fields)
            codes.append(code)
            words.append(formats(self.direction, slot == 0)[code].pack(messages))
        slots = {f"slot{slot}": code for slot, code in enumerate(codes)}
        return join(Header(**slots, **fields), *words)

    def _take(self, kind, room, fields):
        """Take the first message of a queue into the flit; its data follow."""
        self.credits[kind] -= 1
        room[kind] -= 1
        self._last = kind
        message = self.queues[kind].popleft()
        if kind in (Rwd, Drs):
            slots = _chunks(message)
            self._data.extend(slots)
            fields["sz"] = 1
            if len(slots) > SLOTS:
                fields["be"] = 1
        return message

    def _choose(self, first, room, fields):
        """(format code, messages) of a slot that is not data."""
        choose = self._requests if self.direction == Direction.M2S else self._responses
        return choose(first, room, fields)

    def _requests(self, first, room, fields):
        """Req and RwD take turns where both may go."""
        able = [kind for kind in (Req, Rwd) if room[kind] and self._waiting(kind)]
        if not able:
            return EMPTY[self.direction, first], [None]
        kind = able[0] if len(able) == 1 or self._last != able[0] else able[1]
        code = next(code for code, entry in formats(self.direction, first).items()
                    if entry.kinds == (kind,))
        return code, [self._take(kind, room, fields)]

    def _responses(self, first, room, fields):
        """One DRS with the completions that fit; several DRS while no completion waits."""
        lines = self._waiting(Drs)  # its data take the slots behind, so a flit has one at most
        done = min(self._waiting(Ndr), room[Ndr])
        if lines > 1 and not done and self.multi_header:
            wanted = (Drs,) * (2 if first else 3)
            counts = {Drs: min(lines, len(wanted))}
        elif lines:
            wanted = (Drs, Ndr) if first else (Drs, Ndr, Ndr)
            counts = {Drs: 1, Ndr: min(done, len(wanted) - 1)}
        else:
            wanted, counts = (Ndr, Ndr), {Ndr: done}
        messages = []
        for kind in wanted:
            taken = counts[kind] > 0
            messages.append(self._take(kind, room, fields) if taken else None)
            counts[kind] -= taken
        code = next(code for code, entry in formats(self.direction, first).items()
                    if entry.kinds == wanted)
        return code, messages


class Unpacker:
    """Receiving half: flits to messages, and the credits to give back.

    Parameters
    ----------
    direction : Direction
        Of the flits received.
    buffers : dict of message class to int
        How many messages of each kind there is room for; these credits are given first.
    """

    def __init__(self, direction, buffers):
        self.direction = Direction(direction)
        self.returns = {
            kind: check_int(f"buffers of {kind.__name__}", buffers[kind], 1, CREDITS_MAX)
            for kind in KINDS[self.direction]
        }
        self._granted = dict.fromkeys(self.returns, 0)
        self._headers = deque()  # of messages whose data are due: (class, word, byte enables)
        self._due = 0
        self._data = []

    @property
    def all_data(self):
        """Whether the next flit has no header."""
        return self._due >= SLOTS

    def release(self, kind):
        """One buffer is free again."""
        self.returns[kind] += 1

    def take_returns(self):
        """Credit fields for a header that leaves now."""
        fields = {}
        for kind in self.returns:
            fields[CREDIT_FIELDS[kind]] = code = credit_code(self.returns[kind])
            self.returns[kind] -= credits_of(code)
            self._granted[kind] += credits_of(code)
        return fields

    def feed(self, body):
        """The messages complete with this flit, in order.

        Parameters
        ----------
        body : bytes of 64
            All data, or a protocol flit.

        Raises
        ------
        FlitError
        """
        arrived = []
        if self.all_data:
            for low in range(0, BODY_BYTES, SLOT_BYTES):
                self._feed_data(int.from_bytes(body[low:low + SLOT_BYTES], "little"), arrived)
            return arrived
        header, words = split(body)
        room = dict(LIMITS)
        for slot, (code, word) in enumerate(zip(header.slots, words, strict=True)):
            due = slot > 0 and self._due > 0
            if due != (slot > 0 and code == DATA_SLOT):
                raise FlitError(Fault.ROLLOVER)
            if due:
                self._feed_data(word, arrived)
            else:
                self._feed_messages(header, slot == 0, code, word, room, arrived)
        return arrived

    def _feed_messages(self, header, first, code, word, room, arrived):
        known = formats(self.direction, first)
        if code not in known:
            raise FlitError(Fault.FORMAT)
        kinds = known[code].kinds
        for kind, head in zip(kinds, known[code].unpack(word), strict=True):
            if not head & 1:
                continue
            self._granted[kind] -= 1
            room[kind] -= 1
            if self._granted[kind] < 0:
                raise FlitError(Fault.OVERFLOW)
            if room[kind] < 0:
                raise FlitError(Fault.LIMIT)
            if kind in (Req, Ndr):
                arrived.append(kind.unpack(head))
            else:
                self._begin(header, kind, head, kinds.count(kind) > 1)

    def _begin(self, header, kind, head, several):
        """A data header: its data are due from the next data slot on."""
        if not header.sz:
            raise FlitError(Fault.SIZE)
        if header.be and (several or kind is Drs or head >> 1 & 15 != RwdOp.MEM_WR_PTL):
            raise FlitError(Fault.BYTE_ENABLES)
        self._headers.append((kind, head, header.be))
        self._due += SLOTS + header.be

    def _feed_data(self, word, arrived):
        kind, head, has_enables = self._headers[0]
        self._due -= 1
        self._data.append(word)
        if len(self._data) < SLOTS + has_enables:
            return
        self._headers.popleft()
        payload = {"data": b"".join(
            chunk.to_bytes(SLOT_BYTES, "little") for chunk in self._data[:SLOTS])}
        if has_enables:
            payload["byte_enables"] = self._data[SLOTS] & ALL_BYTES
        self._data = []
        arrived.append(kind.unpack(head, **payload))
