"""Random messages, and a pair of ports with a bad link between them."""

from hypothesis import strategies as st

from golden.memory.flits import Packer, Unpacker
from golden.memory.image import ALL_BYTES
from golden.memory.messages import Drs, Ndr, Req, Rwd, RwdOp
from golden.memory.retry import Port
from golden.memory.slots import Direction


def word(bits):
    return st.integers(0, (1 << bits) - 1)


LINES = st.binary(min_size=64, max_size=64)
REQUEST = {"tag": word(16), "snp_type": word(3), "meta_field": word(2), "meta_value": word(2),
           "tc": word(2), "ld_id": word(4)}
RESPONSE = {"opcode": word(3), "tag": word(16), "meta_field": word(2), "meta_value": word(2),
            "ld_id": word(4), "dev_load": word(2)}
reqs = st.builds(Req, opcode=word(4), address=word(47).map(lambda n: n << 5), **REQUEST)
writes = {"address": word(46).map(lambda n: n << 6), "data": LINES, "poison": word(1), **REQUEST}
rwds = st.one_of(
    st.builds(Rwd, opcode=word(4), **writes),
    st.builds(Rwd, opcode=st.just(RwdOp.MEM_WR_PTL), byte_enables=word(64), **writes))
ndrs = st.builds(Ndr, **RESPONSE)
drss = st.builds(Drs, data=LINES, poison=word(1), **RESPONSE)
MESSAGES = {Req: reqs, Rwd: rwds, Ndr: ndrs, Drs: drss}


def random_message(rng, kind, tag):
    """A message of a kind from ``random.Random``."""
    if kind is Req:
        return Req(opcode=rng.randrange(16), address=rng.getrandbits(47) << 5, tag=tag)
    if kind is Rwd:
        partial = rng.random() < 0.5
        return Rwd(opcode=RwdOp.MEM_WR_PTL if partial else RwdOp.MEM_WR, tag=tag,
                   address=rng.getrandbits(46) << 6, data=rng.randbytes(64),
                   byte_enables=rng.getrandbits(64) if partial else ALL_BYTES)
    if kind is Ndr:
        return Ndr(opcode=0, tag=tag, dev_load=rng.randrange(4))
    return Drs(opcode=0, tag=tag, data=rng.randbytes(64), dev_load=rng.randrange(4))


def ports(config, *, buffers=8, multi_header=False):
    """(host, device)."""
    to_host = Unpacker(Direction.S2M, {Ndr: buffers, Drs: buffers})
    to_device = Unpacker(Direction.M2S, {Req: buffers, Rwd: buffers})
    return (Port(config, Packer(Direction.M2S), to_host),
            Port(config, Packer(Direction.S2M, multi_header=multi_header), to_device))


class Wire:
    """One direction of the link: flits in order, some of them damaged, lost or repeated.

    Chances are per flit; each is flipped in 1..3 bits, or dropped, or arrives twice. Each flit
    time has its list of what arrives, so that the latency stays what it is.
    """

    def __init__(self, rng, latency, flip=0.0, lose=0.0, repeat=0.0):
        self.rng, self.chances = rng, (flip, lose, repeat)
        self.times = [[] for _ in range(latency)]
        self.damaged = self.lost = self.repeated = 0

    def put(self, flit):
        flip, lose, repeat = self.chances
        chance = self.rng.random()
        if flit is None:
            self.times.append([])
        elif chance < flip:
            self.damaged += 1
            bits = self.rng.sample(range(len(flit) * 8), self.rng.randint(1, 3))
            number = int.from_bytes(flit, "little") ^ sum(1 << bit for bit in bits)
            self.times.append([number.to_bytes(len(flit), "little")])
        elif chance < flip + lose:
            self.lost += 1
            self.times.append([])
        elif chance < flip + lose + repeat:
            self.repeated += 1
            self.times.append([flit, flit])
        else:
            self.times.append([flit])

    def get(self):
        return self.times.pop(0)


def run(rng, config, count, *, latency=7, ticks=20000, multi_header=False, take=0.7, **chances):
    """Send ``count`` messages of each kind both ways.

    Returns ``(sent, got, ports, wires)``: dicts of message class to list, at the end or when both
    ports are dead or time is up.
    """
    host, device = ports(config, multi_header=multi_header)
    sent, got = ({kind: [] for kind in MESSAGES} for _ in range(2))
    for port, kinds in ((host, (Req, Rwd)), (device, (Ndr, Drs))):
        for kind in kinds:
            sent[kind] = [random_message(rng, kind, tag) for tag in range(count)]
            for message in sent[kind]:
                port.packer.push(message)
    down, up = (Wire(rng, latency, **chances) for _ in range(2))
    for _ in range(ticks):
        down.put(host.send())
        up.put(device.send())
        for port, wire in ((device, down), (host, up)):
            assert port._buffer.free > 0
            for flit in wire.get():
                port.receive(flit)
            while port.inbox and rng.random() < take:
                message = port.inbox.popleft()
                got[type(message)].append(message)
                port.unpacker.release(type(message))
        if host.dead or device.dead:
            break
        if all(len(got[kind]) >= count for kind in MESSAGES):
            break
    return sent, got, (host, device), (down, up)
