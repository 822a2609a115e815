"""Error codes of a command's status, as the hardware numbers them."""

from enum import IntEnum

__all__ = ["BudgetError", "Error"]


class Error(IntEnum):
    """Why a command failed; the numbers are those of the status beat."""

    NONE = 0
    OPCODE = 1
    CONTEXT = 2
    EMPTY = 3
    VISIBLE = 4
    BUDGET = 5
    CAPACITY = 6
    WINDOW = 7
    BUS = 8
    SHORT = 9
    DATA = 10
    EXPONENT = 11
    WRITE = 12


class BudgetError(ValueError):
    """A budget asks for more tokens than are visible."""
