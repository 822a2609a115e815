"""Checks of the fields of a configuration: what is wrong names owner, field, value and range."""

def is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def check_int(owner: str, name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{owner}.{name} must be an integer, not {value!r}")


def check_choice(owner: str, name: str, value: object, choices: tuple) -> None:
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{owner}.{name} must be one of {allowed}, not {value!r}")


def check_range(owner: str, name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{owner}.{name} must be in {low}..{high}, not {value!r}")
