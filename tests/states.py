"""States and their beats, for the tests of what merges them."""

from golden.state import State

__all__ = ["extreme_states", "full_state_beats", "make_state"]


def full_state_beats(state, lanes):
    """The beats of ``full_state_beat`` in which a state moves, ``lanes`` values in each."""
    groups = state.values.reshape(-1, lanes).tolist()
    return [{"maximum": state.maximum, "weight_sum": state.weight_sum, "exponent": state.exponent,
             "values": group, "last": int(place == len(groups) - 1)}
            for place, group in enumerate(groups)]


def make_state(rng, *, head_dim=32, octaves=70, exponents=70):
    """A state of the size of one over many tokens, near others or far away."""
    return State(
        maximum=int(rng.integers(-octaves, octaves + 1)),
        weight_sum=int(rng.integers(1 << 32, 1 << 54)),
        exponent=int(rng.integers(127, 127 + exponents + 1)),
        values=rng.integers(-(1 << 61), 1 << 61, head_dim) >> rng.integers(0, 62, head_dim))


def extreme_states(rng, *, head_dim=32):
    """The two that lie farthest apart, and fill their words."""
    return [State(maximum=maximum, weight_sum=(1 << 63) - 1, exponent=exponent,
                  values=rng.integers(-(1 << 62), 1 << 62, head_dim))
            for maximum, exponent in ((-(1 << 31) + 1, 0), ((1 << 31) - 1, 254))]
