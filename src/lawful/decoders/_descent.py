"""One driver for batched iterations: every row goes its own way and leaves when it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lawful._array import Array, array_namespace, device_of, put_rows, take_rows

State = dict[str, Array]
Step = Callable[[Any, Any, State], State]
BURST = 25  # iterations between two compressions of the batch


def iterate(F: Any, C: Any, state: State, step: Step, max_iter: int) -> State:
    """Apply `step(F, C, state) -> state` until state["done"], or `max_iter`, row by row.

    Every entry of the state has rows first. A row that is done is frozen at once, so that the answer of a row never
    depends on its neighbours, and leaves the batch at the next compression. Adds state["iterations"].
    """
    xp = array_namespace(state["done"])
    place = device_of(state["done"])
    state = state | {"iterations": xp.zeros(state["done"].shape[0], dtype=xp.int64, device=place)}
    for first in range(0, max_iter, BURST):
        active = xp.nonzero(~state["done"])[0]
        if active.shape[0] == 0:
            break
        F_active, C_active = F.rows(active), C.rows(active)
        part = {name: take_rows(x, active) for name, x in state.items()}
        for _ in range(min(BURST, max_iter - first)):
            new = part | step(F_active, C_active, part)
            new["iterations"] = part["iterations"] + 1
            part = {name: _frozen(part["done"], part[name], new[name]) for name in part}
            if bool(xp.all(part["done"])):
                break
        state = {name: put_rows(x, active, part[name]) for name, x in state.items()}
    return state


def _frozen(done: Array, old: Array, new: Array) -> Array:
    xp = array_namespace(done)
    return xp.where(xp.reshape(done, (-1,) + (1,) * (old.ndim - 1)), old, new)


def norm(v: Array) -> Array:
    """(m,) Euclidean norm of each row."""
    xp = array_namespace(v)
    return xp.sqrt(xp.sum(v**2, axis=1))
