"""Running sums."""

from amaranth.hdl import Signal

__all__ = ["running_sums"]


def running_sums(m, terms, *, bits, name, levels_per_stage=None):
    """Add up unsigned terms: result k is the sum of terms 0 to k, modulo 2**bits.

    A tree of log2(len(terms)) levels of additions, in the caller's module.

    Parameters
    ----------
    m : Module
    terms : list of Value
    bits : int
        Width of a sum.
    name : str
        Prefix of the signals made.
    levels_per_stage : int or None
        A register follows each so many levels, and the last one: at least one in all. ``None``: no
        registers.

    Returns
    -------
    list of Signal
    """
    levels = (len(terms) - 1).bit_length()
    sums = list(terms)
    for level in range(max(1, levels)):
        is_last = level >= levels - 1
        registered = levels_per_stage is not None and (
            is_last or (level + 1) % levels_per_stage == 0)
        domain = m.d.sync if registered else m.d.comb
        following = []
        for place, value in enumerate(sums):
            total = Signal(bits, name=f"{name}_{level}_{place}")
            # Whoever lies in the upper half of its block adds the sum of the lower half.
            adds = level < levels and place >> level & 1
            domain += total.eq(value + sums[(place >> level << level) - 1] if adds else value)
            following.append(total)
        sums = following
    return sums
