"""Link retry: one end of the link, flit by flit. ``docs/memory_link.md`` section 4.

Source: CXL 2.0 and later, 68-byte flit mode, link layer retry: the state machines, their counters,
the framed RETRY sequences and the rules of the retry buffer are the standard's. Sequence numbers
inside the CRC and the probe are ours: they catch flits that vanish or come twice, which the
standard leaves to the physical layer.
"""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

from golden.checks import check_int
from golden.memory.crc import BODY_BYTES, fits, gray, seal, ungray
from golden.memory.flits import MOST_ALL_DATA, Fault, FlitError
from golden.memory.replay import ReplayBuffer
from golden.memory.slots import Control, Header, control_flit, control_of

__all__ = ["Config", "State", "Port"]

FRAMES = 5
ACK_GROUP = 8
NUMBER = 56  # in the payload of a RETRY flit: the number of the retryable flit that is due next


@dataclass(frozen=True, kw_only=True)
class Config:
    """Sizes and times of a port; both ends agree on ``sequenced`` alone.

    Parameters
    ----------
    depth : int
        Entries of the retry buffer, 22..255; sequence numbers are 0..depth - 1.
    sequenced : bool
        Whether the CRC covers the sequence number (ours), or not (the standard's).
    timeout : int
        Flits sent after RETRY.Req until it is repeated; more than fit in a round trip, or the
        answer always comes too late.
    max_retries, max_reinits : int
        1..31: requests for the same flit until the physical layer must retrain, and how often it
        does until the link is given up.
    ack_threshold : int
        8..255 acknowledgements that force a credit flit.
    flush : int
        Flit times until a credit flit carries credits, or more than one acknowledgement.
    probe : int
        Flit times of silence until flits without acknowledgement are asked after; needs
        ``sequenced``.
    """

    depth: int = 32
    sequenced: bool = True
    timeout: int = 64
    max_retries: int = 10
    max_reinits: int = 10
    ack_threshold: int = 16
    flush: int = 8
    probe: int = 32

    def __post_init__(self):
        for name, low, high in (("depth", 22, 255), ("timeout", FRAMES + 1, 1 << 16),
                                ("max_retries", 1, 31), ("max_reinits", 1, 31),
                                ("ack_threshold", ACK_GROUP, 255), ("flush", 1, 1 << 16),
                                ("probe", 1, 1 << 16)):
            check_int(name, getattr(self, name), low, high)


class State(IntEnum):
    """What the receiving half is doing."""

    NORMAL = 0   # the standard's RETRY_LOCAL_NORMAL
    REQUEST = 1  # RETRY_LLRREQ: an error was seen, RETRY.Req goes next
    WAIT = 2     # RETRY_LOCAL_IDLE: for RETRY.Ack
    ABORT = 3    # RETRY_ABORT: the link is given up


class Port:
    """One end of the link: ``send()`` and ``receive()`` once for each flit time.

    Parameters
    ----------
    config : Config
    packer : Packer
        Of the messages to send.
    unpacker : Unpacker
        Of the flits received.

    Members
    -------
    inbox : deque of messages
        What has arrived, in order. Whoever takes one calls ``unpacker.release(type(message))``.
    state : State
    fault : Fault or None
        The rule the peer broke; the port is then dead.
    errors, replays, reinits : int
        Flits refused, replays done, retrainings asked for since reset.
    """

    def __init__(self, config, packer, unpacker):
        self.config, self.packer, self.unpacker = config, packer, unpacker
        self.inbox = deque()
        self.state = State.NORMAL
        self.fault = None
        self.errors = self.replays = self.reinits = 0
        self._buffer = ReplayBuffer(config.depth)
        self._script = deque()       # (control, payload): must leave without a break
        self._asked = None           # (retry number, sequence number) of the peer's RETRY.Req
        self._requested = 0, 0       # the same of ours
        self._peer_depth = None      # known once INIT has come
        self._expected = 0
        self._acks = 0
        self._retries = self._reinits = 0
        self._frames = 0
        self._waited = self._unflushed = self._silent = 0
        self._greeted = False

    @property
    def dead(self):
        """Whether the port has stopped for good."""
        return self.fault is not None or self.state == State.ABORT

    @property
    def idle(self):
        """Whether nothing is left to send, and nothing is being repeated."""
        return (not self.packer.ready and not self._script and not self._asked
                and not self._buffer.replaying and self.state == State.NORMAL)

    # Sending.

    def send(self):
        """The flit of this flit time: 66 bytes, or ``None``."""
        if self.dead:
            return None
        flit = self._next_flit()
        if self.dead:
            return None
        self._unflushed += self._acks > 1 or any(self.unpacker.returns.values())
        self._silent = 0 if flit is not None else self._silent + 1
        if self.state == State.WAIT and flit is not None:
            self._waited += 1
            if self._waited > self.config.timeout:
                self.state = State.REQUEST
        return flit

    def _next_flit(self):
        buffer, packer, config = self._buffer, self.packer, self.config
        if not self._script:
            self._begin_script()
        if self.dead:
            return None
        if self._script:
            return self._say(*self._script.popleft())
        if buffer.replaying:
            return self._seal(*buffer.replay())
        if packer.all_data:
            return self._new(packer.flit(), True)
        if not self._greeted:
            self._greeted = True
            return self._new(control_flit(Control.INIT_PARAM, 2 | config.depth - 1 << 24))
        flush = self._unflushed > config.flush or self._acks >= config.ack_threshold
        if flush and (buffer.free > 2 or (buffer.free == 2 and self._acks)):
            return self._new(self._credit_flit())
        if packer.ready and buffer.free > 2 + MOST_ALL_DATA:
            self._unflushed = 0
            ak = self._acks >= ACK_GROUP
            self._acks -= ACK_GROUP * ak
            return self._new(packer.flit(ak=int(ak), **self.unpacker.take_returns()))
        if self.state == State.WAIT:
            return self._say(Control.RETRY_IDLE)
        if config.sequenced and buffer.held and self._silent >= config.probe:
            return self._say(Control.RETRY_IDLE)
        return None

    def _begin_script(self):
        """Start RETRY.Ack if the peer asked, else RETRY.Req if an error was seen."""
        buffer = self._buffer
        if self._asked is not None:
            number, sequence = self._asked
            self._asked = None
            self.replays += 1
            payload = (buffer.held == 0) | number << 3 | sequence << 16
            self._frame(Control.RETRY_ACK, payload)
        elif self.state == State.REQUEST:
            # The peer takes whatever comes for data while an all-data flit is due.
            if buffer.next_all_data if buffer.replaying else self.packer.all_data:
                return
            if self._retries == self.config.max_retries and not self._retrain():
                return
            self._requested = self._retries + 1, self._expected
            payload = self._expected | self._requested[0] << 16 | self._reinits << 21
            self._frame(Control.RETRY_REQ, payload)

    def _retrain(self):
        """Count a retraining; False if there were too many."""
        if self._reinits == self.config.max_reinits:
            self.state = State.ABORT
            return False
        self._reinits += 1
        self.reinits += 1
        self._retries = 0
        return True

    def _frame(self, control, payload):
        self._script.extend([(Control.RETRY_FRAME, 0)] * FRAMES + [(control, payload)])

    def _say(self, control, payload=0):
        """A RETRY flit: it is not kept, and takes no number."""
        if control == Control.RETRY_REQ:
            self.state, self._waited = State.WAIT, 0
            self._retries = self._requested[0]
        number = self._buffer.read
        if self.config.sequenced:
            payload |= gray(number) << NUMBER
        return self._seal(control_flit(control, payload), number)

    def _new(self, body, all_data=False):
        return self._seal(body, self._buffer.store(body, all_data))

    def _seal(self, body, sequence):
        return seal(body, sequence if self.config.sequenced else None)

    def _credit_flit(self):
        self._unflushed = 0
        acks, self._acks = self._acks, 0
        return control_flit(Control.LLCRD, acks & 0xF7, ak=acks >> 3 & 1,
                            **self.unpacker.take_returns())

    # Receiving.

    def receive(self, flit):
        """Take the flit of this flit time; ``None`` if there is none."""
        if flit is None or self.dead:
            return
        body = flit[:BODY_BYTES]
        normal = self.state == State.NORMAL
        frames, self._frames = self._frames, 0
        retry = self._retry_of(flit)
        try:
            if retry:
                control, payload, due = retry
                if normal and not due:
                    self._refuse()
                self._retry_flit(control, payload, frames)
            elif normal and fits(flit, self._expected if self.config.sequenced else None):
                self._accept(body)
            elif normal:
                self._refuse()
        except FlitError as error:
            self.fault = error.fault

    def _retry_of(self, flit):
        """(control, payload, whether its number is due) of an intact RETRY flit, or ``None``."""
        control = control_of(flit[:BODY_BYTES])
        if control is None or control[0] & 15 != Control.RETRY_IDLE:
            return None
        if self.config.sequenced:
            due = gray(self._expected)
            number = control[1] >> NUMBER
            return (*control, number == due) if fits(flit, ungray(number)) else None
        # Without numbers, data may look like a RETRY flit.
        blind = self.state == State.NORMAL and self.unpacker.all_data
        return (*control, True) if not blind and fits(flit) else None

    def _refuse(self):
        self.errors += 1
        self.state = State.REQUEST

    def _retry_flit(self, control, payload, frames):
        match control:
            case Control.RETRY_FRAME:
                self._frames = min(frames + 1, FRAMES)
            case Control.RETRY_REQ if frames == FRAMES:
                if self._buffer.rewind(payload & 0xFF):
                    self._asked = payload >> 16 & 31, payload & 0xFF
            case Control.RETRY_ACK if frames == FRAMES:
                echo = payload >> 3 & 31, payload >> 16 & 0xFF
                if self.state == State.WAIT and echo == self._requested:
                    self.state = State.NORMAL
                    if payload & 1:
                        self._retries = self._reinits = 0

    def _accept(self, body):
        """The flit that was due, intact."""
        self._acks += 1
        self._retries = self._reinits = 0
        if self.unpacker.all_data:
            self.inbox.extend(self.unpacker.feed(body))
        else:
            self._accept_header(Header.unpack(int.from_bytes(body[:4], "little")), body)
        self._expected = (self._expected + 1) % self._peer_depth

    def _accept_header(self, header, body):
        greeting = self._peer_depth is None
        if header.control:
            control = control_of(body)
            if control is None or greeting != (control[0] == Control.INIT_PARAM):
                raise FlitError(Fault.CONTROL)
            if greeting:
                self._peer_depth = (control[1] >> 24 & 0xFF) + 1
                return
            self._buffer.acknowledge(control[1] & 0xF7 | header.ak << 3)
            self.packer.gain(header)
            return
        if greeting:
            raise FlitError(Fault.CONTROL)
        self._buffer.acknowledge(ACK_GROUP * header.ak)
        self.packer.gain(header)
        self.inbox.extend(self.unpacker.feed(body))
