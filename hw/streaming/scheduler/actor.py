"""How the parts of the route scheduler that decide work together.

They are state machines that take turns: whoever is called runs until it is done, while its caller
waits. So they share the chunk table and all else without an arbiter: what each does in a cycle is
a struct of `effects`, zero in those that rest, and the structs are simply joined by OR.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib.wiring import In, Out, Signature

from hw.config import StreamingConfig
from hw.streaming.scheduler.layouts import Task, effects, row

__all__ = [
    "Call", "actor_members", "read", "rewrite", "say", "serve", "join", "is_present", "lesser",
]


class Call(Signature):
    """A call as the caller sees it: ``start`` stays high until ``done``, in whose cycle ``result``
    is valid.

    Parameters
    ----------
    argument, result : shape-like or None
    """

    def __init__(self, argument=None, result=None):
        members = {"start": Out(1), "done": In(1)}
        if argument is not None:
            members["argument"] = Out(argument)
        if result is not None:
            members["result"] = In(result)
        super().__init__(members)


def actor_members(config: StreamingConfig) -> dict:
    """Members of every actor: the row shown, and what it does."""
    return {"row": In(row(config)), "effects": Out(effects(config))}


def read(actor, chunk):
    """Show the row of a chunk; ``row.shown`` falls until it is there."""
    return [actor.effects.read.eq(1), actor.effects.chunk.eq(chunk)]


def rewrite(actor, **fields):
    """Change fields of the word of the chunk shown; ``stream`` and ``compute`` are its tasks."""
    word = actor.effects.word
    names = {"stream": word.tasks[0], "compute": word.tasks[1]}
    return [
        actor.effects.write.eq(1),
        word.eq(actor.row.word),
        *((names[name] if name in names else word[name]).eq(value)
          for name, value in fields.items()),
    ]


def say(actor, decision):
    """Log a decision about the chunk shown."""
    return [actor.effects.say.eq(1), actor.effects.decision.eq(decision)]


def is_present(word):
    return (word.tasks[0] == Task.DONE) | (word.tasks[1] == Task.DONE)


def lesser(first, second):
    return Mux(first < second, first, second)


def join(values):
    """OR of structs of one layout."""
    return reduce(or_, (Value.cast(value) for value in values))


def serve(m, callee, callers):
    """Let callers that take turns share what they call."""
    m.d.comb += callee.start.eq(Cat(caller.start for caller in callers).any())
    if hasattr(callee, "argument"):
        m.d.comb += Value.cast(callee.argument).eq(join(caller.argument for caller in callers))
    for caller in callers:
        m.d.comb += caller.done.eq(callee.done)
        if hasattr(callee, "result"):
            m.d.comb += caller.result.eq(callee.result)
