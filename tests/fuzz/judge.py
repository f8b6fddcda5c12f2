"""What must hold after every call.

exception     only ValueError and TypeError, raised on purpose (the innermost frame is a `raise` of the library or of
              scikit-learn's validation), with a message of real words
warning       none but the library's own
hang          10 s of processor time
changed       arrays and tables that were handed over are bit for bit the same
violated      rows that are ok (or low_confidence: ok, with doubted weights; or not_converged: on the law, perhaps not the best
              point of it) obey the law to 1e-6 of its scale
not finite    and have finite outputs, values and residuals
residual      which is that of the returned point
contains      and which the set agrees with
value         F(c), where it is known without the library
row alone     a row by itself, and rows in reverse, give what they gave in the batch
refit         a set that had another law before gives what a fresh one gives
another dress masked arrays, pd.NA, float32, lists: the same numbers give the same answers
frame         to_frame() keeps every output
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import signal
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import lawful
from lawful.decoders import Decoding
from lawful.sets.relaxed import near_point
from lawful.sets.restore import constraints

from .calls import Call, FitCall, ProjectCall, RefitCall, at, fitted
from .laws import WITHIN, Evidence
from .optimum import improved
from .source import Handed, build

HOMES = (str(Path(lawful.__file__).parent), str(Path(sklearn.__file__).parent))
OWN_WARNINGS = (lawful.DecodingWarning, lawful.GridEdgeWarning)
AGREE = 1e-8  # one row = the same row in a batch
STATUSES = ("ok", "averaged", "low_confidence", "not_converged", "infeasible")


def terms_of(bound, c: np.ndarray) -> np.ndarray:
    """(m,) the largest term that cancels in a law, as far as its derivatives tell."""
    if not (hasattr(bound, "equality") or hasattr(bound, "inequality")):
        return np.zeros(len(c))
    return np.max(np.abs(constraints(bound, c)[1]) @ np.abs(c)[:, :, None], axis=(1, 2), initial=0.0)


class TooLong(BaseException):
    """The clock ran out; not an Exception, so that nobody catches it by accident."""


@contextlib.contextmanager
def clock(seconds: float) -> Iterator[None]:
    """So much processor time, whatever else the machine is doing."""

    def ring(signum: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Verdict:
    """What became of one call."""

    verb: str
    law: str
    statuses: dict[str, int] = field(default_factory=dict)
    error: str | None = None  # a clear error
    failures: list[tuple[str, str]] = field(default_factory=list)  # (kind, detail)
    notes: list[tuple[str, str]] = field(default_factory=list)  # not optimal, missed: counted apart
    call: int = -1  # its number in the case; -1 is the fit of the set

    def fail(self, kind: str, detail: str) -> None:
        self.failures.append((kind, detail))


def where(error: BaseException) -> traceback.FrameSummary:
    return traceback.extract_tb(error.__traceback__)[-1]


def clear(error: BaseException) -> bool:
    """Whether an exception was raised on purpose, by the library, in words."""
    if type(error) not in (ValueError, TypeError, lawful.DecodingError):
        return False
    frame = where(error)
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    words = [w for w in str(error).split() if w.strip(".,;:()'\"").isalpha()]
    enough = len(words) >= 4 or frame.filename.startswith(HOMES[1])  # the words of a user's regressor are not ours
    return frame.filename.startswith(HOMES) and line.startswith("raise") and enough


def place(error: BaseException) -> str:
    """The innermost frame in the library, and the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(HOMES[0])]
    spots = [f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.lineno}" for f in (*ours[-1:], frames[-1])]
    return " <- ".join(dict.fromkeys(reversed(spots)))


def judge(call: Call, rng: np.random.Generator, limit: float = 10.0) -> Verdict:
    """Make the call and look at everything that it promised."""
    verdict = Verdict(call.verb, call.law.name)
    handed = Handed()
    try:
        with clock(limit), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            d = call.run(handed)
        for w in caught:
            if not issubclass(w.category, OWN_WARNINGS) and not w.filename.startswith(
                HOMES[1]
            ):  # a user's own surrogate may warn
                name = Path(w.filename)
                verdict.fail(
                    "warning", f"{w.category.__name__}: {str(w.message)[:80]} ({name.parent.name}/{name.name}:{w.lineno})"
                )
    except TooLong as error:
        verdict.fail("hang", f"over {limit:g} s in {place(error)}")
        return verdict
    except Exception as error:
        if clear(error):
            verdict.error = f"{type(error).__name__}: {str(error)[:90]}"
        else:
            verdict.fail("exception", f"{type(error).__name__}: {str(error)[:80]} ({place(error)})")
        d = None
    if handed.changed():
        verdict.fail("changed", "an array that was handed over is not what it was")
    if d is not None:
        try:
            with clock(2 * limit), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                look(call, d, verdict, rng)
        except TooLong as error:
            verdict.fail("hang", f"a row of the batch alone takes over {2 * limit:g} s in {place(error)}")
        except Exception as error:
            verdict.fail("exception", f"afterwards: {type(error).__name__}: {str(error)[:80]} ({place(error)})")
    return verdict


def look(call: Call, d: Decoding, verdict: Verdict, rng: np.random.Generator) -> None:
    c = np.asarray(d.c, float)
    status = np.asarray(d.status)
    verdict.statuses = {s: int((status == s).sum()) for s in STATUSES}
    good = np.isin(status, ("ok", "low_confidence"))
    _finite(call, d, c, good, verdict)
    if call.kept():
        good |= status == "not_converged"
    if call.promised() and good.any():
        _obeys(call, d, c, good, verdict)
    if isinstance(call, FitCall):
        _tables(call, d, c, verdict)
    if isinstance(call, RefitCall):
        _same("refit", call, d, c, call.again(np.arange(len(c))), np.arange(len(c)), verdict)
    elif rng.random() < 0.3:
        rows = np.array([rng.integers(len(c))]) if rng.random() < 0.6 else np.arange(len(c))[::-1]
        if (other := call.again(rows)) is not None:
            _same("row alone" if len(rows) == 1 else "row order", call, d, c, other, rows, verdict)
    if call.promised():
        improved(call, c, status, verdict, rng)


def _finite(call: Call, d: Decoding, c: np.ndarray, good: np.ndarray, verdict: Verdict) -> None:
    for name, values in (("c", c), ("value", d.value), ("residual", d.residual)):
        values = np.asarray(values, float).reshape(len(c), -1)
        broken = good & ~(np.isfinite(values) | (call.law.free & (name == "residual") & (values == np.inf))).all(axis=1)
        if broken.any():
            row = int(np.flatnonzero(broken)[0])
            verdict.fail("not finite", f"{name} of row {row} is {np.asarray(values)[row]}")
    expected = call.value(c)
    if expected is None:
        return
    size = _size_of_value(call, c)
    with np.errstate(all="ignore"):
        wrong = good & (np.abs(np.asarray(d.value, float) - expected) > 1e-6 * np.abs(expected) + 1e-9 * size)
    if wrong.any() and not call.law.tube:
        row = int(np.flatnonzero(wrong)[0])
        verdict.fail("value", f"row {row}: {float(d.value[row]):.9g} against {expected[row]:.9g}")


def _size_of_value(call: Call, c: np.ndarray) -> np.ndarray:
    """The size of the terms of F(c): what rounding is relative to."""
    w = call.weights()
    if w is None:
        return np.full(len(c), np.inf)
    with np.errstate(all="ignore"):
        far = np.abs(c) + (np.abs(call._plain()[0]) if isinstance(call, ProjectCall) else np.abs(np.nan_to_num(_center(call))))
        return np.sum(np.abs(w) * far**2, axis=1) if w.ndim == 2 else np.einsum("mt,mts,ms->m", far, np.abs(w), far)


def _center(call: Call) -> np.ndarray:
    if isinstance(call, RefitCall):
        return call.points
    first, second = call.arrays
    return np.where(first != 0, second / np.where(first != 0, first, 1), second) if call.kind == "Quadratic" else second


def _obeys(call: Call, d: Decoding, c: np.ndarray, good: np.ndarray, verdict: Verdict) -> None:
    off = call.law.off(c, call.X, Evidence([], call.weights()))
    if call.law.tube and (good & ~(off <= WITHIN)).any():
        off = call.law.off(c, call.X, _evidence(call, c))
    wrong = good & ~(off <= WITHIN)
    if wrong.any():
        row = int(np.argmax(np.where(wrong, off, -1)))
        which = "violated" if not call.law.ambiguous else "violated (a name with two meanings)"
        verdict.fail(which, f"{int(wrong.sum())} of {len(c)} rows, row {row} off by {off[row]:.1e} of the law's scale, "
                     f"residual {float(d.residual[row]):.1e}")  # fmt: skip
    bound = call.bound()
    if call.law.tube or call.law.free:  # their residual is of another law than their point
        return
    held = np.asarray(bound.contains(c))
    if (good & ~held).any():
        row = int(np.flatnonzero(good & ~held)[0])
        verdict.fail(
            "contains",
            f"row {row} is {d.status[row]} but not contained; off by {off[row]:.1e}, residual {float(d.residual[row]):.1e}",
        )
    fresh = np.asarray(bound.residual(c), float)
    given = np.asarray(d.residual, float)
    with np.errstate(all="ignore"):
        # products round as they are cut, by the size of their terms
        rounding = 1e-12 * (1 + np.abs(fresh)) + 1e-14 * (np.max(np.abs(c), axis=1, initial=0.0) + terms_of(bound, c))
        apart = good & (np.abs(fresh - given) > 1e-6 * np.abs(fresh) + rounding)
    if apart.any():
        row = int(np.flatnonzero(apart)[0])
        verdict.fail("residual", f"row {row} says {given[row]:.3e}, at the returned point it is {fresh[row]:.3e}")


def _tables(call: FitCall, d: Decoding, c: np.ndarray, verdict: Verdict) -> None:
    """Masked arrays, pd.NA and float32 mean what plain tables with NaN mean; the table of results keeps every output."""
    everyone = np.arange(len(c))
    if (plain := call.plainly()) is not None:
        _same("another dress", call, d, c, plain, everyone, verdict)
    other = None
    with contextlib.suppress(TypeError):  # no decoder for a full metric
        other = call.with_diagonal()
    if other is not None:
        a, b = np.asarray(d.value, float), np.asarray(other.value, float)
        both = (np.asarray(d.status) == "ok") & (np.asarray(other.status) == "ok")
        size = (np.abs(c) + call.law.size) ** 2 @ call.options["loss"].kwargs["metric"]
        apart = both & (np.abs(a - b) > 1e-5 * (np.abs(a) + np.abs(b)) + 1e-9 * size)
        if apart.any():
            row = int(np.flatnonzero(apart)[0])
            verdict.notes.append(("diagonal metric", f"row {row}: {a[row]:.9g} as a vector, {b[row]:.9g} as a matrix"))
    frame = d.to_frame()
    names = list(d.names)
    if not frame.columns.is_unique or not np.array_equal(frame[names].to_numpy(float), c, equal_nan=True):
        verdict.fail("frame", f"to_frame() lost an output: {list(frame.columns)}")


def _evidence(call: Call, c: np.ndarray) -> Evidence:
    """Points of the law without some of its relaxations, found with the library's help; the judge checks them itself.

    A tube around a tube is measured from points of the inner one: nearest in the weights of the row, which may be another norm
    than that of the inner tube.
    """
    w = call.weights()
    sane = np.where(np.isfinite(c), c, 0.0)
    seen = np.ones_like(sane) if "Rankings" in call.law.name else sane  # comparisons are +1 or -1
    bases = [
        at(build(call.law.peeled(k), Handed()).fit(seen, outputs=call.names.outputs, inputs=call.names.inputs), call.X)
        for k in range(1, call.law.depth + 1)
    ]
    inner = [call.bound()]  # as it was fitted: on a steep law other seeds may find another point, too far away
    while inner:
        part = inner.pop()
        inner += getattr(part, "members_", [])  # the point of another member may be nearer than that of the tube's base
        if hasattr(part, "base_"):
            inner.append(part.base_)
            bases.append(part.base_)
    points = []
    objectives = [lawful.losses.Quadratic(np.ones_like(sane), sane)]
    if w is not None and w.ndim == 2:
        b = (
            call.arrays[1]
            if call.verb == "decode"
            else w * (call._plain()[0] if isinstance(call, ProjectCall) else call.points)
        )
        objectives += [lawful.losses.Quadratic(np.asarray(w, float), np.asarray(v, float)) for v in (b, w * sane)]
    elif w is not None:
        objectives += [lawful.losses.QuadraticForm(w, v) for v in (call.arrays[1], sane)]
    for base in bases:  # with the tube's own ruler
        with contextlib.suppress(Exception):
            points.append(np.asarray(near_point(base, sane, None), float))
    for F, base in itertools.product(objectives, bases):
        try:
            points.append(np.asarray(lawful.decoders.decode(F, base).c, float))
        except Exception:  # no help, then
            continue
    return Evidence(points, w)


def _same(kind: str, call: Call, d: Decoding, c: np.ndarray, other: Decoding, rows: np.ndarray, verdict: Verdict) -> None:
    """The same rows, decoded in other company: same status, same point to 1e-8."""
    here, there = np.asarray(d.status)[rows], np.asarray(other.status)
    if (here != there).any():
        k = int(np.flatnonzero(here != there)[0])
        verdict.fail(f"{kind}: status", f"row {rows[k]}: {here[k]} in the batch, {there[k]} otherwise")
        return
    a, b = c[rows], np.asarray(other.c, float)
    with np.errstate(all="ignore"):
        gap = np.max(np.abs(a - b) / (np.maximum(np.abs(a), np.abs(b)) + call.law.size), axis=1)
        first, second = np.asarray(d.value, float)[rows], np.asarray(other.value, float)
        size = _size_of_value(call, c)[rows] if call.value(c) is not None else 0.0
        # Votes for labels are solved for, not chosen: two that are equal are so to the rounding of the solution.
        vote = isinstance(call, FitCall) and getattr(call.options["loss"], "path", "") == "lawful.ZeroOne"
        equal = np.abs(first - second) <= (1e-7 if vote else 1e-10) * (np.abs(first) + np.abs(second)) + 1e-13 * size
    gap = np.where(np.isnan(a).all(axis=1) & np.isnan(b).all(axis=1), 0.0, np.where(np.isnan(gap), np.inf, gap))
    wrong = (here == "ok") & (gap > AGREE)
    if wrong.any():
        wrong &= gap > AGREE + 1000 * call.blur(rows)
    if wrong.any():
        k = int(np.argmax(np.where(wrong, gap, -1)))
        detail = f"row {rows[k]}: outputs differ by {gap[k]:.1e}, values {first[k]:.9g} and {second[k]:.9g}"
        if equal[k]:  # two minima, equal to rounding: either is right
            verdict.notes.append((f"{kind}: a tie", detail))
        else:
            verdict.fail(kind, detail)


def fitting(law: Any, names: Any, Y: np.ndarray, limit: float = 10.0) -> tuple[Any, Verdict]:
    """Fit the library's set; a verdict only where that goes wrong."""
    verdict = Verdict("fit of the set", law.name)
    handed = Handed()
    C = None
    try:
        with clock(limit), warnings.catch_warnings():
            warnings.simplefilter("error")
            C = fitted(law, names, Y, handed)
    except TooLong as error:
        verdict.fail("hang", f"over {limit:g} s in {place(error)}")
    except Exception as error:
        if clear(error):
            verdict.error = f"{type(error).__name__}: {str(error)[:90]}"
        else:
            verdict.fail("exception", f"{type(error).__name__}: {str(error)[:80]} ({place(error)})")
    if handed.changed():
        verdict.fail("changed", "an array that was handed over is not what it was")
    return C, verdict
