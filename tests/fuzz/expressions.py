"""Formulas: a grammar, and an evaluation in extended precision that knows how large the terms are.

Evaluating a formula at a point gives four numbers for each row:

    v   its value
    s   its size: the sum of the absolute values of its terms after multiplying out (for a function f(u): |f(u)|)
    e   how much v moves when every variable moves by its own size, to first order: what rounding can do, up to eps
    g   its gradient in the outputs

A relation v = 0 (or v <= 0) is off by |v| / (s + 1e-4 e) (its positive part): at most 1e-6 means that it holds to 1e-6 of the
size of its terms, with 1e-10 of the variables' own size to spare for what is inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPARE = 1e-4  # of e, beside s
LONG = np.longdouble

UNARY: dict[str, tuple[Any, Any]] = {  # the function and its derivative
    "sin": (np.sin, np.cos),
    "cos": (np.cos, lambda u: -np.sin(u)),
    "tan": (np.tan, lambda u: 1 + np.tan(u) ** 2),
    "asin": (np.arcsin, lambda u: 1 / np.sqrt(np.maximum(1 - u**2, 1e-30))),
    "acos": (np.arccos, lambda u: -1 / np.sqrt(np.maximum(1 - u**2, 1e-30))),
    "atan": (np.arctan, lambda u: 1 / (1 + u**2)),
    "sinh": (np.sinh, np.cosh),
    "cosh": (np.cosh, np.sinh),
    "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2),
    "exp": (np.exp, np.exp),
    "log": (np.log, lambda u: 1 / u),
    "sqrt": (np.sqrt, lambda u: 0.5 / np.sqrt(np.maximum(u, 1e-300))),
    "abs": (np.abs, np.sign),
}
QUICK = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "atan2": np.arctan2}
DOMAIN = {"asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "log": (0.0, np.inf), "sqrt": (0.0, np.inf)}


@dataclass
class Value:
    """v, s, e of shape (m,) and g of shape (m, T); see the module's docstring."""

    v: np.ndarray
    s: np.ndarray
    e: np.ndarray
    g: np.ndarray

    def off(self, inequality: bool) -> np.ndarray:
        """(m,) the violation relative to the terms; infinite outside the domain."""
        amount = np.maximum(self.v, 0) if inequality else np.abs(self.v)
        scale = self.s + SPARE * self.e
        with np.errstate(all="ignore"):
            ratio = np.where(amount == 0, 0, amount / scale)
        # exp(exp(y1)) >= 1 holds where the left side is too large for any number
        return np.where(
            np.isfinite(self.v) | (inequality & (self.v == -np.inf)), np.where(np.isnan(ratio), np.inf, ratio), np.inf
        ).astype(float)


class Node:
    """A formula. `write(names)` prints it, `at(c, X, dtype)` evaluates it."""

    def write(self, names: dict[Node, str]) -> str:
        raise NotImplementedError

    def at(self, c: np.ndarray, X: np.ndarray | None, dtype: Any = LONG) -> Value:
        raise NotImplementedError

    def quick(self, c: np.ndarray, X: np.ndarray | None) -> Any:
        """The value alone, in float64, as a user would write it."""
        raise NotImplementedError

    def variables(self) -> set[Node]:
        raise NotImplementedError


@dataclass(frozen=True)
class Const(Node):
    value: float

    def write(self, names):
        return repr(self.value) if self.value >= 0 else f"({self.value!r})"

    def at(self, c, X, dtype=LONG):
        v = np.full(len(c), self.value, dtype)
        return Value(v, abs(v), np.zeros_like(v), np.zeros(c.shape, dtype))

    def quick(self, c, X):
        return self.value

    def variables(self):
        return set()


@dataclass(frozen=True)
class Var(Node):
    """Output t ("y") or input t ("x")."""

    kind: str
    t: int

    def write(self, names):
        return names[self]

    def at(self, c, X, dtype=LONG):
        v = (c if self.kind == "y" else X)[:, self.t].astype(dtype)
        g = np.zeros(c.shape, dtype)
        if self.kind == "y":
            g[:, self.t] = 1
        return Value(v, abs(v), abs(v), g)

    def quick(self, c, X):
        return (c if self.kind == "y" else X)[:, self.t]

    def variables(self):
        return {self}


@dataclass(frozen=True)
class Binary(Node):
    op: str
    left: Node
    right: Node

    def write(self, names):
        a, b = self.left.write(names), self.right.write(names)
        return f"atan2({a}, {b})" if self.op == "atan2" else f"({a} {self.op} {b})"

    def at(self, c, X, dtype=LONG):
        a, b = self.left.at(c, X, dtype), self.right.at(c, X, dtype)
        if self.op in "+-":
            sign = 1 if self.op == "+" else -1
            return Value(a.v + sign * b.v, a.s + b.s, a.e + b.e, a.g + sign * b.g)
        if self.op == "*":
            g = a.g * b.v[:, None] + b.g * a.v[:, None]
            return Value(a.v * b.v, a.s * b.s, abs(a.v) * b.e + abs(b.v) * a.e, g)
        if self.op == "/":
            v = a.v / b.v
            g = (a.g - v[:, None] * b.g) / b.v[:, None]
            v = np.where(np.isinf(v), np.nan, v)
            # A divisor too large for any number leaves nothing of the term, nor of what rounding does to it.
            e = np.where(np.isinf(b.v), abs(v), (a.e + abs(v) * (b.e + b.s)) / abs(b.v))
            return Value(v, a.s / abs(b.v), e, g)
        v = np.arctan2(a.v, b.v)
        square = a.v**2 + b.v**2
        g = (a.g * b.v[:, None] - b.g * a.v[:, None]) / square[:, None]
        return Value(v, abs(v), (abs(b.v) * (a.e + a.s) + abs(a.v) * (b.e + b.s)) / square, g)

    def quick(self, c, X):
        return QUICK[self.op](self.left.quick(c, X), self.right.quick(c, X))

    def variables(self):
        return self.left.variables() | self.right.variables()


@dataclass(frozen=True)
class Power(Node):
    base: Node
    exponent: float

    def write(self, names):
        n = int(self.exponent) if self.exponent == int(self.exponent) else self.exponent
        return f"({self.base.write(names)} ** {n if n >= 0 else f'({n})'})"

    def at(self, c, X, dtype=LONG):
        u, n = self.base.at(c, X, dtype), self.exponent
        whole = n == int(n)
        n = int(n) if whole else dtype(n)
        inside = u.v if whole else in_domain(u, 0.0, np.inf)
        v = np.where((inside == 0) & (n < 0), np.nan, inside**n)
        slope = n * inside ** (n - 1)
        size = u.s**n if whole and n > 0 else abs(v)
        return Value(v, size, abs(slope) * (u.e if whole and n > 0 else u.e + u.s), slope[:, None] * u.g)

    def quick(self, c, X):
        return self.base.quick(c, X) ** self.exponent

    def variables(self):
        return self.base.variables()


@dataclass(frozen=True)
class Unary(Node):
    name: str
    inner: Node

    def write(self, names):
        if self.name == "-":
            return f"(-{self.inner.write(names)})"
        return f"{self.name}({self.inner.write(names)})"

    def at(self, c, X, dtype=LONG):
        u = self.inner.at(c, X, dtype)
        if self.name == "-":
            return Value(-u.v, u.s, u.e, -u.g)
        f, slope_of = UNARY[self.name]
        inside = in_domain(u, *DOMAIN[self.name]) if self.name in DOMAIN else u.v
        v, slope = f(inside), slope_of(inside)
        return Value(v, abs(v), abs(slope) * (u.e + u.s), slope[:, None] * u.g)

    def quick(self, c, X):
        u = self.inner.quick(c, X)
        return -u if self.name == "-" else UNARY[self.name][0](u)

    def variables(self):
        return self.inner.variables()


def in_domain(u: Value, low: float, high: float) -> np.ndarray:
    """u.v, moved to the end of the domain where only rounding has carried it outside."""
    spare = 1e-14 * (u.s + u.e)
    v = np.where((u.v < low) & (u.v >= low - spare), low, u.v)
    return np.where((v > high) & (v <= high + spare), high, v)


@dataclass(frozen=True)
class Relation:
    """left op right, op one of = <= >= < >."""

    left: Node
    op: str
    right: Node

    def write(self, names: dict[Node, str]) -> str:
        return f"{strip(self.left.write(names))} {self.op} {strip(self.right.write(names))}"

    def difference(self) -> Node:
        """What must be 0, or at most 0."""
        return Binary("-", self.right, self.left) if self.op in (">=", ">") else Binary("-", self.left, self.right)

    @property
    def inequality(self) -> bool:
        return self.op != "="

    def at(self, c: np.ndarray, X: np.ndarray | None, dtype: Any = LONG) -> Value:
        with np.errstate(all="ignore"):
            return self.difference().at(c, X, dtype)

    def off(self, c: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        return self.at(c, X).off(self.inequality)

    def variables(self) -> set[Node]:
        return self.left.variables() | self.right.variables()


def strip(text: str) -> str:
    """Without the parentheses around the whole."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


# ------------------------------------------------------------------ the grammar


def number(rng: np.random.Generator, wide: bool) -> float:
    """A coefficient: mostly a few digits of order one, sometimes over many scales."""
    value = float(rng.integers(1, 5)) if rng.random() < 0.4 else float(np.round(rng.uniform(0.1, 3), 3))
    if wide and rng.random() < 0.3:
        value = float(f"{value * 10 ** rng.uniform(-6, 6):.3g}")
    return value if rng.random() < 0.7 else -value


def formula(rng: np.random.Generator, leaves: list[Node], depth: int, wide: bool = False) -> Node:
    """A random formula over these variables."""
    if depth == 0 or rng.random() < 0.15:
        leaf = leaves[rng.integers(len(leaves))]
        return leaf if rng.random() < 0.8 else Binary("*", Const(number(rng, wide)), leaf)
    kind = rng.choice(["+", "-", "*", "/", "**", "f", "safe", "const"], p=[0.22, 0.14, 0.18, 0.06, 0.2, 0.1, 0.05, 0.05])
    inner = formula(rng, leaves, depth - 1, wide)
    if kind in "+-*/":
        return Binary(str(kind), inner, formula(rng, leaves, depth - 1, wide))
    if kind == "**":
        return Power(
            inner, float(rng.choice([2, 2, 2, 3, 4, -1, 0.5, 1.5, -2], p=[0.3, 0.2, 0.1, 0.15, 0.08, 0.05, 0.05, 0.04, 0.03]))
        )
    if kind == "const":
        return Binary(str(rng.choice(["+", "-", "*"])), inner, Const(number(rng, wide)))
    if kind == "safe":  # functions that are kept inside their domain
        square = Binary("+", Const(1.0), Power(inner, 2.0))
        wrapped = [
            Unary("sqrt", square),
            Unary("log", square),
            Unary("asin", Unary("tanh", inner)),
            Unary("sqrt", Unary("abs", inner)),
        ]
        return wrapped[rng.integers(len(wrapped))]
    name = str(rng.choice([*UNARY, "atan2", "-"]))
    if name == "atan2":
        return Binary("atan2", inner, formula(rng, leaves, depth - 1, wide))
    return Unary(name, inner)


def polynomial(rng: np.random.Generator, leaves: list[Node], wide: bool) -> Node:
    """A sum of a few monomials: spheres, ellipses, lemniscates, saddles, planes."""
    total: Node | None = None
    for _ in range(rng.integers(1, 4)):
        term: Node = Const(number(rng, wide))
        for _ in range(rng.integers(1, 3)):
            leaf = leaves[rng.integers(len(leaves))]
            power = int(rng.integers(1, 4))
            term = Binary("*", term, leaf if power == 1 else Power(leaf, float(power)))
        total = term if total is None else Binary("+", total, term)
    assert total is not None
    return total
