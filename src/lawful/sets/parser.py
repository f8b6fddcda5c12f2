"""From "y1**2 + y2**2 = 1" to a graph of expressions, by one pass over the text.

The language is small: numbers, names (in backticks when they are not plain ones), + - * / **, parentheses, the functions
below and comparisons, with the precedence that they have in Python. Tokens come from one regular expression, and two
stacks (operators and operands) replace recursion, so that time and memory grow with the length of the text alone.
Nothing is ever evaluated but arithmetic on numbers, in floating point: "9**9**9" is an overflow error.

Limits, checked before or while reading: MAX_LENGTH characters, MAX_DEPTH parentheses, functions, powers and signs inside
each other, MAX_CHAIN comparisons, MAX_NODES different sub-expressions, MAX_EXPONENT for numbers as exponents, constants
that a float can hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

from lawful.sets.laws.graph import UNARY, Draft, Graph, LawError, Sum

FUNCTIONS = {name: 1 for name in UNARY if name not in ("sign", "inv")} | {"atan2": 2}
CONSTANTS = {"pi": math.pi}
MAX_LENGTH, MAX_DEPTH, MAX_CHAIN = 200_000, 200, 100  # of one string
MAX_TOTAL = 4_000_000  # characters in all strings of a law

Variable = tuple[str, float]  # ("y", t) or ("x", j), counted from 0, or ("number", value)
Relation = tuple[Sum, str]  # (expression, "=" for expression = 0 or "<=" for expression <= 0)

TOKEN = re.compile(
    r"(?P<space>[ \t\f]+|\#[^\n]*)|(?P<line>[\r\n]+)"
    r"|(?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<function>[^\W\d]\w*)(?=[ \t]*\()|(?P<name>[^\W\d]\w*)|`(?P<quoted>[^`\n]+)`"
    r"|(?P<compare><=|>=|==|[<>=≤≥])|(?P<operator>\*\*|[-+*/(),−])"
)
# "+ 2.5*y7" where nothing binds more tightly to what follows: most of a long law, read in one step. Atomic groups (?>...) and
# possessive repetitions *+ never step back: the time stays linear in the length.
LINEAR = re.compile(
    r"[ \t]*+([-+][ \t]*+[-+]?+)[ \t]*+(?:(?>([0-9][0-9_]*\.?[0-9_]*(?:[eE][+-]?[0-9]+)?))[ \t]*+\*[ \t]*+)?+"
    r"(?>([^\W\d]\w*))(?=[ \t]*+(?:[-+)=<>]|\Z))"
)
COMPARISONS = {"=": "=", "==": "=", "<=": "<=", "<": "<=", "≤": "<=", ">=": ">=", ">": ">=", "≥": ">="}
BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "sign": 3, "**": 4}
HINT = "write it like 'y1**2 + y2**2 = 1' or '0 <= y1 <= 3'"


def parse(text: str, names: Mapping[str, Variable], graph: Graph | None = None) -> list[Relation]:
    """The relations of one string, such as "0 <= y1 <= 3" (two of them). `names` maps known names to variables."""
    check_length([text])
    return _Reader(text.strip(), names, Graph() if graph is None else graph).relations()


def check_length(items: Sequence[object]) -> None:
    """Limits on the strings among the items, before any work begins."""
    lengths = [len(item) for item in items if isinstance(item, str)]
    if max(lengths, default=0) > MAX_LENGTH:
        raise ValueError(f"Equations: a string of {max(lengths)} characters is too long (at most {MAX_LENGTH})")
    if sum(lengths) > MAX_TOTAL:
        raise ValueError(f"Equations: {len(items)} equations with {sum(lengths)} characters are too long (at most {MAX_TOTAL})")


class _Reader:
    """One pass over the tokens: `operators` and `operands` are the two stacks."""

    def __init__(self, text: str, names: Mapping[str, Variable], graph: Graph) -> None:
        self.text, self.names, self.graph = text, names, graph
        self.operands: list[Draft] = []
        self.operators: list[str] = []  # an operator, "(", or a function's name followed by "("
        self.calls: list[list[int]] = []  # for each open parenthesis: [arguments seen], empty where it is not a call
        self.depth = 0  # parentheses, powers and signs on the stack
        self.sides: list[Sum] = []
        self.kinds: list[str] = []

    def refuse(self, reason: str) -> NoReturn:
        raise ValueError(f"Equations: {_short(self.text)} {reason}")

    def relations(self) -> list[Relation]:
        try:
            self._read()
            pairs = zip(self.sides, self.kinds, self.sides[1:])
            return [self._relation(left, kind, right) for left, kind, right in pairs]
        except LawError as error:
            self.refuse(str(error))

    def _relation(self, left: Sum, kind: str, right: Sum) -> Relation:
        """A closed set: '<' means '<=' (errata: C must be closed)."""
        if kind == ">=":
            left, right = right, left
        return self.graph.add(left.copy(), right.copy(), -1.0), "=" if kind == "=" else "<="

    # ------------------------------------------------------------------ tokens

    def _read(self) -> None:
        position, complete = 0, False  # complete: an operand has just ended, an operator must follow
        while position < len(self.text):
            if complete and (linear := LINEAR.match(self.text, position)) and self._linear(*linear.groups()):
                position = linear.end()
                continue
            token = TOKEN.match(self.text, position)
            if token is None:
                self._strange(position)
            kind, word = token.lastgroup, token.group(token.lastgroup or 0)
            position = token.end()
            if kind == "space" or (kind == "line" and self.calls):
                continue
            if kind == "line":
                self.refuse("has several lines; give a list with one string for each equation")
            if kind == "compare":
                self._compare(word, complete)
                complete = False
            elif kind == "operator":
                complete = self._operator("-" if word == "−" else word, complete)
            else:
                if complete:
                    self.refuse(f"has {word[:40]!r} where an operator is expected; {HINT}")
                complete = self._operand(str(kind), word, self.text[position : position + 1])
        self._end_of_side(complete)
        if not self.kinds:
            self.refuse(
                f"has no '=', '<=' or '>='; write for instance '{self.text[:40]} = 0'" if self.sides else f"is empty; {HINT}"
            )

    def _linear(self, sign: str, number: str | None, name: str) -> bool:
        """Add a number times a name to the sum that is being read; False where that needs a closer look."""
        try:
            weight = 1.0 if number is None else float(number)
        except ValueError:
            return False
        if self.names.get(name, ("number",))[0] == "number" or not math.isfinite(weight):
            return False
        if self.operators and self.operators[-1] in BINDING:
            self._reduce(lambda top: True)
        graph, term = self.graph, self.graph.node(*self.names[name])
        total = self.operands[-1] = graph.as_sum(self.operands[-1])
        value = total.terms.get(term, 0.0) + (-weight if sign.count("-") == 1 else weight)
        if value == 0.0:
            total.terms.pop(term, None)
        else:
            total.terms[term] = graph.real(value)
        return True

    def _strange(self, position: int) -> NoReturn:
        rest = self.text[position:]
        if rest[0] == "^":
            self.refuse("uses '^'; write powers with '**'")
        if rest[0] == "`":
            self.refuse("has a backtick that is not closed; names with odd characters stand between two of them")
        if rest[0] in "'\"":
            self.refuse("contains a quote; names with odd characters stand between backticks")
        if rest[0] == ";":
            self.refuse("contains ';'; give every equation by itself: a list of them, or --law for each")
        if rest[:2] == "!=":
            self.refuse("uses a comparison that is not understood; use =, <= or >=")
        self.refuse(f"contains {rest[0]!r}, which is not allowed; use numbers, names, + - * / **, {', '.join(FUNCTIONS)}")

    def _operand(self, kind: str, word: str, following: str) -> bool:
        if kind == "number":
            if following.isidentifier():
                self.refuse(f"has a letter right after the number {word[:40]}; products are written with '*'")
            self.operands.append(Sum(self._number(word)))
        elif kind == "function":
            if word not in FUNCTIONS:
                self.refuse(f"cannot call {word[:40]!r}; known: {', '.join(FUNCTIONS)} (products are written with '*')")
            self.operators.append(word)
            return False
        else:
            self.operands.append(self._name(word))
        return True

    def _number(self, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            self.refuse(f"has a number that cannot be read: {word[:40]!r}")
        if not math.isfinite(value):
            self.refuse(f"has {word[:40]!r}, which is not a finite number")
        return value

    def _name(self, name: str) -> Sum:
        if name in self.names:
            return self.graph.variable(*self.names[name])
        if name in CONSTANTS:
            return Sum(CONSTANTS[name])
        known = sorted(map(str, self.names))
        close = get_close_matches(name[:100], known, n=1)
        hint = f"; did you mean {close[0]!r}{'' if close[0].isidentifier() else ', between backticks'}?" if close else "."
        shown = ", ".join(known[:50]) + (", ..." if len(known) > 50 else "")
        raise ValueError(f"Equations: unknown name {name[:100]!r} in {_short(self.text)}{hint} Known names: {shown}")

    # ------------------------------------------------------------------ operators

    def _operator(self, word: str, complete: bool) -> bool:
        """Take an operator, a parenthesis or a comma; whether an operand is then complete."""
        if word == "(":
            if complete:
                self.refuse("has '(' where an operator is expected; products are written with '*'")
            called = bool(self.operators) and self.operators[-1] in FUNCTIONS
            self.calls.append([1] if called else [])
            self._deeper("(")
        elif word in "),":
            self._close(word, complete)
        elif complete:
            self._reduce(lambda top: BINDING[top] > BINDING[word] or (BINDING[top] == BINDING[word] and word != "**"))
            self.operators.append(word)
            if word == "**":
                self._deeper()
        elif word in "+-":
            self._deeper("sign" if word == "-" else None)
        else:
            self.refuse(f"has {word!r} where a number or a name is expected; {HINT}")
        return word == ")"

    def _deeper(self, push: str | None = None) -> None:
        if push:
            self.operators.append(push)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"is nested more than {MAX_DEPTH} levels deep (parentheses, functions, powers and signs)")

    def _close(self, word: str, complete: bool) -> None:
        if not self.calls:
            self.refuse(f"has {word!r} without its '('")
        if not complete:
            self.refuse(f"has {word!r} where a number or a name is expected; {HINT}")
        self._reduce(lambda top: True)
        if word == ",":
            if not self.calls[-1]:
                self.refuse("has ',' outside of a function; give a list with one string for each equation")
            self.calls[-1][0] += 1
            return
        self.operators.pop()
        self.depth -= 1
        call = self.calls.pop()
        if call:
            self._apply(self.operators.pop(), call[0])

    def _apply(self, name: str, given: int) -> None:
        wanted = FUNCTIONS[name]
        if given != wanted:
            self.refuse(f"cannot call {name!r} with {given} argument{'s' * (given > 1)}; it takes {wanted}")
        arguments = self.operands[-wanted:]
        del self.operands[-wanted:]
        self.operands.append(self.graph.apply(name, *arguments))

    def _compare(self, word: str, complete: bool) -> None:
        if self.calls:
            self.refuse("compares inside an expression; put each comparison in its own string")
        if not complete:
            self.refuse(f"has {word!r} where a number or a name is expected; {HINT}")
        if len(self.kinds) == MAX_CHAIN:
            self.refuse(f"has more than {MAX_CHAIN} comparisons; give a list with one string for each equation")
        self._end_of_side(complete)
        self.kinds.append(COMPARISONS[word])

    def _end_of_side(self, complete: bool) -> None:
        if self.calls:
            self.refuse("has '(' without its ')'")
        if not complete and (self.operators or self.kinds):
            self.refuse(f"ends too early or lacks a side; {HINT}")
        self._reduce(lambda top: True)
        self.depth = 0
        if self.operands:
            self.sides.append(self.graph.as_sum(self.operands.pop()))

    def _reduce(self, ready: Callable[[str], bool]) -> None:
        """Carry out the operators on the stack, back to the last parenthesis, as long as they are `ready`."""
        graph, operands = self.graph, self.operands
        while self.operators and self.operators[-1] in BINDING and ready(self.operators[-1]):
            operator, right = self.operators.pop(), operands.pop()
            if operator == "sign":
                self.depth -= 1
                operands.append(graph.scale(right, -1.0))
                continue
            left = operands.pop()
            if operator in "+-":
                operands.append(graph.add(left, right, 1.0 if operator == "+" else -1.0))
            elif operator == "*":
                operands.append(graph.multiply(left, right))
            elif operator == "/":
                operands.append(graph.divide(left, right))
            else:
                self.depth -= 1
                operands.append(graph.power(left, right))


def _short(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."
