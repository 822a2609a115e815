import random

import pytest

from hw.bus import axi4
from hw.bus.write_mux import WriteMux
from hw.bus.write_port import WritePort
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import SLVERR, Fault, MemoryModel

REGION = 1024


def make_bursts(rng, port, count, *, width=16):
    """Requests and beats of bursts in a port's own region."""
    requests = [{"address": REGION * port + width * rng.randrange(REGION // width - 4),
                 "length": rng.randrange(4)} for _ in range(count)]
    beats = [{"data": rng.getrandbits(8 * width), "strobe": rng.getrandbits(width),
              "last": int(beat == request["length"])}
             for request in requests for beat in range(request["length"] + 1)]
    return requests, beats


def apply(memory, requests, beats):
    beats = iter(beats)
    for request in requests:
        for index in range(request["length"] + 1):
            beat = next(beats)
            for byte in range(16):
                if beat["strobe"] >> byte & 1:
                    memory[request["address"] + 16 * index + byte] = beat["data"] >> 8 * byte & 255


@pytest.mark.parametrize("ports", [1, 2, 3])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_every_port_writes_its_own_bytes(ports, stall):
    rng = random.Random(ports)
    dut = WriteMux(address_bits=16, data_bytes=16, ports=ports)
    memory = MemoryModel(size=REGION * ports, shuffle=bool(stall), seed=ports)
    expected = bytearray(memory.data)
    feeds, sinks, answers = {}, {}, {}
    for port in range(ports):
        requests, beats = make_bursts(rng, port, 25)
        apply(expected, requests, beats)
        feeds[f"port.{port}.aw"], feeds[f"port.{port}.w"] = requests, beats
        sinks[f"port.{port}.b"] = len(requests)
        answers[f"port.{port}.b"] = [{"response": 0}] * len(requests)
    result = run_stream_test(dut, feeds=feeds, sinks=sinks, seed=ports, stall_probability=stall,
                             testbenches=[memory.serve_axi_writes(dut.axi)])
    assert memory.data == expected
    assert {name: result.outputs[name] for name in answers} == answers


def test_an_error_reaches_the_port_that_wrote():
    rng = random.Random(5)
    dut = WriteMux(address_bits=16, data_bytes=16, ports=3)
    memory = MemoryModel(size=3 * REGION, shuffle=True, seed=2)
    memory.write_faults.append(Fault(REGION, 2 * REGION, SLVERR))
    feeds = {}
    for port in range(3):
        feeds[f"port.{port}.aw"], feeds[f"port.{port}.w"] = make_bursts(rng, port, 10)
    result = run_stream_test(dut, feeds=feeds, sinks={f"port.{port}.b": 10 for port in range(3)},
                             seed=2, stall_probability=0.2,
                             testbenches=[memory.serve_axi_writes(dut.axi)])
    for port, response in enumerate([0, 2, 0]):
        assert result.outputs[f"port.{port}.b"] == [{"response": response}] * 10


def run_turns(*, length, count=12):
    """Two ports with bursts of one length all the time; what the bus carried, and when."""
    dut = WriteMux(address_bits=16, data_bytes=16, ports=2)
    feeds = {}
    for port in range(2):
        feeds[f"port.{port}.aw"] = [{"address": 16 * n, "length": length - 1}
                                    for n in range(count)]
        feeds[f"port.{port}.w"] = [{"data": 1000 * port + n, "strobe": 3,
                                    "last": int(n % length == length - 1)}
                                   for n in range(count * length)]
    return run_stream_test(dut, feeds=feeds, seed=0, sinks={
        "axi.aw": 2 * count, "axi.w": 2 * count * length})


@pytest.mark.parametrize("length", [1, 2, 5])
def test_latency_throughput_and_turns(length):
    result = run_turns(length=length)
    assert [burst["id"] for burst in result.outputs["axi.aw"]] == [0, 1] * 12
    expected = [1000 * port + n * length + beat
                for n in range(12) for port in range(2) for beat in range(length)]
    assert [beat["data"] for beat in result.outputs["axi.w"]] == expected
    first = result.input_cycles["port.0.aw"][0]
    assert result.output_cycles["axi.aw"][0] == first + 1
    # The first beat two cycles after its burst was granted, and then one in every cycle.
    assert result.output_cycles["axi.w"] == list(range(first + 2, first + 2 + 24 * length))


def test_a_port_waits_for_one_burst_of_each_other():
    dut = WriteMux(address_bits=16, data_bytes=16, ports=3)
    counts = [40, 40, 5]
    result = run_stream_test(
        dut, seed=3,
        feeds={**{f"port.{port}.aw": [{"address": 0, "length": 0}] * count
                  for port, count in enumerate(counts)},
               **{f"port.{port}.w": [{"last": 1}] * count for port, count in enumerate(counts)}},
        sinks={"axi.aw": 85, "axi.w": 85})
    ids = [burst["id"] for burst in result.outputs["axi.aw"]]
    assert ids == [0, 1, 2] * 5 + [0, 1] * 35


def test_data_may_be_offered_first_but_wait_for_their_burst():
    dut = WriteMux(address_bits=16, data_bytes=16, ports=2)
    result = run_stream_test(dut, feeds={"port.1.w": []}, sinks={"axi.w": 0}, seed=0,
                             inputs={"port.1.w.valid": 1, "port.0.w.valid": 1})
    assert result.outputs["axi.w"] == []


def test_requests_carry_the_axi_fields():
    dut = WriteMux(address_bits=16, data_bytes=32, ports=3)
    result = run_stream_test(dut, feeds={"port.2.aw": [{"address": 0x1240, "length": 3}]},
                             sinks={"axi.aw": 1}, seed=0)
    assert result.outputs["axi.aw"] == [{
        "id": 2, "addr": 0x1240, "len": 3, "size": 5, "burst": axi4.Burst.INCR, "cache": 3,
        "prot": 0, "qos": 0}]


def test_an_answer_for_no_port_is_dropped():
    dut = WriteMux(address_bits=16, data_bytes=16, ports=3)
    result = run_stream_test(dut, feeds={"axi.b": [{"id": 3, "resp": 2}, {"id": 1, "resp": 3}]},
                             sinks={f"port.{port}.b": port == 1 for port in range(3)}, seed=0)
    assert result.outputs["port.1.b"] == [{"response": 3}]
    assert result.input_cycles["axi.b"] == [0, 1]


@pytest.mark.parametrize("arguments, error, message", [
    ({"address_bits": 0}, ValueError, "WriteSignature address_bits must be at least 1, not 0"),
    ({"data_bytes": 12}, ValueError, "WriteSignature data_bytes must be a power of two, not 12"),
    ({"ports": 0}, ValueError, "WriteMux ports must be at least 1, not 0"),
    ({"bursts": 1}, ValueError, "WriteMux bursts must be at least 2, not 1"),
    ({"ports": "2"}, TypeError, "WriteMux ports must be an integer, not '2'"),
])
def test_write_mux_refuses(arguments, error, message):
    with pytest.raises(error, match=f"{message}$"):
        WriteMux(**{"address_bits": 32, "data_bytes": 16, "ports": 2, **arguments})


def test_signature():
    assert list(WritePort(32, 16).members) == ["aw", "w", "b"]
    with pytest.raises(ValueError, match="^WritePort data_bytes must be at least 1, not 0$"):
        WritePort(32, 0)
