"""Expressions as a graph in which equal sub-expressions are one node, and the arithmetic that builds it.

A node is a tuple: ("y", t), ("x", j), ("nu", p) or ("v", t), a variable; ("sum", b, ((i, w), ...)), the number
b + sum w_i node_i; ("pow", i, k), a whole power k >= 2; ("mul", i, j), ("div", i, j), ("power", i, j), ("atan2", i, j); or
(function, i). Its number is its place in the list, and comes after those of its arguments.

While an expression is built it is a `Sum` (b + sum w_i node_i) or a `Product` (w times nodes), which belong to one owner
and grow in place, so that a sum of thousands of terms is one flat node and takes linear time.

No step widens the domain of an expression: a factor 0 removes a term only when the term exists for all real arguments
(`total`), else the term stays with weight 0 and is not a number where it does not exist; a quotient is never cancelled.
Constants are folded in floating point; one that overflows, or is no real number, is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

MAX_NODES = 100_000
MAX_EXPONENT = 100
WIDE = 1000  # a sum of more terms is not taken apart again
MAX_DEGREE = 3  # degrees in y: 0 (free of y), 1 (affine), 2 (quadratic), 3 (anything else)

UNARY: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "exp": math.exp, "log": math.log, "sqrt": math.sqrt,
    "abs": abs, "sign": lambda v: math.copysign(1.0, v) if v else 0.0, "inv": lambda v: 1.0 / v,
}  # fmt: skip
EVERYWHERE = {"sin", "cos", "atan", "sinh", "cosh", "tanh", "exp", "abs", "sign"}  # exist for all real arguments
VARIABLES = ("y", "x", "nu", "v")


class LawError(ValueError):
    """What is wrong with an expression, in words that follow its text."""


class Sum:
    """const + sum of weights times nodes."""

    __slots__ = ("const", "terms")

    def __init__(self, const: float = 0.0, terms: dict[int, float] | None = None) -> None:
        self.const, self.terms = const, {} if terms is None else terms

    def copy(self) -> Sum:
        return Sum(self.const, dict(self.terms))


class Product:
    """weight times nodes, not necessarily different."""

    __slots__ = ("factors", "weight")

    def __init__(self, weight: float, factors: list[int]) -> None:
        self.weight, self.factors = weight, factors


Draft = Sum | Product


class Graph:
    """Nodes without repetition. With `exact=False` (derivatives) constants may overflow, and 0 * inf is taken as 0."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self.index: dict[tuple[Any, ...], int] = {}
        self.degree: list[int] = []  # in y, at most MAX_DEGREE
        self.total: list[bool] = []  # exists for all real values of the variables
        self.singular: list[bool] = []  # may be infinite on the border of its domain
        self.exact = True
        self.limit: float = MAX_NODES

    def for_derivatives(self) -> Graph:
        """A copy to which derivatives may be added."""
        other = Graph()
        other.nodes, other.index = list(self.nodes), dict(self.index)
        other.degree, other.total, other.singular = list(self.degree), list(self.total), list(self.singular)
        other.exact, other.limit = False, math.inf
        return other

    # ------------------------------------------------------------------ nodes

    def node(self, *key: Any) -> int:
        """The number of this node, which is made if it is new."""
        found = self.index.get(key)
        if found is not None:
            return found
        if len(self.nodes) >= self.limit:
            raise LawError(f"has more than {MAX_NODES} different sub-expressions")
        degree, total, singular = self._properties(key)
        number = self.index[key] = len(self.nodes)
        self.nodes.append(key)
        self.degree.append(min(degree, MAX_DEGREE))
        self.total.append(total)
        self.singular.append(singular)
        return number

    def _properties(self, key: tuple[Any, ...]) -> tuple[int, bool, bool]:
        op, *arguments = key
        if op in VARIABLES:
            return int(op == "y"), True, False
        if op in ("mul", "gmul"):  # most of all nodes
            _, a, b = key
            return self.degree[a] + self.degree[b], self.total[a] and self.total[b], self.singular[a] or self.singular[b]
        children = self.arguments(key)
        degrees = [self.degree[i] for i in children]
        total = all(self.total[i] for i in children)
        singular = any(self.singular[i] for i in children)
        if op == "sum":
            return max(degrees, default=0), total, singular
        if op == "pow":
            return degrees[0] * arguments[1], total, singular
        degree = MAX_DEGREE if max(degrees) else 0
        if op == "div":
            return degrees[0] if degrees[1] == 0 else MAX_DEGREE, False, True
        if op == "power":
            base = self.nodes[arguments[0]]
            return degree, total and base[0] == "sum" and not base[2], True
        return degree, total and op in EVERYWHERE, singular or op in ("inv", "log")

    @staticmethod
    def arguments(key: tuple[Any, ...]) -> Iterable[int]:
        """The nodes that a node is made of."""
        if key[0] == "sum":
            return [i for i, _ in key[2]]
        if key[0] in VARIABLES:
            return ()
        return key[1:2] if key[0] == "pow" else key[1:]

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """All nodes that the roots are made of, arguments first."""
        seen = set(roots)
        stack = list(seen)
        while stack:
            for child in self.arguments(self.nodes[stack.pop()]):
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return sorted(seen)

    # ------------------------------------------------------------------ from drafts to nodes and back

    def variable(self, kind: str, number: float) -> Sum:
        """The variable of this kind and number, as a draft; of kind "number", that number."""
        return self.constant(number) if kind == "number" else Sum(0.0, {self.node(kind, number): 1.0})

    def constant(self, value: float) -> Sum:
        return Sum(self.real(value))

    def freeze(self, draft: Draft) -> int:
        """The node whose value is the draft's."""
        if isinstance(draft, Product):
            number = self._times_all(draft.factors)
            return number if draft.weight == 1.0 else self.node("sum", 0.0, ((number, draft.weight),))
        if draft.const == 0.0 and len(draft.terms) == 1:
            ((number, weight),) = draft.terms.items()
            if weight == 1.0:
                return number
        return self.node("sum", draft.const + 0.0, tuple(sorted(draft.terms.items())))  # no signed zero

    def as_sum(self, draft: Draft) -> Sum:
        return draft if isinstance(draft, Sum) else Sum(0.0, {self._times_all(draft.factors): draft.weight})

    def _as_product(self, draft: Draft) -> Product:
        if isinstance(draft, Product):
            return draft
        if draft.const == 0.0 and len(draft.terms) == 1:
            ((number, weight),) = draft.terms.items()
            return Product(weight, [number])
        return Product(1.0, [self.freeze(draft)])

    def _powers(self, factors: list[int], exponent: int = 1) -> dict[int, int]:
        """Each different factor with its whole power, all raised to the exponent."""
        powers: dict[int, int] = {}
        for i in factors:
            node = self.nodes[i]
            base, count = (node[1], node[2]) if node[0] == "pow" else (i, 1)
            powers[base] = powers.get(base, 0) + count * exponent
        return powers

    def _times_all(self, factors: list[int]) -> int:
        """The node of a product; mostly there is one factor."""
        return factors[0] if len(factors) == 1 else self._product(self._powers(factors))

    def _product(self, powers: dict[int, int]) -> int:
        """One node, a balanced tree in a fixed order: a*b is b*a."""
        if len(powers) == 2:
            (a, k), (b, n) = powers.items()
            if k == n == 1:
                return self._pair(a, b)
        if max(powers.values()) > MAX_NODES:
            raise LawError(f"has an exponent beyond {MAX_NODES}")
        level = [i if k == 1 else self.node("pow", i, k) for i, k in sorted(powers.items())]
        while len(level) > 1:
            pairs = [self._pair(a, b) for a, b in zip(level[::2], level[1::2])]
            level = pairs + level[len(pairs) * 2 :]
        return level[0]

    def _pair(self, a: int, b: int) -> int:
        guarded = not self.exact and (self.singular[a] or self.singular[b])
        return self.node("gmul" if guarded else "mul", min(a, b), max(a, b))

    # ------------------------------------------------------------------ arithmetic

    def add(self, left: Draft, right: Draft, weight: float = 1.0) -> Sum:
        """left + weight * right; `left` is changed in place. A very long sum on the right stays one term."""
        left = self.as_sum(left)
        right = self.as_sum(right)
        if len(right.terms) > WIDE:
            right = Sum(0.0, {self.freeze(right): 1.0})
        left.const = self.real(left.const + self._times(weight, right.const))
        terms, total = left.terms, self.total
        for i, w in right.terms.items():
            new = terms.get(i, 0.0) + weight * w
            if new == 0.0 and total[i]:
                terms.pop(i, None)
            else:
                terms[i] = new if math.isfinite(new) else self.real(new)
        return left

    def scale(self, draft: Draft, factor: float) -> Draft:
        """factor * draft, in place where there is a place."""
        if factor == 1.0:
            return draft
        if isinstance(draft, Sum) and len(draft.terms) > WIDE:
            draft = Product(1.0, [self.freeze(draft)])
        if factor == 0.0 or isinstance(draft, Sum):
            draft = self.as_sum(draft)
            terms = {i: self._times(w, factor) for i, w in draft.terms.items()}
            draft.terms = {i: w for i, w in terms.items() if w != 0.0 or not self.total[i]}
            draft.const = self._times(draft.const, factor)
            return draft
        draft.weight = self._times(draft.weight, factor)
        return draft

    def multiply(self, left: Draft, right: Draft) -> Draft:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Sum) and not one.terms:
                return self.scale(other, one.const)
        left, right = self._as_product(left), self._as_product(right)
        left.weight = self._times(left.weight, right.weight)
        left.factors += right.factors
        return self._weighted(left)

    def divide(self, left: Draft, right: Draft) -> Draft:
        if isinstance(right, Sum) and not right.terms:
            if right.const == 0.0:
                raise LawError("divides by zero")
            return self.scale(left, self.real(1.0 / right.const))
        right = self._as_product(right)
        if right.weight == 0.0:  # 1/(0 * log(y1)): nowhere defined
            raise LawError("divides by zero")
        below = self._times_all(right.factors)
        if isinstance(left, Sum) and not left.terms:
            return self._weighted(Product(self.real(left.const / right.weight), [self.node("inv", below)]))
        left = self._as_product(left)
        ratio = self.node("div", self._times_all(left.factors), below)
        return self._weighted(Product(self.real(left.weight / right.weight), [ratio]))

    def _weighted(self, draft: Product) -> Draft:
        return draft if draft.weight != 0.0 else self.scale(draft, 0.0)

    def power(self, base: Draft, exponent: Draft) -> Draft:
        if not isinstance(exponent, Sum) or exponent.terms:
            if isinstance(base, Sum) and not base.terms and base.const <= 0.0:
                raise LawError(f"raises {base.const:g} to a varying power; only positive numbers have all real powers")
            return Product(1.0, [self.node("power", self.freeze(base), self.freeze(exponent))])
        k = exponent.const
        if abs(k) > MAX_EXPONENT and self.exact:
            raise LawError(f"has an exponent beyond {MAX_EXPONENT}")
        if isinstance(base, Sum) and not base.terms:
            return Sum(self._fold(math.pow, base.const, k))
        if not k.is_integer():
            if abs(k) == 0.5:
                root = self.apply("sqrt", base)
                return root if k > 0 else self.divide(Sum(1.0), root)
            return Product(1.0, [self.node("power", self.freeze(base), self.freeze(Sum(k)))])
        if k < 0:
            return self.divide(Sum(1.0), self.power(base, Sum(-k)))
        if k == 0:
            return self.add(Sum(1.0), self.scale(base, 0.0))
        if k == 1:
            return base
        base, weight = self._as_product(base), 0.0
        if abs(math.log10(abs(base.weight) or 1.0)) * k < 300:
            weight = base.weight**k
        if weight == 0.0:  # (1e-200*y1)**2: the weight stays inside
            return Product(1.0, [self._product(self._powers([self.freeze(base)], int(k)))])
        return Product(weight, [self._product(self._powers(base.factors, int(k)))])

    def apply(self, name: str, *arguments: Draft) -> Draft:
        """A function of one argument, or atan2 of two."""
        if all(isinstance(a, Sum) and not a.terms for a in arguments):
            values = [a.const for a in arguments if isinstance(a, Sum)]
            return Sum(self._fold(math.atan2 if name == "atan2" else UNARY[name], *values))
        return Product(1.0, [self.node(name, *(self.freeze(a) for a in arguments))])

    # ------------------------------------------------------------------ constants

    def _fold(self, function: Callable[..., float], *values: float) -> float:
        try:
            value = function(*values)
        except (OverflowError, ValueError, ZeroDivisionError) as error:
            what = "overflows" if isinstance(error, OverflowError) else "is no real number"
            shown = ", ".join(f"{v:g}" for v in values)
            raise LawError(f"has a constant that {what}: {function.__name__}({shown})") from error
        return self.real(value)

    def real(self, value: float) -> float:
        """The value, if it is a number that a float can hold."""
        if self.exact and not math.isfinite(value):
            raise LawError("has a constant that overflows")
        return value

    def _times(self, a: float, b: float) -> float:
        value = a * b
        if value == 0.0 and a != 0.0 and b != 0.0 and self.exact:
            raise LawError("has a constant that underflows to zero")
        return self.real(value)
