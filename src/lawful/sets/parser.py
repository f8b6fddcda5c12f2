"""From "y1**2 + y2**2 = 1" to sympy, through a whitelist over Python's `ast`.

A user's string is never evaluated: only numbers, known names, + - * / **, comparisons and a fixed list of functions
are understood, everything else is refused with the reason. Powers of plain numbers are computed in floating point, so
that "9**9**9" is an overflow error and not an endless computation.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches

import sympy

FUNCTIONS = {
    "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan, "asin": sympy.asin, "acos": sympy.acos, "atan": sympy.atan,
    "atan2": sympy.atan2, "sinh": sympy.sinh, "cosh": sympy.cosh, "tanh": sympy.tanh, "exp": sympy.exp,
    "log": sympy.log, "sqrt": sympy.sqrt, "abs": sympy.Abs,
}  # fmt: skip
CONSTANTS = {"pi": math.pi}
MAX_LENGTH, MAX_DEPTH = 20_000, 60

Relation = tuple[sympy.Expr, str]  # (expression, "=" for expression = 0 or "<=" for expression <= 0)


def parse(text: str, names: Mapping[str, sympy.Symbol]) -> list[Relation]:
    """The relations of one string, such as "0 <= y1 <= 3" (two of them). `names` maps known names to symbols."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"Equations: a string of {len(text)} characters is too long (at most {MAX_LENGTH})")
    source, quoted = _unquote(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd numerals ('1if') warn; the error that follows is enough
            tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"Equations: cannot read {text!r}; write it like 'y1**2 + y2**2 = 1' or '0 <= y1 <= 3'") from error
    builder = _Builder(text, {**names, **{key: names[name] for key, name in quoted.items() if name in names}}, quoted)
    body = tree.body
    if not isinstance(body, ast.Compare):
        raise ValueError(f"Equations: {text!r} has no '=', '<=' or '>='; write for instance '{text.strip()} = 0'")
    sides = [builder.build(side) for side in (body.left, *body.comparators)]
    return [_relation(text, left, op, right) for left, op, right in zip(sides, body.ops, sides[1:])]


def _relation(text: str, left: sympy.Expr, op: ast.cmpop, right: sympy.Expr) -> Relation:
    if isinstance(op, ast.Eq):
        relation = (left - right, "=")
    elif isinstance(op, ast.LtE | ast.Lt):  # a closed set: '<' means '<=' (errata: C must be closed)
        relation = (left - right, "<=")
    elif isinstance(op, ast.GtE | ast.Gt):
        relation = (right - left, "<=")
    else:
        raise ValueError(f"Equations: {text!r} uses a comparison that is not understood; use =, <= or >=")
    return relation


def _unquote(text: str) -> tuple[str, dict[str, str]]:
    """Single '=' becomes '==', unicode comparisons their ASCII form, and `any name` in backticks a plain identifier."""
    text = text.replace("≤", "<=").replace("≥", ">=").replace("−", "-")
    if "^" in text:
        raise ValueError(f"Equations: {text!r} uses '^'; write powers with '**'")
    quoted: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        key = f"_quoted_{len(quoted)}"
        quoted[key] = match.group(1)
        return key

    text = re.sub(r"`([^`]+)`", replace, text)
    return re.sub(r"(?<![<>=!])=(?!=)", "==", text), quoted


class _Builder:
    """One pass over the whitelisted nodes."""

    def __init__(self, text: str, names: Mapping[str, sympy.Symbol], quoted: Mapping[str, str]) -> None:
        self.text, self.names, self.quoted = text, names, quoted

    def build(self, node: ast.AST, depth: int = 0) -> sympy.Expr:
        if depth > MAX_DEPTH:
            raise ValueError(f"Equations: {self.text[:60]!r}... is nested more than {MAX_DEPTH} levels deep")
        if isinstance(node, ast.Constant):
            return self._number(node.value)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            operand = self.build(node.operand, depth + 1)
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp):
            return self._binary(node.op, self.build(node.left, depth + 1), self.build(node.right, depth + 1))
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Compare):
            raise ValueError(f"Equations: {self.text!r} compares inside an expression; put each comparison in its own string")
        raise ValueError(
            f"Equations: {self.text!r} contains {type(node).__name__}, which is not allowed; "
            f"use numbers, names, + - * / **, {', '.join(FUNCTIONS)}"
        )

    def _number(self, value: object) -> sympy.Expr:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"Equations: {value!r} in {self.text!r} is not a finite number")
        if isinstance(value, int) and abs(value) < 2**53:
            return sympy.Integer(value)
        return sympy.Float(float(value), 17)

    def _name(self, name: str) -> sympy.Expr:
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return sympy.Float(CONSTANTS[name], 17)
        shown = self.quoted.get(name, name)
        known = sorted(str(n) for n in self.names if not str(n).startswith("_quoted_"))
        close = get_close_matches(shown, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"Equations: unknown name {shown!r} in {self.text!r}{hint} Known names: {', '.join(known)}")

    def _binary(self, op: ast.operator, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
        if isinstance(op, ast.Add):
            return left + right
        if isinstance(op, ast.Sub):
            return left - right
        if isinstance(op, ast.Mult):
            return left * right
        if isinstance(op, ast.Div):
            if right == 0:
                raise ValueError(f"Equations: {self.text!r} divides by zero")
            return left / right
        if isinstance(op, ast.Pow):
            return self._power(left, right)
        raise ValueError(f"Equations: {self.text!r} uses {type(op).__name__}, which is not allowed; use + - * / **")

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if exponent.is_number and abs(float(exponent)) > 100:
            raise ValueError(f"Equations: {self.text!r} has an exponent beyond 100")
        if base.is_number and exponent.is_number:
            try:
                value = float(base) ** float(exponent)
            except (OverflowError, ZeroDivisionError) as error:
                raise ValueError(f"Equations: {self.text!r} overflows") from error
            whole = base.is_Integer and exponent.is_Integer and value == int(value)  # y1**2**2 is y1**4, not y1**4.0
            return self._number(int(value) if whole else value)
        return base**exponent

    def _call(self, node: ast.Call, depth: int) -> sympy.Expr:
        name = node.func.id if isinstance(node.func, ast.Name) else "?"
        wanted = 2 if name == "atan2" else 1
        if name not in FUNCTIONS or node.keywords or len(node.args) != wanted:
            raise ValueError(f"Equations: cannot call {ast.unparse(node)!r} in {self.text!r}; known: {', '.join(FUNCTIONS)}")
        return FUNCTIONS[name](*(self.build(arg, depth + 1) for arg in node.args))
