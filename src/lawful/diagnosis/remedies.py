"""Why labels and an equation disagree: what single change to the data or to the equation makes them agree.

Tried for an equation that fails its test: an output in another unit, of the other sign, or exchanged with another output; a
number in the equation, a factor or an offset of an output, each at its least-squares value. A change is a remedy if the
equation then passes the same test. Simple ones (units, signs, exchanges) come before fitted ones, and of each kind the one that
leaves the smallest residuals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lawful.diagnosis.agreement import Residuals
from lawful.diagnosis.functions import Functions
from lawful.sets import Equations
from lawful.sets.names import mentioned

UNITS = (10.0, 100.0, 1000.0, 60.0, 3600.0)
LETTERS = "abcdefghkmpqrstuvw"  # names for a number that is set free
STEP = 1e-4  # of a numerical derivative
LITERAL = re.compile(r"(?<![\w.])\d+\.?\d*(?:[eE][+-]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Change:
    """Labels times a factor, plus an offset, in another order of the columns; and perhaps other words for the equation."""

    factor: np.ndarray
    offset: np.ndarray
    order: np.ndarray
    law: Functions | None = None

    @classmethod
    def none(cls, T: int) -> Change:
        return cls(np.ones(T), np.zeros(T), np.arange(T))

    def labels(self, Y: np.ndarray) -> np.ndarray:
        return (Y * self.factor + self.offset)[:, self.order]

    def covariance(self, S: np.ndarray) -> np.ndarray:
        return (S * self.factor[:, None] * self.factor)[np.ix_(self.order, self.order)]


@dataclass(frozen=True)
class Remedy:
    """kind: unit, sign, swap, constant, factor or offset."""

    kind: str
    sentence: str
    change: Change
    value: float
    error: float = np.nan  # standard error of a fitted value


After = Callable[[Change], Residuals]  # residuals of the equation after a change


def simple(law: Functions, p: int, used: list[int], names: list[str], T: int) -> Iterator[Remedy]:
    """Signs in the equation; units, signs and exchanged columns of the outputs."""
    for text, sentence in _other_signs(law, p):
        yield Remedy("sign", sentence, replace(Change.none(T), law=law.reworded(p, text)), -1.0)
    for t in used:
        for factor in [-1.0, *UNITS, *(1 / u for u in UNITS)]:
            change = Change.none(T)
            change.factor[t] = factor
            if factor == -1.0:
                yield Remedy("sign", f"{names[t]} seems to have the wrong sign", change, factor)
            else:
                much = f"{factor:g} times too small" if factor > 1 else f"{1 / factor:g} times too large"
                yield Remedy("unit", f"{names[t]} seems to be in another unit: it is {much}", change, factor)
    for t in used:
        for s in (s for s in range(T) if s > t or s not in used):
            change = Change.none(T)
            change.order[[t, s]] = s, t
            yield Remedy("swap", f"{names[t]} and {names[s]} seem to be exchanged", change, 0.0)


def fitted(law: Functions, p: int, used: list[int], names: list[str], spread: np.ndarray, after: After) -> Iterator[Remedy]:
    """A number in the equation, a factor or an offset of an output, at its least-squares value."""
    T = len(spread)
    yield from _numbers(law, p, T, after)
    for t in used:
        factor, offset = (lambda by, t=t: _scaled(T, t, by)), (lambda by, t=t: _moved(T, t, by * spread[t]))
        found = _least(factor, after)
        if found is not None:
            by, error = found
            yield Remedy("factor", f"{names[t]} times {1 + by:.4g} would fit", factor(by), 1 + by, error)
        found = _least(offset, after)
        if found is not None:
            by, error = found[0] * spread[t], found[1] * spread[t]
            yield Remedy("offset", f"{names[t]} {by:+.4g} would fit (a biased sensor?)", offset(found[0]), by, error)


def _other_signs(law: Functions, p: int) -> Iterator[tuple[str, str]]:
    """The equation with one + for a - or the other way round."""
    text = law.names[p]
    if not _in_words(law, p):
        return
    for match in list(re.finditer(r"(?<![eE*/^(=<>+-])\s*([+-])", text))[:12]:
        at = match.start(1)
        if not text[:at].strip():
            continue
        other = "-" if text[at] == "+" else "+"
        yield (
            text[:at] + other + text[at + 1 :],
            f"{other} instead of {text[at]} before `{text[at + 1 :].strip()[:20]}` would fit",
        )


def _in_words(law: Functions, p: int) -> bool:
    return isinstance(law.C, Equations) and bool(re.search("[=<>]", law.names[p]))


def _scaled(T: int, t: int, by: float) -> Change:
    change = Change.none(T)
    change.factor[t] = 1 + by
    return change


def _moved(T: int, t: int, by: float) -> Change:
    change = Change.none(T)
    change.offset[t] = by
    return change


def _numbers(law: Functions, p: int, T: int, after: After) -> Iterator[Remedy]:
    text = law.names[p]
    if not _in_words(law, p):
        return
    for match in list(LITERAL.finditer(text))[:12]:
        number = float(match.group())
        if number == 0.0 or text[: match.start()].rstrip().endswith(("**", "^")):  # exponents stay
            continue

        def worded(by: float, match: re.Match[str] = match, number: float = number) -> Change:
            new = text[: match.start()] + repr(number * (1 + by)) + text[match.end() :]
            return replace(Change.none(T), law=law.reworded(p, new))

        found = _least(worded, after)
        if found is not None:
            by, error = found
            value, error = number * (1 + by), abs(number) * error
            name = next(letter for letter in LETTERS if letter not in mentioned(text))
            free = text[: match.start()] + name + text[match.end() :]
            sentence = (
                f"{value:.4g} instead of {match.group()} would fit (+- {error:.2g}); "
                f"`{free}` with unknown=[{name!r}] estimates it"
            )
            yield Remedy("constant", sentence, worded(by), value, error)


def _least(change: Callable[[float], Change], after: After, rounds: int = 4) -> tuple[float, float] | None:
    """argmin over a number of the sum of squares of residuals in units of their noise, by Gauss-Newton; its standard error."""
    by = error = 0.0
    for _ in range(rounds):
        here, up, down = (after(change(by + h)) for h in (0.0, STEP, -STEP))
        if not len(here.rows) or len(up.rows) != len(here.rows) or len(down.rows) != len(here.rows):
            return None
        unit = np.sqrt(here.variance)
        slope, z = (up.g - down.g) / (2 * STEP) / unit, here.z(1.0)
        square = float(slope @ slope)
        if not np.isfinite(square) or square <= 0:
            return None
        by -= float(slope @ z) / square
        left = z - slope * (float(slope @ z) / square)
        error = float(np.linalg.norm(slope * left)) / square
        if not np.isfinite(by) or abs(by) > 1e3:
            return None
    return by, error
