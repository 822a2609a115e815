"""Bad input and bad memory: each command that fails says so and leaves no trace.

What follows it must be right in every bit, and so must the counters (`sim.attention.twin.compare`).
"""

import pytest

from golden.errors import Error
from golden.selection import Select
from hw.attention.contexts import ContextFault
from hw.config import EXPONENT_NAN, PAGE_TOKENS
from sim.attention import Context, Counters, Table, Wait
from sim.attention.random_work import random_append, random_query, weights
from sim.memory import MemoryFault
from tests.rtl.attention.scenes import Scene

READ_FAULTS = {
    MemoryFault.READ_SLVERR: Error.BUS, MemoryFault.READ_DECERR: Error.BUS,
    MemoryFault.READ_SHORT: Error.SHORT, MemoryFault.READ_LONG: Error.SHORT,
}
FAR_PAGE = (1 << 24) - 1


def filled_scene(name, *, seed, lengths=(37, 50, 0), **fields):
    """A scene whose contexts hold tokens, and whose context 3 is not valid."""
    scene = Scene(name, seed=seed, **fields)
    for context, length in enumerate(lengths):
        if length:
            scene.append(context, length)
    return scene


def check_unharmed(scene, contexts=(0, 1)):
    """Queries and an append that must be right."""
    for context in contexts:
        scene.random_queries(context)
        scene.query(context, summaries=False)
    scene.append(contexts[0], 3)
    scene.query(contexts[0], Select.BUDGET, 5, 9, summaries=True)


def finish(scene):
    scene.add(Counters())
    return scene.run()


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_refused_commands(name):
    """Whatever can be told without the data."""
    scene = filled_scene(name, seed=1)
    config, length = scene.config, scene.lengths[0]
    query = random_query(config, scene.rng, 0, length, codes=None)
    append = random_append(config, scene.rng, 0, 2)
    weight = weights(config)[0]
    refused = {
        "unknown query": lambda: scene.query(3),
        "index above the table": lambda: scene.query(0x1234),
        "empty": lambda: scene.query(2),
        "visible": lambda: scene.query(0, visible=length + 1),
        "visible far above": lambda: scene.query(0, visible=0xFFFFFFFF),
        "budget": lambda: scene.query(0, Select.BUDGET, length - 1, 2),
        "budget of the visible": lambda: scene.query(0, Select.BUDGET, 4, 5, visible=8),
        "budget far above": lambda: scene.query(0, Select.BUDGET, (1 << 20) - 1, 0),
        "append to unknown": lambda: scene.append(3, 4, fails=Error.CONTEXT),
        "capacity": lambda: scene.append(0, 129 - length, fails=Error.CAPACITY),
        "capacity far above": lambda: scene.raw(
            append, count=0xFFFFFFFF, fails=Error.CAPACITY),
        "no tokens": lambda: scene.raw(append, count=0, fails=Error.DATA),
        "weights past the end": lambda: scene.raw(
            weight, index=config.encoder_sets * config.code_bits + 1, fails=Error.CAPACITY),
        "no weights": lambda: scene.raw(weight, count=0, fails=Error.DATA),
        "opcode": lambda: scene.raw(query, opcode=5, fails=Error.OPCODE),
    }
    for refuse in refused.values():
        refuse()
        scene.random_queries(0)
    check_unharmed(scene)
    results = finish(scene)
    errors = {result.error for result in results if hasattr(result, "error")}
    assert errors == {Error.NONE, Error.OPCODE, Error.CONTEXT, Error.EMPTY, Error.VISIBLE,
                      Error.BUDGET, Error.CAPACITY, Error.DATA}


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_malformed_data(name):
    """Data that end early, in a record or between two, or go on too long; and NaN exponents."""
    scene = filled_scene(name, seed=2)
    config, rng = scene.config, scene.rng
    coded = rng.integers(0, 2, (config.group, config.code_bits))
    for cut in (1, 2, 3, -1, -9):
        for codes in (None, coded):
            query = random_query(config, rng, 0, 37, codes=codes)
            scene.raw(query, cut=cut, fails=Error.DATA)
            scene.random_queries(0)
        # Tokens that would complete a page, and the first of a page.
        for context, count in ((0, 13), (1, 16)):
            scene.raw(random_append(config, rng, context, count), cut=cut, fails=Error.DATA)
            scene.random_queries(context)
        for operation in weights(config):  # the rows that are written are those already there
            scene.raw(operation, cut=cut, fails=Error.DATA)
        check_unharmed(scene)
    for token, side in ((0, "key_exponents"), (7, "value_exponents"), (12, "key_exponents")):
        append = random_append(config, rng, 1, 13)
        getattr(append, side)[token, -1] = EXPONENT_NAN
        scene.append_rows(append, fails=Error.EXPONENT)
        check_unharmed(scene, (1, 0))
    finish(scene)


@pytest.mark.parametrize("fault", READ_FAULTS)
def test_reads_that_fail(fault):
    """A fault in rows of keys, values or summaries, of queries between others in flight."""
    scene = filled_scene("tiny", seed=3, lengths=(52, 50, 33))
    error = READ_FAULTS[fault]
    row = scene.config.row_bytes
    for region in ("key", "value"):
        for position in (0, 20, 51):
            scene.fault(fault, scene.row_address(0, position, region), row)
            scene.query(1)
            scene.query(0, fails=error)
            scene.query(2, Select.BUDGET, 9, 9, summaries=True)
            scene.query(0, Select.BUDGET, 52, 0, want_output=False, fails=error)
            # The row is forced full, so that it is read whatever the codes say.
            scene.query(0, Select.BUDGET, recent=1, visible=position + 1, fails=error)
            scene.query(1, Select.BUDGET, 10, 20)
            scene.no_fault()
            check_unharmed(scene, (1, 0))
    scene.fault(fault, scene.row_address(0, 31), row)
    scene.query(0, logits_only=True, fails=error)
    scene.query(1, logits_only=True)
    scene.no_fault()
    entry = scene.entries[0]
    page = scene.table.pages[entry["table_base"] + 1]
    scene.fault(fault, entry["summary_base"] + page * entry["summary_page_stride"], 2 * row)
    scene.query(0, Select.DISTANCE, 0, 0, summaries=True, fails=error)
    scene.query(0, Select.DISTANCE, 0, 0, summaries=False)
    scene.no_fault()
    scene.query(0, Select.DISTANCE, 0, 0, summaries=True)
    check_unharmed(scene, (0, 2))
    finish(scene)


@pytest.mark.parametrize("fault", READ_FAULTS)
def test_code_lines_that_fail(fault):
    scene = filled_scene("streamed", seed=4, lengths=(52, 50, 33))
    # A burst covers all lines of so short a context, and begins at its first.
    for context, other in ((0, 1), (2, 0)):
        scene.fault(fault, scene.entries[context]["code_address"], scene.config.code_line_bytes)
        scene.query(other, Select.BUDGET, 9, 9)
        scene.query(context, fails=READ_FAULTS[fault])
        scene.query(context, Select.BUDGET, 9, 9, summaries=True, fails=READ_FAULTS[fault])
        scene.query(context, Select.DISTANCE, 30, 60, logits_only=True, fails=READ_FAULTS[fault])
        scene.query(1, summaries=True)
        scene.no_fault()
        check_unharmed(scene)
    finish(scene)


def test_rows_outside_their_window():
    """A block-table entry that leads out of the window, met by queries and by appends."""
    scene = filled_scene("tiny", seed=5, lengths=(52, 50, 33))
    base = scene.entries[0]["table_base"]
    pages = scene.table.pages
    for page in (0, 2, 3):
        scene.add(Wait(), Table(base=base + page, pages=[FAR_PAGE]))
        scene.query(1)
        scene.query(0, fails=Error.WINDOW)
        scene.query(0, Select.BUDGET, 52, 0, logits_only=True, fails=Error.WINDOW)
        if page:
            scene.query(0, visible=16 * page)
        scene.query(2, Select.BUDGET, 9, 9, summaries=True)
        scene.add(Wait(), Table(base=base + page, pages=[pages[base + page]]))
        check_unharmed(scene, (1, 0))
    # The append fails at its first token, at one that begins a page, and in a page by its window.
    for page, count in ((3, 4), (4, 30)):
        scene.add(Wait(), Table(base=base + page, pages=[FAR_PAGE]))
        scene.append(0, count, fails=Error.WINDOW)
        scene.add(Wait(), Table(base=base + page, pages=[pages[base + page]]))
        scene.append(0, count)
        check_unharmed(scene)
    for region in ("key", "value", "summary"):
        length, limit = scene.lengths[2], f"{region}_limit"
        scene.enter(2, length=length, **{limit: scene.entries[2][f"{region}_base"] + 1})
        count = PAGE_TOKENS - length % PAGE_TOKENS
        scene.append(2, count, fails=Error.WINDOW)
        scene.enter(2, length=length)
        scene.append(2, count)
        check_unharmed(scene, (2, 0))
    finish(scene)


@pytest.mark.parametrize("fault", [MemoryFault.WRITE_SLVERR, MemoryFault.WRITE_DECERR])
def test_writes_that_fail(fault):
    """After it, the unfinished page must be appended anew: its sums have counted what failed."""
    scene = filled_scene("tiny", seed=6, lengths=(37, 48, 33))
    for region, position in (("key", 38), ("value", 48), ("key", 52)):
        append = random_append(scene.config, scene.rng, 0, 20)
        whole = scene.lengths[0] // PAGE_TOKENS * PAGE_TOKENS
        rest = random_append(scene.config, scene.rng, 0, scene.lengths[0] - whole)
        scene.fault(fault, scene.row_address(0, max(position, scene.lengths[0]), region),
                    scene.config.row_bytes)
        scene.append_rows(append, fails=Error.WRITE)
        scene.no_fault()
        scene.query(0, Select.BUDGET, 9, 9, summaries=True)  # the length is what it was
        scene.enter(0, length=whole)
        if len(rest.keys):
            scene.append_rows(rest)
        scene.append_rows(append)
        check_unharmed(scene)
    # From the start of a page, the same command again will do.
    again = random_append(scene.config, scene.rng, 1, 20)
    scene.fault(fault, scene.row_address(1, 50), scene.config.row_bytes)
    scene.append_rows(again, fails=Error.WRITE)
    scene.no_fault()
    scene.append_rows(again)
    check_unharmed(scene, (1, 2))
    finish(scene)


def test_code_writes_that_fail():
    scene = filled_scene("streamed", seed=7, lengths=(32, 48, 33))
    again = random_append(scene.config, scene.rng, 0, 20)
    line = scene.config.code_line_bytes
    scene.fault(MemoryFault.WRITE_SLVERR, scene.entries[0]["code_address"] + 2 * line, line)
    scene.append_rows(again, fails=Error.WRITE)
    scene.no_fault()
    scene.query(0, Select.BUDGET, 9, 9, summaries=True)
    scene.append_rows(again)
    check_unharmed(scene)
    finish(scene)


def test_refused_contexts():
    """A context that is refused, or forgotten, is no context."""
    scene = filled_scene("tiny", seed=8, lengths=(37, 50, 20))
    bad = {
        "key_base": (scene.entries[2]["key_base"] + 1, ContextFault.ALIGNMENT),
        "capacity": (0, ContextFault.CAPACITY),
        "code_line": (1 << 20, ContextFault.CODES),
        "weight_set": (1, ContextFault.WEIGHTS),
        "table_base": (scene.config.table_pages, ContextFault.TABLE),
        "summary_limit": (1 << scene.config.address_bits, ContextFault.WIDTH),
    }
    for field, (value, fault) in bad.items():
        scene.enter(2, fails=fault, **{field: value})
        scene.query(2)  # golden, too, knows no such context now
        scene.random_queries(1)
        scene.enter(2)
        scene.append(2, 18)
        check_unharmed(scene, (2, 0))
    scene.add(Wait(), Context(index=2, entry={}, valid=False))
    scene.query(2)
    scene.query(1)
    results = finish(scene)
    assert results[-1]["contexts_rejected"] == len(bad)
    assert results[-1]["errors_context"] == len(bad) + 1
