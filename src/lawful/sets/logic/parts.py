"""What a conjunction of formulas is made of: labels that it decides, and independent parts.

Formulas that must hold become gates that must hold ("and" is taken apart); gates of which only one outcome is left decide
labels, which may leave other gates with one outcome, and so on. What remains falls apart into parts that share no label.

    Part: n labels, gates over them (children first) and gates that must hold.
    Its literals are 2 * node + sign again, with nodes 0 .. n - 1 for its labels and n, n + 1, ... for its gates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lawful.sets.logic.graph import FALSE, TRUE, Gate, Gates

__all__ = ["Conflict", "Part", "Split", "split"]

PASSES = 100  # of deciding labels: what is left then is decided by who solves the part


class Conflict(ValueError):
    """The formulas cannot hold together, as deciding labels one after the other shows."""


@dataclass
class Part:
    """Labels `labels` (numbers among all T), gates, and gates that must hold, in literals of the part."""

    labels: np.ndarray
    gates: list[Gate] = field(default_factory=list)
    asserted: list[Gate] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.labels)


@dataclass
class Split:
    """`decided` maps labels to what they must be; `free` are labels that no formula touches."""

    decided: dict[int, bool]
    free: np.ndarray
    parts: list[Part]


def split(gates: Gates, roots: list[int]) -> Split:
    """The formulas `roots`, all of which must hold, as parts; a `Conflict` where they plainly cannot."""
    decided: dict[int, bool] = {}
    asserted = _conjuncts(gates, roots, decided)
    for _ in range(PASSES):
        before = len(decided)
        asserted = _conjuncts(gates, _substituted(gates, asserted, decided), decided) if decided else asserted
        if len(decided) == before:
            break
    parts = _independent(gates, asserted)
    touched = {*decided, *(int(t) for part in parts for t in part.labels)}
    return Split(decided, np.array([t for t in range(gates.n_labels) if t not in touched], int), parts)


def _conjuncts(gates: Gates, roots: list[int], decided: dict[int, bool]) -> list[int]:
    """Literals of gates that must hold, none of which is an "and"; single labels go to `decided`."""
    waiting, kept = list(dict.fromkeys(roots)), dict[int, None]()
    while waiting:
        literal = waiting.pop()
        gate = gates.gate(literal)
        if gate is not None:
            lo, hi, inside = gate
            if literal & 1 and (lo, hi) == (1, len(inside)):
                waiting += [lit ^ 1 for lit in inside]
            else:
                kept[literal] = None
        elif literal == FALSE or decided.get((literal >> 1) - 1, not literal & 1) == bool(literal & 1):
            raise Conflict("the formulas contradict each other")
        elif literal != TRUE:
            decided[(literal >> 1) - 1] = not literal & 1
    return list(kept)


def _substituted(gates: Gates, literals: list[int], decided: dict[int, bool]) -> list[int]:
    """The same formulas with what is decided put in."""
    new: dict[int, int] = {0: TRUE}
    for node in gates.below(literals):
        if 0 < node < gates.first:
            known = decided.get(node - 1)
            new[node] = 2 * node if known is None else TRUE if known else FALSE
        elif node:
            lo, hi, inside = gates.gates[node - gates.first]
            now = [new[lit >> 1] ^ (lit & 1) for lit in inside]
            if (lo, hi) == (1, len(inside)):
                new[node] = gates.either(now)
            else:
                new[node] = _recounted(gates, lo, hi, now)
    return [new[lit >> 1] ^ (lit & 1) for lit in literals]


def _recounted(gates: Gates, lo: int, hi: int, literals: list[int]) -> int:
    """A count in which gates that were different may have become equal: those keep their weight as they are, unmerged."""
    distinct = set(literals) - {TRUE, FALSE}
    if len(distinct) == sum(lit not in (TRUE, FALSE) for lit in literals):
        return gates.count(lo, hi, literals)
    # Rare: a repeated literal counts as often as it is there. With x it is one count, without x another.
    twice = next(lit for lit in distinct if literals.count(lit) > 1)
    rest = [lit for lit in literals if lit != twice]
    k = len(literals) - len(rest)
    with_it, without = _recounted(gates, lo - k, hi - k, rest), _recounted(gates, lo, hi, rest)
    return gates.every((gates.either((twice ^ 1, with_it)), gates.either((twice, without))))


def _independent(gates: Gates, asserted: list[int]) -> list[Part]:
    """Group what must hold by the labels it shares."""
    leader: dict[int, int] = {}

    def find(t: int) -> int:
        while leader.setdefault(t, t) != t:
            leader[t] = leader[leader[t]]
            t = leader[t]
        return t

    touches = {lit: [node - 1 for node in gates.below([lit]) if 0 < node < gates.first] for lit in asserted}
    for labels in touches.values():
        for t in labels[1:]:
            leader[find(t)] = find(labels[0])
    groups: dict[int, list[int]] = {}
    for lit in sorted(asserted):
        groups.setdefault(find(touches[lit][0]), []).append(lit)
    return [_part(gates, group) for _, group in sorted(groups.items())]


def _part(gates: Gates, asserted: list[int]) -> Part:
    """Gates that must hold are written as such; the others get a node of their own."""
    top = [_wanted(gates, lit) for lit in asserted]
    nodes = gates.below([lit for _, _, inside in top for lit in inside])
    labels = [node for node in nodes if node < gates.first]
    number = {node: i for i, node in enumerate([*labels, *(node for node in nodes if node >= gates.first)])}

    def local(gate: Gate) -> Gate:
        return gate[0], gate[1], tuple(2 * number[lit >> 1] + (lit & 1) for lit in gate[2])

    inner = [local(gates.gates[node - gates.first]) for node in nodes if node >= gates.first]
    return Part(np.array(labels, int) - 1, inner, [local(gate) for gate in top])


def _wanted(gates: Gates, literal: int) -> Gate:
    """The gate that holds when this literal is true."""
    lo, hi, inside = gates.gates[(literal >> 1) - gates.first]
    if not literal & 1:
        return lo, hi, inside
    if hi == len(inside):
        return 0, lo - 1, inside
    both = (gates.count(0, lo - 1, inside), gates.count(hi + 1, len(inside), inside))  # below or above
    return 1, 2, tuple(sorted(both))
