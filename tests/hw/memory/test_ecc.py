import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal

from golden.memory import ecc
from hw.memory.ecc import LineDecoder, LineEncoder, WordStatus
from tests.hw.harness import run_stream_test, run_testbench

ENCODER_LATENCY = 2
DECODER_LATENCY = 4
WORD = 72


def as_int(array):
    return int.from_bytes(np.ascontiguousarray(array, np.uint8).tobytes(), "little")


def random_lines(rng, count):
    return rng.integers(0, 256, (count, 64), dtype=np.uint8)


def run_encoder(lines, **options):
    feed = [{"data": as_int(line), "poison": n % 3 == 0, "meta": n % 4}
            for n, line in enumerate(lines)]
    result = run_stream_test(LineEncoder(), feeds={"i": feed}, sinks={"o": len(feed)}, **options)
    checks = ecc.encode_line(lines)
    assert result.outputs["o"] == [{**line, "check": as_int(check)}
                                   for line, check in zip(feed, checks, strict=True)]
    return result


def flipped(lines, errors):
    """Lines as they are read, with lists of (word, bit) inverted in each."""
    words = lines.view("<u8").astype(np.uint64)
    checks = ecc.encode_line(lines)
    for n, places in enumerate(errors):
        for word, bit in places:
            words[n, word], checks[n, word] = ecc.flip(words[n, word], checks[n, word], bit)
    return words.astype("<u8").view(np.uint8), checks


def expected(lines, checks):
    golden = ecc.decode_line(lines, checks)
    for n, (line, status) in enumerate(zip(golden.data, golden.status, strict=True)):
        is_lost = bool((status == ecc.Status.UNCORRECTABLE).any())
        yield {"data": as_int(line), "poison": int(n % 5 == 0 or is_lost), "meta": n % 4,
               "status": [WordStatus(int(value)) for value in status],
               "corrected": int((status == ecc.Status.CORRECTED).sum()),
               "is_uncorrectable": int(is_lost)}


def stored(lines, checks):
    return [{"data": as_int(line), "check": as_int(check), "poison": n % 5 == 0, "meta": n % 4}
            for n, (line, check) in enumerate(zip(lines, checks, strict=True))]


def run_decoder(lines, errors, **options):
    read, checks = flipped(lines, errors)
    result = run_stream_test(LineDecoder(), feeds={"i": stored(read, checks)},
                             sinks={"o": len(lines)}, **options)
    assert result.outputs["o"] == list(expected(read, checks))
    return result


def assert_pace(result, latency):
    start = result.input_cycles["i"]
    assert start == list(range(start[0], start[0] + len(start)))
    assert result.output_cycles["o"] == [cycle + latency for cycle in start]


def test_check_bits_of_each_data_bit_at_full_pace():
    rng = np.random.default_rng(1)
    lines = np.zeros((72, 64), np.uint8)
    for bit in range(64):
        for word in range(8):
            place = word * 64 + (bit + word) % 64
            lines[bit, place // 8] |= 1 << place % 8
    lines[64:] = random_lines(rng, 8)
    assert_pace(run_encoder(lines, seed=1), ENCODER_LATENCY)


def test_encoder_stalls():
    run_encoder(random_lines(np.random.default_rng(2), 40), seed=2, stall_probability=0.4)


def test_every_single_error_of_every_word_at_full_pace():
    lines = random_lines(np.random.default_rng(3), WORD + 1)
    errors = [[(word, (bit + word) % WORD) for word in range(8)] for bit in range(WORD)]
    result = run_decoder(lines, [*errors, []], seed=3)
    assert_pace(result, DECODER_LATENCY)
    assert [line["data"] for line in result.outputs["o"]] == [as_int(line) for line in lines]
    assert [line["corrected"] for line in result.outputs["o"]] == [8] * WORD + [0]


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.regress)
                                       for seed in range(5, 9))])
def test_up_to_three_errors_with_stalls(seed):
    rng = np.random.default_rng(seed)
    lines = random_lines(rng, 60)
    errors = [[(word, int(bit)) for word in range(8) if rng.random() < 0.3
               for bit in rng.choice(WORD, rng.integers(1, 4), replace=False)] for _ in lines]
    run_decoder(lines, errors, seed=seed, stall_probability=0.3)


@pytest.mark.parametrize("count, lost", [(2, 1), (3, None)])
def test_one_word_with_more_errors(count, lost):
    rng = np.random.default_rng(count)
    lines = random_lines(rng, 32)
    errors = [[(n % 8, int(bit)) for bit in rng.choice(WORD, count, replace=False)]
              for n in range(32)]
    result = run_decoder(lines, errors, seed=count)
    found = {line["is_uncorrectable"] for line in result.outputs["o"]}
    assert found == ({lost} if lost is not None else {0, 1})


@pytest.mark.parametrize("unit, latency", [
    (LineEncoder, ENCODER_LATENCY), (LineDecoder, DECODER_LATENCY)])
def test_reset_in_mid_stream_leaves_nothing(unit, latency):
    dut, reset = unit(), Signal()
    seen, lines = [], []
    words = np.array([[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0]], "<u8").view(np.uint8)
    sent = stored(words, ecc.encode_line(words)) if unit is LineDecoder else [
        {"data": as_int(line)} for line in words]

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, sent[0])
        await ctx.tick().repeat(latency + 3)
        assert ctx.get(dut.o.valid)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for cycle in range(3 * latency):
            ctx.set(dut.i.valid, cycle == latency)
            ctx.set(dut.i.payload, sent[1])
            _, _, valid, line = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            seen.append(valid)
            if valid:
                lines.append(line.data)

    run_testbench(ResetInserter(reset)(dut), bench)
    assert seen == [int(cycle == 2 * latency) for cycle in range(3 * latency)]
    assert lines == [2]


def test_statuses_are_those_of_golden():
    assert {each.name: each.value for each in WordStatus} == {
        each.name: each.value for each in ecc.Status}
