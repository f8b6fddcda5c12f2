r"""Polyhedra that fields know by name, {c : A c = b, G c <= h}: tables with given margins, flows in a network.

A set of this kind says its matrices and is decoded by `Polyhedral` in any metric, exactly. Both here are totally unimodular:
whole margins, supplies and capacities have whole corners.

    Margins    sum_j p_ij = r_i,  sum_i p_ij = s_j,  p >= 0            (the transportation polytope)
    Flow       N f = supply,  lower <= f <= capacity                   N_ve = 1 where e leaves v, -1 where it enters
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import linprog
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, device_of, like
from lawful.sets.base import ConstraintSet, check_width
from lawful.sets.cones import Cone
from lawful.sets.elementary import constant_rows, per_task

CORNERS, STEPS = 16, 30  # a point inside is the mean of so many corners; a sample is so many steps away from it
EQUAL = 1e-9  # totals that differ by no more than this fraction are the same


def _has_equations(polyhedron: Polyhedron) -> bool:
    return bool(len(polyhedron.A_))


def _has_bounds(polyhedron: Polyhedron) -> bool:
    return bool(len(polyhedron.G_))


class Polyhedron(ConstraintSet):
    """{c : A_ c = b_, G_ c <= h_}, which subclasses set in `_learn` (A_ of full row rank)."""

    convex = True
    polyhedral = quadratic = True
    A_: np.ndarray
    b_: np.ndarray
    G_: np.ndarray
    h_: np.ndarray

    @available_if(_has_equations)
    def equality(self, c: Array) -> Array:
        return c @ like(self.A_.T, c) - like(self.b_, c)

    @available_if(_has_equations)
    def equality_jacobian(self, c: Array) -> Array:
        return constant_rows(self.A_, c)

    @available_if(_has_bounds)
    def inequality(self, c: Array) -> Array:
        return c @ like(self.G_.T, c) - like(self.h_, c)

    @available_if(_has_bounds)
    def inequality_jacobian(self, c: Array) -> Array:
        return constant_rows(self.G_, c)

    def curvature(self, c: Array, nu: Array) -> Array:
        return constant_rows(np.zeros((self.n_tasks_, self.n_tasks_)), c)

    def scales(self, c: Array) -> Array:
        matrix, side = np.concatenate([self.A_, self.G_]), np.concatenate([self.b_, self.h_])
        return abs(c) @ like(np.abs(matrix.T), c) + like(np.abs(side), c)

    def cones(self) -> list[Cone]:
        pairs = (("zero", self.A_, self.b_), ("nonnegative", self.G_, self.h_))
        return [Cone(kind, matrix, side) for kind, matrix, side in pairs if len(matrix)]

    def _corner(self, direction: np.ndarray, reach: float | None = None) -> np.ndarray | None:
        """A point of the set that is farthest in a direction, no output beyond `reach`; None where there is no point at all."""
        found = linprog(
            -direction,
            *((self.G_, self.h_) if len(self.G_) else (None, None)),
            *((self.A_, self.b_) if len(self.A_) else (None, None)),
            bounds=(None if reach is None else -reach, reach),
            method="highs",
        )
        return found.x if found.status == 0 else None

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Hit and run from a point inside: steps of random direction and length, never out of the set."""
        rng = check_random_state(random_state)
        size = 10 * float(np.max(np.abs(np.r_[self.b_, self.h_, self.spread_, np.abs(self.location_)]), initial=1.0))
        corners = [self._corner(d, size) for d in rng.standard_normal((CORNERS, self.n_tasks_))]
        start = np.mean([corner for corner in corners if corner is not None], axis=0)
        slack = self.h_ - self.G_ @ start
        fixed = slack <= 1e-9 * (np.abs(self.G_) @ np.abs(start) + np.abs(self.h_))  # in all corners: equations in disguise
        Z = linalg.null_space(np.concatenate([self.A_, self.G_[fixed], np.zeros((1, self.n_tasks_))]))
        c, G, h = np.tile(start, (n, 1)), self.G_[~fixed], self.h_[~fixed]
        for _ in range(STEPS if Z.shape[1] else 0):
            d = rng.standard_normal((n, Z.shape[1])) @ Z.T
            rate, left = d @ G.T, np.maximum(h - c @ G.T, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                up = np.min(np.where(rate > 0, left / rate, np.inf), axis=1, initial=np.inf)
                down = np.min(np.where(rate < 0, left / -rate, np.inf), axis=1, initial=np.inf)
            up, down = np.minimum(up, size), np.minimum(down, size)
            c = c + (0.999 * (rng.random(n) * (up + down) - down))[:, None] * d
        return c


def independent(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many rows of (A, b) as are linearly independent, in their order."""
    if not A.size:
        return A, b
    _, R, order = linalg.qr(A.T, mode="economic", pivoting=True)
    size = np.abs(np.diagonal(R))
    keep = np.sort(order[: int(np.sum(size > max(A.shape) * np.finfo(float).eps * size[0]))])
    return A[keep], b[keep]


class Margins(Polyhedron):
    """Nonnegative tables whose rows, columns or both add up to given numbers; T = number of cells, row by row.

    Parameters
    ----------
    shape : (number of rows, number of columns)
    row_sums, column_sums : what each row and each column adds up to; None leaves them free (one of the two must be given)

    Notes
    -----
    A table of probabilities has margins that add up to 1; a table of counts has those of a census. Decoding finds the nearest
    table in the output metric. Iterative proportional fitting (raking) finds the nearest in the sense of Kullback and Leibler;
    it cannot start from a negative prediction, and keeps every 0 of it.

    Examples
    --------
    >>> from lawful import Margins, project
    >>> table = Margins((2, 2), row_sums=[0.5, 0.5], column_sums=[0.25, 0.75])
    >>> project([[0.3, 0.3, -0.3, 0.5]], table).round(3) + 0.0
    array([[0.25, 0.25, 0.  , 0.5 ]])
    """

    def __init__(self, shape: tuple[int, int], row_sums: Any = None, column_sums: Any = None) -> None:
        self.shape, self.row_sums, self.column_sums = shape, row_sums, column_sums

    def _learn(self, Y: Array) -> None:
        I, J = (int(k) for k in self.shape)
        check_width(f"Margins({(I, J)})", I * J, self.n_tasks_)
        if self.row_sums is None and self.column_sums is None:
            raise ValueError("Margins: neither row_sums nor column_sums are given; give one, or Box(lower=0) for free tables")
        cells = np.arange(I * J).reshape(I, J)
        matrix, sides = [], []
        for name, given, lines in (("row_sums", self.row_sums, cells), ("column_sums", self.column_sums, cells.T)):
            if given is None:
                continue
            sums = np.asarray(given, dtype=np.float64)
            if sums.shape != (len(lines),) or not (np.isfinite(sums).all() and (sums >= 0).all()):
                raise ValueError(f"Margins: {name} must be {len(lines)} finite numbers, none below 0; got {given!r}")
            matrix.append(_members(lines, I * J))
            sides.append(sums)
        if len(sides) == 2 and abs(sides[0].sum() - sides[1].sum()) > EQUAL * sides[0].sum():
            raise ValueError(
                f"Margins is an empty set: rows add up to {sides[0].sum():g}, columns to {sides[1].sum():g}; make them equal"
            )
        self.A_, self.b_ = independent(np.concatenate(matrix), np.concatenate(sides))
        self.G_, self.h_ = -np.eye(I * J), np.zeros(I * J)

    def scales(self, c: Array) -> Array:
        """The sums, for the sums and for every part of them: a cell is not negative beside the table it is in."""
        xp = array_namespace(c)
        sums = abs(c) @ like(self.A_.T, c) + like(self.b_, c)
        return xp.concat([sums, xp.zeros_like(c) + xp.max(sums, axis=1, keepdims=True)], axis=1)


def _members(lines: np.ndarray, n: int) -> np.ndarray:
    """(number of lines, n): 1 for the cells of each line."""
    matrix = np.zeros((len(lines), n))
    matrix[np.arange(len(lines))[:, None], lines] = 1.0
    return matrix


class Flow(Polyhedron):
    """Flows on the edges of a directed network: nothing is lost at a node, no edge carries more than it can; T = edges.

    Parameters
    ----------
    edges : list of (from, to), nodes being anything hashable
    supply : dict, node -> what enters the network there (negative: what leaves it); 0 for nodes that are not in it, and None
        for those where any amount may enter or leave
    capacity, lower : bounds of the flow, a number or one for each edge; -inf and inf allowed

    Examples
    --------
    >>> from lawful import Flow, project
    >>> pipes = Flow([("in", "a"), ("a", "out"), ("in", "out")], supply={"in": 3.0, "out": -3.0}, capacity=[1.0, 5.0, 5.0])
    >>> project([[1.6, 1.4, 1.2]], pipes).round(6)
    array([[1., 1., 2.]])
    """

    def __init__(
        self,
        edges: Sequence[tuple[Hashable, Hashable]],
        supply: dict[Any, float | None] | None = None,
        capacity: Any = np.inf,
        lower: Any = 0.0,
    ) -> None:
        self.edges, self.supply, self.capacity, self.lower = edges, supply, capacity, lower

    def _learn(self, Y: Array) -> None:
        T = self.n_tasks_
        edges = [tuple(edge) for edge in self.edges]
        check_width("Flow", len(edges), T)
        nodes = list(dict.fromkeys(node for edge in edges for node in edge))
        supply = dict(self.supply or {})
        if unknown := [node for node in supply if node not in set(nodes)]:
            raise ValueError(f"Flow: supply names {unknown}, which no edge touches; the nodes are {nodes}")
        if loops := [edge for edge in edges if edge[0] == edge[1]]:
            raise ValueError(f"Flow: edges {loops} end where they begin; leave them out")
        matrix, sides = np.zeros((len(nodes), T)), np.zeros(len(nodes))
        for e, (tail, head) in enumerate(edges):
            matrix[nodes.index(tail), e], matrix[nodes.index(head), e] = 1.0, -1.0
        closed = np.array([supply.get(node, 0.0) is not None for node in nodes])
        sides[closed] = [float(supply.get(node, 0.0) or 0.0) for node, c in zip(nodes, closed) if c]
        if not np.isfinite(sides).all():
            raise ValueError("Flow: supply must be finite; None is for nodes where any amount may enter or leave")
        low, high = per_task("Flow", "lower", self.lower, T), per_task("Flow", "capacity", self.capacity, T)
        if (low > high).any():
            raise ValueError(f"Flow: lower exceeds capacity on edges {np.flatnonzero(low > high).tolist()}; swap them")
        self.A_, self.b_ = independent(matrix[closed], sides[closed])
        below, above, eye = np.isfinite(low), np.isfinite(high), np.eye(T)
        self.G_, self.h_ = np.concatenate([-eye[below], eye[above]]), np.concatenate([-low[below], high[above]])
        point = self._corner(np.zeros(T))
        lost = np.inf if point is None else float(np.max(np.abs(matrix[closed] @ point - sides[closed]), initial=0.0))
        if lost > 1e-6 * (1 + float(np.abs(sides).max(initial=0.0))):
            raise ValueError(
                "Flow is an empty set: supplies do not add up to 0, or capacities are too small for them; "
                "change them, or leave a node open with supply None"
            )

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return len(self.h_) < 2 * self.n_tasks_

    def scales(self, c: Array) -> Array:
        """Of a balance, what passes the node; of a bound, the largest flow or bound."""
        xp = array_namespace(c)
        balance = abs(c) @ like(np.abs(self.A_.T), c) + like(np.abs(self.b_), c)
        top = float(np.max(np.abs(np.r_[self.b_, self.h_]), initial=0.0))
        widest = xp.max(abs(c), axis=1, keepdims=True)
        bound = xp.where(widest > top, widest, xp.full_like(widest, top))
        return xp.concat([balance, bound + xp.zeros((c.shape[0], len(self.h_)), dtype=c.dtype, device=device_of(c))], axis=1)
