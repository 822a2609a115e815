"""`docs/memory_dram.md` says what the code says."""

import re
from pathlib import Path

from golden.memory import ecc
from hw.memory.timings import DDR5_4800, LPDDR5_6400, RULES, Command

PAGE = (Path(__file__).parents[3] / "docs" / "memory_dram.md").read_text()


def rows(title):
    """Cells of the table rows in the section whose title starts so."""
    section = PAGE.split(f"\n## {title}")[1].split("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines() if line.startswith("| ")
    ]


def test_rules():
    found = [row for row in rows("3. Rules") if row[0].startswith("`")]
    assert [row[0].strip("`") for row in found] == [rule.name for rule in RULES]
    for row, rule in zip(found, RULES, strict=True):
        assert row[1] == ", ".join(command.name for command in rule.before)
        assert row[2] == ", ".join(command.name for command in rule.after)
        assert re.findall("[a-z_]+", row[4].split(",")[0]) == [
            term.strip("-") for term in rule.terms]
        assert [int(row[5]), int(row[6])] == [rule.cycles(DDR5_4800), rule.cycles(LPDDR5_6400)]


def test_fields():
    found = {row[0].strip("`"): row[2:] for row in rows("1. Parts") if row[0].startswith("`")}
    assert set(found) == set(vars(DDR5_4800)) - {"name", "organisation", "slots"}
    for name, values in found.items():
        expected = [getattr(DDR5_4800, name), getattr(LPDDR5_6400, name)]
        assert [int(value) for value in values] == expected


def test_commands():
    found = [row for row in rows("2. Commands") if row[0][0].isdigit()]
    names = [name for row in found for name in re.findall("[A-Z]+", row[1])]
    codes = [int(code) for row in found for code in re.findall(r"\d", row[0])]
    assert dict(zip(names, codes, strict=True)) == {
        command.name: command.value for command in Command}


def test_code():
    masks = [int(row[1].strip("`"), 16) for row in rows("5. SEC-DED") if row[0].isdigit()
             and row[1].startswith("`0x")]
    assert masks == list(ecc.ROWS)
    columns = PAGE.split("## 5.")[1].split("```")[1].split()
    assert [int(column, 16) for column in columns] == list(ecc.COLUMNS[:64])
