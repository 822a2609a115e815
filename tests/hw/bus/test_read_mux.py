import random

import pytest

from hw.bus import axi4, axil
from hw.bus.read_mux import ReadMux
from hw.bus.read_port import ReadPort
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel


def requests(rng, count):
    bursts = [(rng.randrange(60) * 16, rng.randrange(4)) for _ in range(count)]
    return [{"address": address, "length": length} for address, length in bursts]


def expected_beats(memory, bursts, width):
    return [{"data": int.from_bytes(memory.data[low:low + width], "little"), "response": 0,
             "last": int(beat == burst["length"])}
            for burst in bursts for beat in range(burst["length"] + 1)
            for low in [burst["address"] + beat * width]]


@pytest.mark.parametrize("ports", [1, 2, 3])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_every_port_sees_its_own_beats_in_order(ports, stall):
    rng = random.Random(ports)
    dut = ReadMux(address_bits=16, data_bytes=16, ports=ports)
    memory = MemoryModel(size=1024, shuffle=True, seed=ports)
    bursts = [requests(rng, 30) for _ in range(ports)]
    expected = [expected_beats(memory, bursts[index], 16) for index in range(ports)]
    result = run_stream_test(
        dut,
        feeds={f"port.{index}.ar": bursts[index] for index in range(ports)},
        sinks={f"port.{index}.r": len(expected[index]) for index in range(ports)},
        seed=ports, stall_probability=stall, testbenches=[memory.serve_axi_reads(dut.axi)])
    for index in range(ports):
        assert result.outputs[f"port.{index}.r"] == expected[index]


def test_latency_throughput_and_turns():
    dut = ReadMux(address_bits=16, data_bytes=16, ports=2)
    memory = MemoryModel(size=1024, latency=5)
    bursts = [{"address": 16 * n, "length": 0} for n in range(20)]
    result = run_stream_test(dut, feeds={"port.0.ar": bursts, "port.1.ar": bursts},
                             sinks={"port.0.r": 20, "port.1.r": 20}, seed=0,
                             testbenches=[memory.serve_axi_reads(dut.axi)])
    assert memory.reads == [(16 * n, 1) for n in range(20) for _ in range(2)]
    first = result.input_cycles["port.0.ar"][0]
    # One cycle to the bus, five in the memory, none back.
    assert result.output_cycles["port.0.r"] == [first + 6 + 2 * n for n in range(20)]
    assert result.output_cycles["port.1.r"] == [first + 7 + 2 * n for n in range(20)]
    assert memory.held_cycles == []


def test_requests_carry_the_axi_fields():
    dut = ReadMux(address_bits=16, data_bytes=32, ports=3)
    result = run_stream_test(dut, feeds={"port.2.ar": [{"address": 0x1240, "length": 3}]},
                             sinks={"axi.ar": 1}, seed=0)
    assert result.outputs["axi.ar"] == [{
        "id": 2, "addr": 0x1240, "len": 3, "size": 5, "burst": axi4.Burst.INCR, "cache": 3,
        "prot": 0, "qos": 0}]


def test_a_beat_for_no_port_is_dropped():
    dut = ReadMux(address_bits=16, data_bytes=16, ports=3)
    beats = [{"id": 3, "data": 1}, {"id": 1, "data": 2, "resp": 2, "last": 1}]
    result = run_stream_test(dut, feeds={"axi.r": beats}, sinks={"port.1.r": 1}, seed=0)
    assert result.outputs["port.1.r"] == [{"data": 2, "response": 2, "last": 1}]
    assert result.input_cycles["axi.r"] == [0, 1]


@pytest.mark.parametrize("arguments, error, message", [
    ({"address_bits": 0}, ValueError, "ReadSignature address_bits must be at least 1, not 0"),
    ({"data_bytes": 12}, ValueError, "ReadSignature data_bytes must be a power of two, not 12"),
    ({"data_bytes": 256}, ValueError, "ReadSignature data_bytes must be at most 128, not 256"),
    ({"ports": 0}, ValueError, "ReadMux ports must be at least 1, not 0"),
    ({"ports": "2"}, TypeError, "ReadMux ports must be an integer, not '2'"),
])
def test_read_mux_refuses(arguments, error, message):
    with pytest.raises(error, match=f"{message}$"):
        ReadMux(**{"address_bits": 32, "data_bytes": 16, "ports": 2, **arguments})


def test_signatures_refuse():
    with pytest.raises(ValueError, match="^axil.Signature data_bytes must be 4 or 8, not 16$"):
        axil.Signature(12, 16)
    with pytest.raises(ValueError, match="^axi4.Signature id_bits must be at least 1, not 0$"):
        axi4.Signature(32, 16, 0)


def test_channel_fields():
    assert list(axi4.Signature(32, 16, 2).members) == ["aw", "w", "b", "ar", "r"]
    assert list(axi4.WriteSignature(32, 16, 2).members) == ["aw", "w", "b"]
    assert list(axil.Signature(12, 4).members) == ["aw", "w", "b", "ar", "r"]
    assert list(ReadPort(32, 16).members) == ["ar", "r"]
