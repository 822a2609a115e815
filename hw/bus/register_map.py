"""Register maps, each described once: the hardware decodes from it, benches and pages read it."""

from dataclasses import dataclass

__all__ = ["ACCESSES", "Register", "find_address", "place", "to_markdown"]

ACCESSES = {
    "ro": "read-only", "rw": "read and write", "wo": "write-only",
    "w1c": "read; a bit written as 1 is cleared",
}


@dataclass(frozen=True)
class Register:
    """One 32-bit register.

    Parameters
    ----------
    name : str
    address : int
        Byte address, a multiple of 4.
    access : str
        One of ``ACCESSES``.
    text : str
        What it means.

    Raises
    ------
    ValueError
        The address is not one of a word, or the access unknown.
    """

    name: str
    address: int
    access: str
    text: str

    def __post_init__(self) -> None:
        if self.address < 0 or self.address % 4:
            raise ValueError(
                f"Register.address must be a multiple of 4, not {self.address!r} ({self.name})")
        if self.access not in ACCESSES:
            raise ValueError(f"Register.access must be one of {', '.join(ACCESSES)}, "
                             f"not {self.access!r} ({self.name})")


def place(rows, base: int, access: str) -> tuple[Register, ...]:
    """Registers of (name, text) at successive words from ``base``."""
    return tuple(Register(name, base + 4 * index, access, text)
                 for index, (name, text) in enumerate(rows))


def find_address(registers, name: str) -> int:
    """Byte address of a register.

    Raises
    ------
    ValueError
        There is no register of that name.
    """
    addresses = {register.name: register.address for register in registers}
    if name not in addresses:
        raise ValueError(f"register must be one of {', '.join(addresses)}, not {name!r}")
    return addresses[name]


def to_markdown(title: str, introduction: str, registers) -> str:
    """A register map as a Markdown page."""
    accesses = ", ".join(f"{short} {long}" for short, long in ACCESSES.items())
    lines = [
        f"# {title}", "", introduction, "", f"Access: {accesses}.", "",
        "| address | name | access | meaning |", "|---|---|---|---|",
        *(f"| 0x{r.address:03x} | `{r.name}` | {r.access} | {r.text} |" for r in registers),
    ]
    return "\n".join(lines) + "\n"
