"""Laws as mathematics: MathML, which browsers draw by themselves, from the words of a law.

    law       = sum { (= | <= | >=) sum }        product = signed { (* | /) signed }        power = atom [ ** signed ]
    sum       = product { (+ | -) product }      signed  = { + | - } power                  atom  = number, name, f(...), (...)

The words are kept as they were written; only parentheses that a fraction bar, a root or an exponent makes needless are left
out. What cannot be read, or is very long, is shown as it stands. Everything is escaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from lawful._html import card
from lawful.sets.parser import COMPARISONS, FUNCTIONS, TOKEN

__all__ = ["LawShown", "law_html", "mathml"]

LONGEST = 600  # characters that are typeset
DEEPEST = 60  # levels
SHOWN = 12  # relations of one law
MOST_VALUES = 120  # characters of numbers below a formula
GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "zeta": "ζ",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
}
SIGNS = {"<=": "≤", "<": "≤", "≤": "≤", ">=": "≥", ">": "≥", "≥": "≥", "=": "=", "==": "="}
FORMULAS = {  # sets that are not written in words; c stands for the outputs
    "Reals": "c ∈ ℝᵀ, no law",
    "Box": "lower ≤ c ≤ upper",
    "Affine": "A c = b",
    "Sphere": "‖c − center‖ = radius",
    "Ball": "‖c − center‖ ≤ radius",
    "Ellipsoid": "Σ ((c − center) / axes)² = 1",
    "Simplex": "c ≥ 0, Σ c = total",
    "PointCloud": "c is one of the points",
    "Rankings": "the pairs form one total order",
    "Rotations": "RᵀR = I, det R = 1",
    "Stiefel": "QᵀQ = I",
    "PositiveSemidefinite": "M is symmetric, M ≽ 0",
    "CorrelationMatrices": "M ≽ 0, diagonal 1",
    "UnitQuaternions": "‖q‖ = 1, q and −q the same",
    "SE3": "a rotation and a translation",
    "Monotone": "c₁ ≤ c₂ ≤ … ≤ c_T",
    "ConvexShape": "second differences ≥ 0",
    "Hierarchy": "c = S · bottom series",
    "Margins": "a table with given row and column sums",
    "Flow": "what flows in flows out, within capacities",
}
JOINED = {"Intersection": "all of", "Union": "one of"}


class _Unreadable(ValueError):
    pass


def mathml(text: str) -> str:
    """One law as a `<math>` element; as `<code>` where it cannot be read."""
    try:
        if len(text) > LONGEST:
            raise _Unreadable
        return f'<math display="block">{_Setter(text).law()}</math>'
    except _Unreadable:
        shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        return f"<code>{escape(shown)}</code>"


class _Setter:
    """Each method reads one level of the grammar and returns its markup."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = self.depth = 0
        position = 0
        while position < len(text):
            token = TOKEN.match(text, position)
            if token is None:
                raise _Unreadable
            position = token.end()
            if token.lastgroup not in ("space", "line"):
                self.tokens.append((str(token.lastgroup), token.group(str(token.lastgroup)).replace("−", "-")))

    def next(self, *words: str) -> str | None:
        """The next token, if it is one of these words."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] in ("operator", "compare"):
            word = self.tokens[self.at][1]
            if word in words:
                self.at += 1
                return word
        return None

    def law(self) -> str:
        found = self.sum()
        while (word := self.next(*COMPARISONS)) is not None:
            found += f"<mo>{SIGNS[word]}</mo>{self.sum()}"
        if self.at != len(self.tokens):
            raise _Unreadable
        return found

    def sum(self) -> str:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Unreadable
        found = self.product()
        while (word := self.next("+", "-")) is not None:
            found += f"<mo>{'+' if word == '+' else '−'}</mo>{self.product()}"
        self.depth -= 1
        return found

    def product(self) -> str:
        parts = [self.signed()]
        while (word := self.next("*", "/")) is not None:
            right = self.signed()
            if word == "/":
                parts = [f"<mfrac><mrow>{_bare(''.join(parts))}</mrow><mrow>{_bare(right)}</mrow></mfrac>"]
            else:
                dot = "<mo>·</mo>" if right.startswith("<mn>") else "<mspace width='0.17em'></mspace>"
                parts += [dot, right]
        return "".join(parts)

    def signed(self) -> str:
        signs = ""
        while (word := self.next("+", "-")) is not None:
            signs += "<mo form='prefix'>−</mo>" if word == "-" else ""
        return signs + self.power()

    def power(self) -> str:
        base = self.atom()
        if self.next("**") is None:
            return base
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Unreadable
        exponent = self.signed()
        self.depth -= 1
        return f"<msup><mrow>{base}</mrow><mrow>{_bare(exponent)}</mrow></msup>"

    def atom(self) -> str:
        if self.next("(") is not None:
            inner = self.sum()
            if self.next(")") is None:
                raise _Unreadable
            return f"{OPEN}{inner}{CLOSE}"
        if self.at == len(self.tokens):
            raise _Unreadable
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return f"<mn>{escape(word)}</mn>"
        if kind == "function":
            return self.call(word)
        if kind in ("name", "quoted"):
            return _name(word) if kind == "name" else f"<mtext>{escape(word)}</mtext>"
        raise _Unreadable

    def call(self, name: str) -> str:
        if name not in FUNCTIONS or self.next("(") is None:
            raise _Unreadable
        arguments = [self.sum()]
        while self.next(",") is not None:
            arguments.append(self.sum())
        if self.next(")") is None:
            raise _Unreadable
        inner = "<mo>,</mo>".join(arguments)
        if name == "sqrt":
            return f"<msqrt>{inner}</msqrt>"
        if name == "abs":
            return f"<mrow><mo>|</mo>{inner}<mo>|</mo></mrow>"
        if name == "exp":
            return f"<msup><mi>e</mi><mrow>{inner}</mrow></msup>"
        return f"<mrow><mi>{name}</mi>{OPEN}{inner}{CLOSE}</mrow>"


OPEN, CLOSE = "<mrow><mo>(</mo>", "<mo>)</mo></mrow>"


def _bare(markup: str) -> str:
    """Without the parentheses around all of it."""
    inner = markup.removeprefix(OPEN).removesuffix(CLOSE)
    whole = len(inner) == len(markup) - len(OPEN) - len(CLOSE)
    level = 0
    for mark in re.findall(r"<mo>[()]</mo>", inner) if whole else []:
        level += 1 if "(" in mark else -1
        whole &= level >= 0
    return inner if whole else markup


def _name(name: str) -> str:
    """y12 has an index, sigma is a letter, feed_rate has one too; other words stand upright."""
    if name in GREEK:
        return f"<mi>{GREEK[name]}</mi>"
    match = re.fullmatch(r"([^\W\d_]|" + "|".join(GREEK) + r")(\d+)|([^\W_]+)_(\w+)", name)
    if match is None:
        return f"<mi>{escape(name)}</mi>"
    base, index = (match[1], match[2]) if match[1] else (match[3], match[4])
    kind = "mn" if index.isdigit() else "mi"
    return f"<msub>{_name(base) if base in GREEK else f'<mi>{escape(base)}</mi>'}<{kind}>{escape(index)}</{kind}></msub>"


# ---------------------------------------------------------------------- sets


def law_html(law: Any) -> str:
    """What a set demands, as markup: its equations typeset, its parts one below the other."""
    name = type(law).__name__
    if (words := _words(law)) is not None:
        if not words:
            return "<div>no equation: all outputs are allowed</div>"
        more = f"<div>… and {len(words) - SHOWN} more</div>" if len(words) > SHOWN else ""
        return "".join(f"<div>{mathml(word)}</div>" for word in words[:SHOWN]) + more
    if hasattr(law, "formulas"):
        formulas = [law.formulas] if isinstance(law.formulas, str) else list(law.formulas)
        shown = [str(f).replace("<->", "↔").replace("->", "→") for f in formulas[:SHOWN]]
        return "".join(f"<div><code>{escape(f)}</code></div>" for f in shown) + ("<div>…</div>" if formulas[SHOWN:] else "")
    if name in JOINED:
        parts = "".join(f"<li>{law_html(part)}</li>" for part in law.members)
        return f"<div>{JOINED[name]}</div><ul style='margin:.1em 0'>{parts}</ul>"
    if name == "Product":
        parts = "".join(f"<li>{escape(', '.join(map(str, block)))}: {law_html(part)}</li>" for part, block in law.blocks)
        return f"<ul style='margin:.1em 0'>{parts}</ul>"
    if hasattr(law, "base"):
        how = f"within {law.delta:g} of" if hasattr(law, "delta") else f"at a price of {law.mu:g}"
        return f"<div>{escape(how)}</div>{law_html(law.base)}"
    formula = FORMULAS.get(name)
    if formula is None:
        return f"<code>{escape(' '.join(repr(law).split()))}</code>"
    return f"<div>{escape(formula)}</div>{_values(law, formula)}"


def _values(law: Any, formula: str) -> str:
    """What the letters of a formula stand for, where that is short."""
    given = {key: value for key, value in law.get_params(deep=False).items() if re.search(rf"\b{key}\b", formula)}
    shown = [f"{key} = {' '.join(repr(np.asarray(value).tolist()).split())}" for key, value in given.items()]
    line = ", ".join(shown)
    return f'<div class="values">{escape(line)}</div>' if line and len(line) <= MOST_VALUES else ""


def _words(law: Any) -> list[str] | None:
    """The relations of a set that is written in words, or has learned them; None for any other."""
    given = getattr(law, "equations_", getattr(law, "equations", None))
    if given is None:
        return None
    items = list(given) if isinstance(given, list | tuple | set | np.ndarray) else [given]
    return [item if isinstance(item, str) else _sympy(item) for item in items]


def _sympy(item: Any) -> str:
    """A sympy relation, or expression that is zero, in our words."""
    sides = (getattr(item, "lhs", item), getattr(item, "rel_op", "=="), getattr(item, "rhs", 0))
    return f"{sides[0]} {'=' if sides[1] == '==' else sides[1]} {sides[2]}"


class LawShown:
    """In a notebook: the law typeset, above what scikit-learn shows of every estimator."""

    def _law(self) -> Any:
        fitted = getattr(self, "constraint_", None)
        return getattr(self, "constraint", None) if fitted is None else fitted

    def _law_title(self) -> str:
        return f"{type(self).__name__}: the law"

    def _repr_html_inner(self) -> str:
        law = self._law()
        shown = "" if law is None else card(self._law_title(), law_html(law))
        return shown + estimator_html_repr(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        output = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            output["text/html"] = self._repr_html_inner()
        return output
