"""Which context may touch which addresses. ``docs/memory_link.md`` section 7. All of it is ours."""

from dataclasses import dataclass
from enum import IntEnum

from golden.checks import check_int

__all__ = ["Refusal", "Window", "Refused", "Guard"]

CONTEXTS = 256
ADDRESS_LIMIT = 1 << 52


class Refusal(IntEnum):
    """Why a request is refused; a lower number outranks a higher one."""

    NONE = 0
    OUTSIDE = 1    # no window of the context holds the first byte
    SPAN = 2       # the request leaves the window
    READ_ONLY = 3  # a write


@dataclass(frozen=True, kw_only=True)
class Window:
    """Addresses that a context may read.

    Parameters
    ----------
    context : int
        0..255.
    base, size : int
        Bytes, multiples of 64; 1 line to 2^52 bytes.
    writable : bool
        Whether it may also write them.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of this form.
    """

    context: int
    base: int
    size: int
    writable: bool = True

    def __post_init__(self):
        check_int("context", self.context, 0, CONTEXTS - 1)
        check_int("base", self.base, 0, ADDRESS_LIMIT - 64)
        check_int("size", self.size, 64, ADDRESS_LIMIT - self.base)
        if self.base % 64 or self.size % 64:
            raise ValueError(f"base and size must be multiples of 64, "
                             f"not {self.base:#x} and {self.size:#x}")


@dataclass(frozen=True)
class Refused:
    """The request that was refused first."""

    reason: Refusal
    context: int
    address: int
    write: bool


class Guard:
    """Checks requests against windows; counts and logs those refused.

    Windows of different contexts may overlap (shared prefixes). Where those of one context do, the
    first in the list that holds the request's first byte decides.

    Parameters
    ----------
    windows : sequence of Window

    Members
    -------
    count : int
        Requests refused; saturates at 2^32 - 1.
    first : Refused or None
        The first of them since :meth:`clear`.
    """

    def __init__(self, windows):
        self.windows = tuple(windows)
        for window in self.windows:
            if not isinstance(window, Window):
                raise TypeError(f"windows must be Windows, not {window!r}")
        self.clear()

    def clear(self):
        """Forget count and log."""
        self.count, self.first = 0, None

    def check(self, context, address, size=64, write=False):
        """Whether a request passes.

        Parameters
        ----------
        context : int
            0..255.
        address, size : int
            Its bytes.
        write : bool

        Returns
        -------
        Refusal
            NONE if it passes.
        """
        check_int("context", context, 0, CONTEXTS - 1)
        check_int("address", address, 0, ADDRESS_LIMIT - 1)
        check_int("size", size, 1, ADDRESS_LIMIT)
        reason = self._reason(context, address, size, write)
        if reason:
            self.count = min(self.count + 1, (1 << 32) - 1)
            self.first = self.first or Refused(reason, context, address, bool(write))
        return reason

    def _reason(self, context, address, size, write):
        for window in self.windows:
            end = window.base + window.size
            if window.context == context and window.base <= address < end:
                if address + size > end:
                    return Refusal.SPAN
                return Refusal.READ_ONLY if write and not window.writable else Refusal.NONE
        return Refusal.OUTSIDE
