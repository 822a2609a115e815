"""What golden says about the beats in which a head's state leaves the unit."""

import numpy as np

from golden.pipeline import normalise


def words_of(value, count):
    return [value >> (32 * place) & 0xFFFFFFFF for place in range(count)]


def state_words(config, state):
    """The STATE beats of a state."""
    lanes = config.result_lanes
    header = [*words_of(state.maximum, 1), state.exponent, *words_of(state.weight_sum, 2)]
    beats = [header + [0] * (lanes - 4)]
    flat = [word for value in state.values.tolist() for word in words_of(value, 2)]
    return beats + [flat[start:start + lanes] for start in range(0, len(flat), lanes)]


def output_words(config, state):
    flat = normalise(state).view(np.uint32).tolist()
    return [flat[start:start + config.result_lanes]
            for start in range(0, len(flat), config.result_lanes)]
