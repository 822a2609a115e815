"""Where a line of a channel lies: line number to bank group, bank, row and column, and back.

From the lowest bit up a line number is cut into group, column (in bursts), bank and row, so that a
sequential stream goes round the bank groups (tCCD_S) and stays in its rows. Then bank and group are
XORed with the row's low bits, bank first, which spreads streams whose distance is a multiple of the
row size over all banks and keeps a one-to-one map.
"""

from typing import NamedTuple

import numpy as np

from golden.checks import check_integers

__all__ = ["Place", "line_of", "line_count", "place_of"]


class Place(NamedTuple):
    """Integer arrays or integers: group, bank in the group, row, column in bursts."""

    group: object
    bank: object
    row: object
    column: object


def line_count(organisation):
    """Lines, of one burst each, of the rank."""
    return organisation.capacity_bytes // organisation.burst_bytes


def _log2(value):
    return value.bit_length() - 1


def _hash(organisation, row):
    """What bank and group are XORed with."""
    return (row & organisation.banks - 1,
            row >> _log2(organisation.banks) & organisation.bank_groups - 1)


def place_of(line, organisation):
    """The :class:`Place` of line numbers, an int64 array of any shape (or one integer).

    ValueError outside 0..``line_count(organisation)`` - 1.
    """
    line = check_integers("line", line, 0, line_count(organisation) - 1)
    fields = []
    for size in (organisation.bank_groups, organisation.bursts, organisation.banks):
        fields.append(line & size - 1)
        line = line >> _log2(size)
    group, column, bank = fields
    bank_hash, group_hash = _hash(organisation, line)
    return Place(group ^ group_hash, bank ^ bank_hash, line, column)


def line_of(place, organisation):
    """The line numbers of a :class:`Place`: the inverse of :func:`place_of`."""
    sizes = (organisation.bank_groups, organisation.banks, organisation.rows, organisation.bursts)
    group, bank, row, column = (
        check_integers(name, value, 0, size - 1)
        for name, value, size in zip(Place._fields, place, sizes, strict=True)
    )
    bank_hash, group_hash = _hash(organisation, row)
    line = row
    for field, size in (
        (bank ^ bank_hash, organisation.banks), (column, organisation.bursts),
        (group ^ group_hash, organisation.bank_groups),
    ):
        line = line << _log2(size) | field
    return np.asarray(line)
