"""Decoding: argmin over c in C(x) of F_x(c), with a certificate per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, to_numpy

# Codes are kept while decoding (arrays of numbers travel through any array library) and named at the end.
OK, LOW_CONFIDENCE, NOT_CONVERGED, INFEASIBLE = 0, 1, 2, 3
STATUS = np.array(["ok", "low_confidence", "not_converged", "infeasible"])


@dataclass(frozen=True)
class Decoding:
    """One entry per row: the answer and what is known about it.

    c           (m, T) the decoded outputs
    value       (m,)   F_x(c): for the square loss, the weighted squared distance from the unconstrained prediction
    residual    (m,)   violation of the law at c
    code        (m,)   0 ok, 1 low_confidence, 2 not_converged, 3 infeasible (`status` spells it out)
    iterations  (m,)   iterations used; 0 for closed forms
    margin      (m,)   F gap to the second-best distinct local solution that was seen; inf when there is none
    names       names of the outputs, for `to_frame`
    """

    c: Array
    value: Array
    residual: Array
    code: Array
    iterations: Array
    margin: Array
    names: tuple[str, ...] | None = None

    @property
    def status(self) -> np.ndarray:
        """(m,) strings: ok, low_confidence, not_converged, infeasible."""
        return STATUS[to_numpy(self.code)]

    def to_frame(self) -> Any:
        """The whole decoding as a pandas DataFrame, one row per input."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Decoding.to_frame needs pandas: pip install 'lawful[frame]'") from error
        names = self.names or tuple(f"y{t + 1}" for t in range(self.c.shape[1]))
        frame = pd.DataFrame(to_numpy(self.c), columns=list(names))
        for field in ("value", "residual", "status", "iterations", "margin"):
            frame[field] = to_numpy(getattr(self, field))
        return frame

    def with_(self, **changes: Any) -> Decoding:
        return replace(self, **changes)


FIELDS = ("c", "value", "residual", "code", "iterations", "margin")


def stack(parts: list[Decoding]) -> Decoding:
    """The decodings of consecutive batches as one."""
    if len(parts) == 1:
        return parts[0]
    xp = array_namespace(parts[0].c)
    return Decoding(**{field: xp.concat([getattr(part, field) for part in parts]) for field in FIELDS})


Decode = Callable[..., Decoding]


def finish(
    F: Any,
    C: Any,
    c: Array,
    *,
    code: Array | None = None,
    iterations: Array | None = None,
    margin: Array | None = None,
    value: Array | None = None,
    residual: Array | None = None,
) -> Decoding:
    """Fill in what a decoder did not compute itself. Every decoder returns through here.

    Residual and value are always measured on the returned c, never taken from the solver's own belief.
    """
    xp = array_namespace(c)
    m = c.shape[0]
    if code is None:
        code = xp.zeros(m, dtype=xp.int64, device=device_of(c))
    code = xp.where((code == OK) & F.doubtful, xp.full_like(code, LOW_CONFIDENCE), code)
    return Decoding(
        c=c,
        value=F.value(c) if value is None else value,
        residual=C.residual(c) if residual is None else residual,
        code=code,
        iterations=xp.zeros(m, dtype=xp.int64, device=device_of(c)) if iterations is None else iterations,
        margin=xp.full(m, xp.inf, dtype=c.dtype, device=device_of(c)) if margin is None else margin,
    )


class Decoder:
    """Says what it needs, and solves. `decode` is handed in so that composed sets need no import cycle."""

    needs_objective: tuple[str, ...] = ()
    needs_set: tuple[str, ...] = ()

    def missing(self, F: Any, C: Any) -> list[str]:
        """What this pair lacks for this decoder: empty means it can be solved."""
        return [f"{type(F).__name__}.{n}" for n in self.needs_objective if not hasattr(F, n)] + [
            f"{type(C).__name__}.{n}" for n in self.needs_set if not hasattr(C, n)
        ]

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        raise NotImplementedError
