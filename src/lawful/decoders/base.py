"""Decoding: argmin over c in C(x) of F_x(c), with a certificate per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, device_of, put_rows, take_rows, to_numpy
from lawful._html import card, table
from lawful._small import peak
from lawful.sets.base import tolerance
from lawful.sets.restore import restore, snapped

MANY = 8  # rows and outputs that a notebook shows
NEAR = 1e-6  # how far, relative to what it came from, a point may be moved to put it on C

# Codes are kept while decoding (arrays of numbers travel through any array library) and named at the end.
OK, AVERAGED, LOW_CONFIDENCE, NOT_CONVERGED, INFEASIBLE = range(5)
STATUS = np.array(["ok", "averaged", "low_confidence", "not_converged", "infeasible"])


@dataclass(frozen=True)
class Decoding:
    """One entry per row: the answer and what is known about it.

    c             (m, T) the decoded outputs
    value         (m,)   F_x(c): for the square loss, the weighted squared distance from the unconstrained prediction
    residual      (m,)   violation at c of the law that was given, in the law's units
    law_residual  (m,)   the same for the exact law inside a tube or a penalty; elsewhere equal to residual
    code          (m,)   numbers of `status`, from good to bad
    iterations    (m,)   iterations used; 0 for closed forms
    margin        (m,)   F gap to the second-best distinct local solution that was seen; inf when there is none
    names         names of the outputs, for `to_frame`
    std           (m, T) standard deviation of each output at x before the law, where the regression knows one; else None.
                  It is computed when it is first asked for (by `spread`): for a kernel ridge that costs more than all the rest
    gap           (m,)   how much lower, at most, F is at another point of C (0: proven), where the decoder bounds it; else None
    samples       (m, n, T) draws from the prediction restricted to the law, where they were asked for; else None

    `status` of a row:

    ok              c obeys the law, and a condition of (local) optimality was checked
    averaged        a mean over C was asked for, and it is not in C
    low_confidence  as ok, but the regression carries no confidence there (some a_t(x) is 0 or less, up to rounding)
    not_converged   c obeys the law; that it is optimal is not shown
    infeasible      c does not obey the law: no point was found that does

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, KernelRidge, Sphere
    >>> d = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-6)).fit(X, Y).decode([[0.5]])
    >>> d.c.round(2), d.status, bool(d.residual[0] < 1e-8)
    (array([[0.88, 0.48]]), array(['ok'], dtype='<U14'), True)
    """

    c: Array
    value: Array
    residual: Array
    law_residual: Array
    code: Array
    iterations: Array
    margin: Array
    names: tuple[str, ...] | None = None
    spread: Callable[[], Array] | None = field(default=None, repr=False, compare=False)
    gap: Array | None = None
    samples: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def std(self) -> Array | None:
        return None if self.spread is None else self.spread()

    @property
    def status(self) -> np.ndarray:
        """(m,) strings: ok, averaged, low_confidence, not_converged, infeasible."""
        return STATUS[to_numpy(self.code)]

    def to_frame(self) -> Any:
        """The whole decoding as a pandas DataFrame, one row per input.

        A column of the certificate that has the name of an output (an output called status, say) is called
        decoding_status instead.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Decoding.to_frame needs pandas: pip install 'lawful[frame]'") from error
        names = self.names or tuple(f"y{t + 1}" for t in range(self.c.shape[1]))
        frame = pd.DataFrame(to_numpy(self.c), columns=list(names))
        fields = ["value", "residual", "status", "iterations", "margin", "law_residual"]
        for known in fields if self.gap is None else [*fields, "gap"]:
            column = known
            while column in names:
                column = f"decoding_{column}"
            frame[column] = to_numpy(getattr(self, known))
        if self.std is not None:
            for t, name in enumerate(names):
                column = f"{name}_std"
                while column in frame:
                    column = f"decoding_{column}"
                frame[column] = to_numpy(self.std)[:, t]
        return frame

    def with_(self, **changes: Any) -> Decoding:
        return replace(self, **changes)

    def _repr_html_(self) -> str:
        """For notebooks: how many rows have each status, and the first of them."""
        c, status = to_numpy(self.c), self.status
        names = self.names or tuple(f"y{t + 1}" for t in range(c.shape[1]))
        shown = len(names) if len(names) <= MANY else MANY - 1
        columns = [*names[:shown], *["…"] * (shown < len(names)), "residual", "margin", "status"]
        numbers = np.c_[to_numpy(self.residual), to_numpy(self.margin)]
        rows = [
            [*(f"{v:.4g}" for v in c[i, :shown]), *["…"] * (shown < len(names)), *(f"{v:.2g}" for v in numbers[i]), status[i]]
            for i in range(min(len(c), MANY))
        ]
        counts = ", ".join(f"{(status == name).sum()} {name}" for name in STATUS if (status == name).any()) or "no rows"
        worst = np.max(numbers[:, 0], initial=0.0, where=~np.isnan(numbers[:, 0]))
        more = f"<div>… and {len(c) - MANY} more rows</div>" if len(c) > MANY else ""
        return card(f"Decoding: {counts}; largest violation {worst:.1e}", table(columns, rows) + more)


FIELDS = ("c", "value", "residual", "law_residual", "code", "iterations", "margin")


def stack(parts: list[Decoding]) -> Decoding:
    """The decodings of consecutive batches as one.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import decode, stack
    >>> d = decode(F, Sphere().fit(np.ones((1, 2))))
    >>> stack([d, d]).c.shape
    (2, 2)
    """
    if len(parts) == 1:
        return parts[0]
    xp = array_namespace(parts[0].c)
    known = (*FIELDS, "gap") if all(part.gap is not None for part in parts) else FIELDS
    return Decoding(**{name: xp.concat([getattr(part, name) for part in parts]) for name in known})


Decode = Callable[..., Decoding]


def finish(
    F: Any,
    C: Any,
    c: Array,
    *,
    proven: Array | None = None,
    averaged: Array | None = None,
    lost: Array | None = None,
    iterations: Array | None = None,
    margin: Array | None = None,
    value: Array | None = None,
    measured: tuple[Array, Array] | None = None,
) -> Decoding:
    """The certificate. Every decoder returns through here, and nothing else says what is ok.

    A row is in C when `C.relative(c) <= TOL`, measured at the point that is returned; all rows are but `infeasible` and
    `averaged` ones. A decoder says what it alone can know: which rows have passed a test of local optimality (`proven`, all of
    them when None), which are means over C (`averaged`), for which there is no point of C to speak of (`lost`), and
    `C.relative(c)`, `C.residual(c)` where they were `measured` in a better way (a tube knows the point of its base set near c).
    """
    xp = array_namespace(c)
    m, place = c.shape[0], device_of(c)
    everyone = xp.ones(m, dtype=xp.bool, device=place)
    if averaged is None:
        averaged = ~everyone
    if measured is None:
        c, off, residual = polish(F, C, c, averaged)
    else:
        off, residual = measured
    inside = off <= tolerance(c)
    if measured is None and C.weighed:  # a mean in such a tube: nobody measured it in the weights of its row
        inside = inside & ~averaged
    if lost is not None:
        inside, averaged = inside & ~lost, averaged & ~lost
    worth = F.value(c) if value is None else value
    proven = (everyone if proven is None else proven) & xp.isfinite(worth)
    code = xp.full(m, OK, dtype=xp.int64, device=place)
    for condition, says in (
        (F.doubtful, LOW_CONFIDENCE),
        (~proven, NOT_CONVERGED),
        (~inside, INFEASIBLE),
        (~inside & averaged, AVERAGED),
    ):
        code = xp.where(condition, xp.full_like(code, says), code)
    return Decoding(
        c=c,
        value=worth,
        residual=residual,
        law_residual=C.law_residual(c) if C.relaxed else residual,
        code=code,
        iterations=xp.zeros(m, dtype=xp.int64, device=place) if iterations is None else iterations,
        margin=xp.full(m, xp.inf, dtype=c.dtype, device=place) if margin is None else margin,
    )


def polish(F: Any, C: Any, c: Array, averaged: Array) -> tuple[Array, Array, Array]:
    """c, C.relative(c), C.residual(c). Rows that miss C by rounding: again from where they are, and with zeros that are zero.

    A projection rounds relative to where it came from; repeated from its own result it rounds relative to that. A point may
    only move by rounding of what it came from: everything else would be another answer.
    """
    xp = array_namespace(c)
    measured, residual = C.measured(c)
    rows = xp.nonzero((measured > tolerance(c)) & ~averaged)[0]
    if rows.shape[0] == 0:
        return c, measured, residual
    part, now = C.rows(rows), take_rows(c, rows)
    reach = NEAR * xp.maximum(peak(abs(now)), peak(abs(take_rows(F.center, rows))))[:, None]
    best, best_off, least = now, take_rows(measured, rows), take_rows(residual, rows)
    zeros = xp.where(abs(now) <= reach * 1e-3, xp.zeros_like(now), now)
    for trial in (
        lambda: snapped(part, now),
        lambda: zeros,
        lambda: way_back(part, now),
        lambda: way_back(part, zeros),
    ):
        point = trial()
        off, left = part.measured(point)
        better = (off < best_off) & xp.all(abs(point - now) <= reach, axis=1)
        best, best_off = xp.where(better[:, None], point, best), xp.where(better, off, best_off)
        least = xp.where(better, left, least)
        if bool(xp.all(best_off <= tolerance(c))):
            break
    return put_rows(c, rows, best), put_rows(measured, rows, best_off), put_rows(residual, rows, least)


def way_back(C: Any, c: Array) -> Array:
    """A point of C next to c, by whatever the set offers; c itself where it offers nothing."""
    xp = array_namespace(c)
    safe = xp.where(xp.isfinite(c), c, xp.zeros_like(c))
    if hasattr(C, "nearest"):
        return C.nearest(C.nearest(safe))
    if hasattr(C, "equality") or hasattr(C, "inequality"):
        return restore(C, safe, xp.maximum(abs(safe), 1e-3 * peak(safe)[:, None]))[0]
    return safe


def in_law(d: Decoding) -> Array:
    """(m,) rows whose point is in C."""
    return (d.code != AVERAGED) & (d.code != INFEASIBLE)


def certified(d: Decoding) -> Array:
    """(m,) rows whose optimality is vouched for, as far as the law and the data go."""
    return (d.code == OK) | (d.code == LOW_CONFIDENCE)


class Decoder(BaseEstimator):
    """Says what it needs, and solves. `decode` is handed in so that composed sets need no import cycle.

    Parameters have the same names everywhere: `tol` (of the optimality condition), `max_iter`, `n_starts`.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import Enumeration
    >>> Enumeration().missing(F, Sphere().fit(np.ones((1, 2))))  # empty would mean that it can
    ['Sphere.points_']
    """

    needs_objective: tuple[str, ...] = ()
    needs_set: tuple[str, ...] = ()

    def missing(self, F: Any, C: Any) -> list[str]:
        """What this pair lacks for this decoder: empty means it can be solved."""
        return [f"{type(F).__name__}.{n}" for n in self.needs_objective if not hasattr(F, n)] + [
            f"{type(C).__name__}.{n}" for n in self.needs_set if not hasattr(C, n)
        ]

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        raise NotImplementedError
