"""From "dog -> animal" to a graph of gates, by one pass over the text.

    not a, ~a, !a     a and b, a & b     a xor b, a ^ b     a or b, a | b     a -> b, a implies b     a <-> b, a iff b

from the tightest to the loosest binding ("->" groups to the right), parentheses, true, false, and

    exactly(k, ...)  at_most(k, ...)  at_least(k, ...)  exactly_one(...)  at_most_one(...)  at_least_one(...)
    all(...)  any(...)  none(...)  xor(...), which is true when an odd number of its arguments is

Arguments are formulas themselves. Names with odd characters stand between backticks. Two stacks replace recursion, and
operators in a row are one gate, so that time and memory grow with the length of the text alone. Nothing is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

from lawful.sets.logic.graph import FALSE, TRUE, Gates

__all__ = ["KEYWORDS", "check_length", "quoted", "read", "short"]

MAX_LENGTH, MAX_DEPTH, MAX_TOTAL = 200_000, 200, 4_000_000
TOKEN = re.compile(
    r"(?P<space>[ \t\f]+|\#[^\n]*)|(?P<line>[\r\n]+)|(?P<number>[0-9]+)|(?P<name>[^\W\d]\w*)|`(?P<quoted>[^`\n]+)`"
    r"|(?P<operator><->|<=>|->|=>|&&|\|\||[~!¬&∧|∨^()→↔⇒⇔,])"
)
WORDS = {
    **dict.fromkeys(("not", "~", "!", "¬"), "not"),
    **dict.fromkeys(("and", "&", "&&", "∧"), "and"),
    **dict.fromkeys(("xor", "^"), "xor"),
    **dict.fromkeys(("or", "|", "||", "∨"), "or"),
    **dict.fromkeys(("implies", "->", "=>", "→", "⇒"), "->"),
    **dict.fromkeys(("iff", "<->", "<=>", "↔", "⇔"), "<->"),
}
OPENING, NUMBER = re.compile(r"[ \t]*\("), re.compile(r"\s*([0-9]{1,6})\s*,")
BINDING = {"not": 6, "and": 5, "xor": 4, "or": 3, "->": 2, "<->": 1}
COUNTS = ("exactly", "at_most", "at_least")  # their first argument is a number
FUNCTIONS = (*COUNTS, "exactly_one", "at_most_one", "at_least_one", "all", "any", "none", "xor")
CONSTANTS = {"true": TRUE, "false": FALSE, "True": TRUE, "False": FALSE}
KEYWORDS = {word for word in WORDS if word.isidentifier()} | CONSTANTS.keys()
HINT = "write it like 'dog -> animal', 'not (x and y)' or 'exactly_one(a, b, c)'"

Draft = int | tuple[str, list[int]]  # a literal, or the operands of "and" and "or" that are still being collected


def check_length(formulas: Sequence[object]) -> None:
    """Limits on the strings, before any work begins."""
    lengths = [len(item) for item in formulas if isinstance(item, str)]
    if max(lengths, default=0) > MAX_LENGTH:
        raise ValueError(f"Logic: a formula of {max(lengths)} characters is too long (at most {MAX_LENGTH}); split it")
    if sum(lengths) > MAX_TOTAL:
        raise ValueError(f"Logic: {len(formulas)} formulas with {sum(lengths)} characters are too long (at most {MAX_TOTAL})")


def read(text: str, names: Mapping[str, int], gates: Gates) -> int:
    """The literal that one formula is; `names` maps the names of labels to their numbers."""
    try:
        return _Reader(text.strip(), names, gates).formula()
    except OverflowError as error:
        raise ValueError(f"Logic: {short(text)} is too large: {error}; split the problem") from error


def quoted(name: str) -> str:
    """A name as a formula spells it."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name not in KEYWORDS and name not in FUNCTIONS:
        return name
    if "`" in name or "\n" in name or not name:
        raise ValueError(f"Logic: the label {name!r} cannot be written in a formula; rename it without backticks and line ends")
    return f"`{name}`"


def short(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."


class _Reader:
    """`operands` and `operators` are the two stacks; for each open parenthesis `calls` has what it belongs to."""

    def __init__(self, text: str, names: Mapping[str, int], gates: Gates) -> None:
        self.text, self.names, self.gates = text, names, gates
        self.operands: list[Draft] = []
        self.operators: list[str] = []
        self.calls: list[tuple[str, int, list[int]]] = []  # function ("" for none), its number k, its arguments
        self.depth = 0

    def refuse(self, reason: str) -> NoReturn:
        raise ValueError(f"Logic: {short(self.text)} {reason}")

    def formula(self) -> int:
        position, complete = 0, False  # complete: an operand has just ended
        while position < len(self.text):
            token = TOKEN.match(self.text, position)
            if token is None:
                self._strange(self.text[position])
            kind, word = str(token.lastgroup), token.group(token.lastgroup or 0)
            position = token.end()
            if kind == "space" or (kind == "line" and self.calls):
                continue
            if kind == "line":
                self.refuse("has several lines; give a list with one string for each formula")
            if kind == "name" and word in WORDS and not (word == "xor" and not complete):
                kind = "operator"
            if kind == "operator":
                complete = self._operator(WORDS.get(word, word), complete)
                continue
            if complete:
                self.refuse(f"has {word[:40]!r} where an operator is expected; {HINT}")
            if kind == "name" and (opening := OPENING.match(self.text, position)):
                position = self._call(word, opening.end())
            else:
                complete = self._operand(kind, word)
        if self.calls:
            self.refuse("has '(' without its ')'")
        if not complete:
            self.refuse(f"{'ends too early' if self.operators else 'is empty'}; {HINT}")
        self._reduce(0)
        return self._closed(self.operands.pop())

    def _strange(self, character: str) -> NoReturn:
        if character == "`":
            self.refuse("has a backtick that is not closed; names with odd characters stand between two of them")
        if character in "<>=+-*/":
            self.refuse(f"contains {character!r}; Logic is about labels that are true or false: {HINT}, numbers have Equations")
        self.refuse(f"contains {character!r}, which is not allowed; names with odd characters stand between backticks")

    # ------------------------------------------------------------------ operands

    def _operand(self, kind: str, word: str) -> bool:
        if kind == "number":
            self.refuse(f"has the number {word[:40]} where a label is expected; only at_most(2, a, b, c) and the like count")
        if kind == "name" and word in CONSTANTS:
            self.operands.append(CONSTANTS[word])
            return True
        if word not in self.names:
            close = get_close_matches(word[:100], list(self.names), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            known = ", ".join(sorted(self.names)[:50]) + (", ..." if len(self.names) > 50 else "")
            raise ValueError(
                f"Logic: unknown label {word[:100]!r} in {short(self.text)}{hint} Known labels: {known} (columns of a "
                "DataFrame, or name them: Logic(formulas, labels=[...]))"
            )
        self.operands.append(self.gates.label(self.names[word]))
        return True

    def _call(self, name: str, position: int) -> int:
        """Open the parenthesis of a function; where its first argument that is a formula begins."""
        if name not in FUNCTIONS:
            close = get_close_matches(name[:100], FUNCTIONS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            self.refuse(f"cannot call {name[:40]!r}{hint}; known: {', '.join(FUNCTIONS)}")
        number = NUMBER.match(self.text, position) if name in COUNTS else None
        if name in COUNTS and number is None:
            self.refuse(f"says {name}(...) without a number and a comma; write {name}(2, a, b, c)")
        self._open(name, int(number[1]) if number else 1)
        return number.end() if number else position

    def _open(self, name: str, k: int = 1) -> None:
        self.operators.append("(")
        self.calls.append((name, k, []))
        self._deeper()

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"is nested more than {MAX_DEPTH} levels deep (parentheses, 'not' and '->')")

    # ------------------------------------------------------------------ operators

    def _operator(self, word: str, complete: bool) -> bool:
        """Take an operator, a parenthesis or a comma; whether an operand is then complete."""
        if word == "(":
            if complete:
                self.refuse(f"has '(' where an operator is expected; {HINT}")
            self._open("")
            return False
        if word == "not":
            if complete:
                self.refuse(f"has 'not' where an operator is expected; {HINT}")
            self.operators.append("not")
            self._deeper()
            return False
        if word == ")" and self.calls and self.calls[-1][0] and self.operators[-1] == "(" and not complete:
            self.refuse(f"has no label in {self.calls[-1][0]}(...), or a comma too many; {HINT}")
        if not complete:
            self.refuse(f"has {word!r} where a label is expected; {HINT}")
        if word in (")", ","):
            self._close(word)
            return word == ")"
        self._reduce(BINDING[word] + (word == "->"))
        self.operators.append(word)
        if word == "->":
            self._deeper()
        return False

    def _close(self, word: str) -> None:
        if not self.calls:
            self.refuse(f"has {word!r} without its '('")
        self._reduce(0)
        name, k, arguments = self.calls[-1]
        arguments.append(self._closed(self.operands.pop()))
        if word == ",":
            if not name:
                self.refuse("has ',' outside of a function; give a list with one string for each formula")
            return
        self.operators.pop()
        self.calls.pop()
        self.depth -= 1
        self.operands.append(self._applied(name, k, arguments) if name else arguments[0])

    def _applied(self, name: str, k: int, arguments: list[int]) -> int:
        gates, n = self.gates, len(arguments)
        if name in ("all", "any", "none"):
            found = gates.every(arguments) if name == "all" else gates.either(arguments)
            return found ^ (name == "none")
        if name == "xor":
            found = FALSE
            for argument in arguments:
                found = self._differ(found, argument)
            return found
        if len(set(arguments) - {TRUE, FALSE}) < sum(lit not in (TRUE, FALSE) for lit in arguments):
            self.refuse(f"names the same thing twice in {name}(...); a label counts once")
        if k > n and name != "at_most":
            self.refuse(f"asks for {k} of {n} in {name}(...); it can never hold")
        kind = name.removesuffix("_one")
        return gates.count(0 if kind == "at_most" else k, n if kind == "at_least" else k, arguments)

    def _differ(self, left: int, right: int) -> int:
        return FALSE if left == right else self.gates.count(1, 1, (left, right))

    def _closed(self, draft: Draft) -> int:
        if isinstance(draft, int):
            return draft
        return self.gates.every(draft[1]) if draft[0] == "and" else self.gates.either(draft[1])

    def _reduce(self, least: int) -> None:
        """Carry out the operators on the stack that bind at least so tightly, back to the last parenthesis."""
        while self.operators and self.operators[-1] != "(" and BINDING[self.operators[-1]] >= least:
            operator, right = self.operators.pop(), self._closed(self.operands.pop())
            if operator == "not":
                self.depth -= 1
                self.operands.append(right ^ 1)
                continue
            left = self.operands.pop()
            if operator in ("and", "or"):
                if isinstance(left, int) or left[0] != operator:
                    left = (operator, [self._closed(left)])
                left[1].append(right)
                self.operands.append(left)
                continue
            left = self._closed(left)
            if operator == "->":
                self.depth -= 1
                self.operands.append(self.gates.either((left ^ 1, right)))
            else:
                self.operands.append(self._differ(left, right) ^ (operator == "<->"))
