"""Formulas as a graph of gates: lo <= how many of these literals are true <= hi.

One kind of gate says everything: "or" is at least one of n, "and" is all of n, exactly_one(a, b, c) is from 1 to 1, and
a <-> b is exactly one of a, not b. Negation is a bit of the literal. Equal gates are one node, children come before parents.

A literal is 2 * node + (1 if negated). Node 0 is "true", nodes 1 .. T are the labels, and the gates follow.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["FALSE", "MAX_GATES", "TRUE", "Gate", "Gates"]

TRUE = 0
FALSE = 1
MAX_GATES = 100_000

Gate = tuple[int, int, tuple[int, ...]]  # lo, hi, literals


class Gates:
    """The graph. Methods that build take literals and return one."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels
        self.gates: list[Gate] = []
        self.known: dict[Gate, int] = {}
        self.first = n_labels + 1  # the node of the first gate

    def label(self, t: int) -> int:
        return 2 * (t + 1)

    def either(self, literals: Iterable[int]) -> int:
        """At least one of them; repetitions mean nothing."""
        distinct = set(literals) - {FALSE}
        if TRUE in distinct or any(lit ^ 1 in distinct for lit in distinct):
            return TRUE
        return self.count(1, len(distinct), distinct)

    def every(self, literals: Iterable[int]) -> int:
        return self.either(lit ^ 1 for lit in literals) ^ 1

    def count(self, lo: int, hi: int, literals: Iterable[int]) -> int:
        """lo <= number of true literals <= hi; the literals are different ones."""
        sure, kept = 0, set[int]()
        for lit in literals:
            if lit in (TRUE, FALSE):
                sure += lit == TRUE
            elif lit ^ 1 in kept:  # one of the two is true, whatever happens
                kept.remove(lit ^ 1)
                sure += 1
            else:
                kept.add(lit)
        n, lo, hi = len(kept), max(lo - sure, 0), hi - sure
        hi = min(hi, n)
        if lo > hi:
            return FALSE
        if lo == 0 and hi == n:
            return TRUE
        if n == 1:
            return next(iter(kept)) ^ (lo == 0)
        # One form for each: at most k is "not at least k + 1", all is "not at least one of the others".
        if lo == 0:
            return self._gate(hi + 1, n, kept) ^ 1
        return self._gate(lo, hi, kept)

    def _gate(self, lo: int, hi: int, literals: Iterable[int]) -> int:
        kept = tuple(sorted(literals))
        if lo == hi == len(kept):
            return self._gate(1, len(kept), [lit ^ 1 for lit in kept]) ^ 1
        gate = (lo, hi, kept)
        if gate not in self.known:
            if len(self.gates) >= MAX_GATES:
                raise OverflowError(f"more than {MAX_GATES} different sub-formulas")
            self.known[gate] = 2 * (self.first + len(self.gates))
            self.gates.append(gate)
        return self.known[gate]

    def gate(self, literal: int) -> Gate | None:
        """The gate of a literal, sign aside; None for labels and constants."""
        node = literal >> 1
        return self.gates[node - self.first] if node >= self.first else None

    def below(self, literals: Iterable[int]) -> list[int]:
        """All nodes that these literals are made of, children first."""
        seen: set[int] = set()
        waiting = [lit >> 1 for lit in literals]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                if node >= self.first:
                    waiting += [lit >> 1 for lit in self.gates[node - self.first][2]]
        return sorted(seen)

    def truth(self, roots: list[int], values: np.ndarray) -> np.ndarray:
        """(m, F) the truth of each root literal for assignments (m, T) of truth values."""
        found: dict[int, np.ndarray] = {0: np.ones(len(values), bool)}
        for node in self.below(roots):
            if 0 < node < self.first:
                found[node] = values[:, node - 1]
            elif node:
                lo, hi, literals = self.gates[node - self.first]
                number = np.zeros(len(values), np.int64)
                for lit in literals:
                    number += found[lit >> 1] ^ bool(lit & 1)
                found[node] = (lo <= number) & (number <= hi)
        out = np.empty((len(values), len(roots)), bool)
        for f, root in enumerate(roots):
            out[:, f] = found[root >> 1] ^ bool(root & 1)
        return out
