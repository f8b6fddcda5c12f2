"""Random laws: formulas, named sets with parameters over many scales, compositions and relaxations up to two deep."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

import numpy as np

from . import compose, laws
from .expressions import UNARY, Binary, Const, Node, Relation, Value, Var, formula, number, polynomial, strip
from .fields import draw_field
from .laws import Formulas, Law
from .source import New, Written

NASTY = [
    "y1",
    "y2",
    "y3",
    "x1",
    "x2",
    "value",
    "status",
    "residual",
    "margin",
    "iterations",
    "my output",
    "a-b",
    "1st",
    "class",
]
NASTY += ["lambda", "E", "I", "S", "N", "beta", "zeta", "température", "_", "_quoted_0", "col", "index", "c", "Q", "O"]
PLAIN = ["u", "v", "w", "p", "q", "r", "flow", "heat"]
SHADOWED = {"pi", "atan2", *UNARY}


@dataclass
class Names:
    """Column names, or None: unnamed arrays."""

    outputs: list[str] | None
    inputs: list[str] | None
    T: int
    d: int

    def word(self, rng: np.random.Generator, var: Var, idx: list[int]) -> tuple[str, bool]:
        """How output or input number t of a block `idx` is written, and whether another variable has a claim to that word."""
        outputs, inputs = self.outputs or [], self.inputs or []
        own = (outputs[idx[var.t]] if outputs else None) if var.kind == "y" else (inputs[var.t] if inputs else None)
        plain = f"{var.kind}{var.t + 1}"
        others = [*outputs, *inputs]
        if own is None or (rng.random() < 0.15 and plain not in outputs and (var.kind == "y" or plain not in inputs)):
            return plain, plain in others
        return quoted(own), False


def quoted(name: str) -> str:
    usable = name.isidentifier() and not keyword.iskeyword(name) and name not in SHADOWED and not name.startswith("_quoted")
    return name if usable else f"`{name}`"


def draw_names(rng: np.random.Generator, T: int, d: int) -> Names:
    """Mostly unnamed; else plain or nasty columns, all different."""
    style = rng.choice(["none", "outputs", "both", "inputs"], p=[0.6, 0.1, 0.22, 0.08])
    pool = PLAIN + NASTY if rng.random() < 0.6 else PLAIN + [f"col{k}" for k in range(8)]
    picked = [str(n) for n in rng.permutation(pool)]
    while len(picked) < T + d:
        picked.append(f"more{len(picked)}")
    outputs = picked[:T] if style in ("outputs", "both") else None
    inputs = picked[T : T + d] if style in ("inputs", "both") else None
    return Names(outputs, inputs, T, d)


def scale(rng: np.random.Generator, plain: float = 0.55) -> float:
    """1, or anything between 1e-12 and 1e12."""
    return 1.0 if rng.random() < plain else float(f"{10 ** rng.uniform(-12, 12):.3g}")


def rounded(value: np.ndarray | float) -> np.ndarray | float:
    """To six digits: constants that can be read."""
    with np.errstate(all="ignore"):
        return np.vectorize(lambda v: float(f"{v:.6g}"))(value) if np.ndim(value) else float(f"{value:.6g}")


# ------------------------------------------------------------------ formulas


def draw_formulas(rng: np.random.Generator, T: int, names: Names, idx: list[int] | None = None) -> Formulas:
    idx = list(range(T)) if idx is None else idx
    style = rng.random()
    unit = (
        np.ones(T)
        if style < 0.6
        else np.full(T, scale(rng, 0))
        if style < 0.8
        else np.array([scale(rng, 0.2) for _ in range(T)])
    )
    ys = [Var("y", t) if unit[t] == 1 else Binary("/", Var("y", t), Const(float(unit[t]))) for t in range(T)]
    free = [
        j for j in range(names.d) if names.inputs or f"x{j + 1}" not in (names.outputs or [])
    ]  # else it is the output's name
    xs: list[Node] = [Var("x", j) for j in free] if rng.random() < 0.35 else []
    wide = rng.random() < 0.2
    at, x0 = rng.standard_normal((1, T)) * unit, rng.standard_normal((1, max(names.d, 1)))
    relations: list[Relation] = []
    chains: list[int] = []
    count = int(rng.choice([1, 2, 3, 4], p=[0.62, 0.24, 0.1, 0.04]))
    for _ in range(count):
        left = _side(rng, ys, xs, wide)
        value = _value(left, at, x0)
        through = np.isfinite(value) and abs(value) < 1e30 and rng.random() < 0.8
        right = Const(float(rounded(value)) if through else number(rng, wide))
        equalities = sum(not r.inequality for r in relations)
        equality = rng.random() < (0.75 if equalities < T - 1 else 0.15)
        if rng.random() < 0.08:  # equations in tonnes and equations in mole fractions
            k = Const(scale(rng, 0))
            left, right = Binary("*", k, left), Const(float(rounded(k.value * right.value)))
        if equality:
            if rng.random() < 0.1:
                extra = ys[rng.integers(T)]
                relations.append(Relation(Binary("+", left, extra), "=", Binary("+", right, extra)))
            else:
                relations.append(Relation(left, "=", right))
            continue
        room = float(rounded(abs(right.value) * rng.uniform(0, 1) + (right.value == 0)))
        if rng.random() < 0.3:  # a chain: low <= left <= high
            chains.append(len(relations))
            relations.append(Relation(Const(float(right.value - room)), "<=", left))
            relations.append(Relation(left, "<=", Const(float(right.value + room))))
        elif rng.random() < 0.5:
            relations.append(
                Relation(left, str(rng.choice(["<=", "<"])), Const(float(right.value + room * rng.integers(0, 2))))
            )
        else:
            relations.append(
                Relation(left, str(rng.choice([">=", ">"])), Const(float(right.value - room * rng.integers(0, 2))))
            )
    variables = set().union(*(r.variables() for r in relations))
    uses_x = any(v.kind == "x" for v in variables)
    if rng.random() < 0.12:
        new, ambiguous = _callables(rng, relations, uses_x), False
    else:
        new, ambiguous = _strings(rng, relations, chains, variables, names, idx)
    middle = np.where(np.isfinite(at[0]), at[0], 0.0)
    return Formulas(
        new, T, middle, unit.copy(), "Equations", uses_x=uses_x, ambiguous=ambiguous, relations=relations, unit=unit
    )


def _side(rng, ys, xs, wide):
    while True:
        leaves = [*ys, *xs] if xs and rng.random() < 0.6 else ys
        node = polynomial(rng, leaves, wide) if rng.random() < 0.55 else formula(rng, leaves, int(rng.integers(1, 4)), wide)
        if any(v.kind == "y" for v in node.variables()):
            return node


def _value(node: Node, at: np.ndarray, x0: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        found: Value = node.at(at, x0)
    return float(found.v[0]) if abs(found.v[0]) < 1e300 else np.nan


def _strings(rng, relations, chains, variables, names, idx):
    words = {v: names.word(rng, v, idx) for v in sorted(variables, key=lambda v: (v.kind, v.t))}
    spelled = {v: word for v, (word, _) in words.items()}
    texts, k = [], 0
    while k < len(relations):
        if k in chains:
            low, high = relations[k], relations[k + 1]
            parts = (low.left.write(spelled), strip(low.right.write(spelled)), high.right.write(spelled))
            texts.append(" <= ".join(parts))
            k += 2
        else:
            texts.append(relations[k].write(spelled))
            k += 1
    return New("lawful.Equations", texts if len(texts) > 1 or rng.random() < 0.2 else texts[0]), any(
        claim for _, claim in words.values()
    )


def _callables(rng, relations, uses_x):
    jacobians = rng.random() < 0.6
    given = {}
    for kind, inequality in (("gamma", False), ("slack", True)):
        some = [r for r in relations if r.inequality == inequality]
        if not some:
            continue
        spelled = {v: f"{'c' if v.kind == 'y' else 'X'}[:, {v.t}]" for r in some for v in r.variables()}
        head = "lambda c, X: " if uses_x else "lambda c: "
        body = ", ".join(strip(r.difference().write(spelled)) for r in some)
        given[kind] = Written(f"{head}np.stack([{body}], axis=1)", _function(some, uses_x, "v"))
        if jacobians:
            name = "jacobian" if kind == "gamma" else "slack_jacobian"
            given[name] = Written(f"derivative({given[kind]})", _function(some, uses_x, "g"))
    return New("lawful.Equations", **given)


def _function(relations, uses_x, what):
    def values(c, X=None):
        c = np.asarray(c, float)
        with np.errstate(all="ignore"):
            if what == "v":
                return np.stack([np.broadcast_to(r.difference().quick(c, X), len(c)) for r in relations], axis=1)
            return np.stack([r.at(c, X, np.float64).g for r in relations], axis=1)

    return (lambda c, X: values(c, X)) if uses_x else (lambda c: values(c))


# ------------------------------------------------------------------ named sets


def draw_named(rng: np.random.Generator, T: int) -> Law:
    s = scale(rng)
    center = (
        0.0
        if rng.random() < 0.4
        else rounded(s * rng.standard_normal(T) * (10 ** rng.uniform(-3, 3) if rng.random() < 0.3 else 1))
    )
    kinds = ["Sphere", "Ball", "Ellipsoid", "Box", "Affine", "Simplex", "PointCloud", "Reals"]
    kinds += ["Rotations", "Rotations"] if T in (4, 9) else []
    kinds += ["Stiefel", "Stiefel"] if T in (2, 3, 4, 6) else []
    kinds += ["Semidefinite", "Semidefinite"] if T in (1, 3, 4, 6, 9) else []
    kinds += ["Rankings"] if T in (1, 3, 6) else []
    if rng.random() < 0.3 and (found := draw_field(rng, T, s)) is not None:
        return found
    kind = str(rng.choice(kinds))
    if kind in ("Sphere", "Ball"):
        return laws.round_set(kind, float(rounded(s * rng.uniform(0.3, 3))), center, T)
    if kind == "Ellipsoid":
        wide = 10 ** rng.uniform(-3, 3, T) if rng.random() < 0.4 else rng.uniform(0.3, 3, T)
        return laws.round_set(kind, rounded(s * wide), center, T, solid=bool(rng.random() < 0.5))
    if kind == "Box":
        low, high = np.sort(rounded(s * rng.standard_normal((2, T))), axis=0)
        if rng.random() < 0.5:
            low, high = np.where(rng.random(T) < 0.3, -np.inf, low), np.where(rng.random(T) < 0.3, np.inf, high)
        if rng.random() < 0.3:
            return laws.box(0.0, s if rng.random() < 0.5 else np.inf, T)
        return laws.box(low, np.where(rng.random(T) < 0.1, low, high) if np.isfinite(low).all() else high, T)
    if kind == "Affine":
        rows = int(rng.integers(1, T + 1)) if rng.random() < 0.3 else 1
        A = rounded(rng.standard_normal((rows, T)))
        if rng.random() < 0.3:
            A = rounded(A * np.array([[scale(rng, 0.3)] for _ in range(rows)]))
        if rng.random() < 0.2:
            A = np.concatenate([A, 2 * A[:1]])
        return laws.affine(A, A @ rounded(s * rng.standard_normal(T)), T)
    if kind == "Simplex":
        return laws.simplex(float(rounded(s * rng.uniform(0.5, 2))), T)
    if kind == "PointCloud":
        points = rounded(s * rng.standard_normal((int(rng.integers(1, 12)), T)))
        return laws.cloud(np.concatenate([points, points[:1]]) if rng.random() < 0.3 else points)
    if kind == "Rotations":
        n = 2 if T == 4 else 3
        return laws.frames(n, n, True)
    if kind == "Stiefel":
        n, p = {2: (2, 1), 3: (3, 1), 4: (2, 2), 6: (3, 2)}[T]
        return laws.frames(n, p, False)
    if kind == "Semidefinite":
        packed = T in (3, 6) or (T == 1 and bool(rng.random() < 0.5))
        n = {1: 1, 3: 2, 4: 2, 6: 3, 9: 3}[T]
        return laws.semidefinite(n, packed, float(rng.choice([0.0, 0.0, 0.1 * s, -0.1 * s])))
    if kind == "Rankings":
        return laws.rankings({1: 2, 3: 3, 6: 4}[T], bool(rng.random() < 0.3))
    return laws.reals(T)


# ------------------------------------------------------------------ compositions


def draw_law(rng: np.random.Generator, T: int, names: Names, depth: int = 2, idx: list[int] | None = None) -> Law:
    """A law over T outputs, which are the columns `idx` of the whole."""
    idx = list(range(T)) if idx is None else idx
    whole = len(idx) == names.T and T == names.T
    kind = str(rng.choice(["formula", "named", "product", "union", "intersection", "tube", "penalty"],
                          p=[0.32, 0.33, 0.1, 0.06, 0.07, 0.07, 0.05]))  # fmt: skip
    if depth == 0 or kind in ("formula", "named"):
        return draw_formulas(rng, T, names, idx) if kind == "formula" else draw_named(rng, T)
    if kind == "product" and T >= 2:
        return _product(rng, T, names, depth, idx, whole)
    if kind == "union":
        return compose.union([draw_law(rng, T, names, depth - 1, idx) for _ in range(int(rng.integers(1, 4)))])
    if kind == "intersection":
        first = draw_law(rng, T, names, depth - 1, idx)
        if rng.random() < 0.2:
            return compose.intersection([first, draw_law(rng, T, names, 0, idx)])
        near = first.snap(first.middle[None] + first.size * rng.standard_normal((1, T)), np.zeros((1, names.d)), rng)[0]
        near = np.where(np.isfinite(near), near, first.middle)
        members = [first, around(rng, T, near, first.size)]
        return compose.intersection(members if rng.random() < 0.7 else members[::-1])
    base = draw_law(rng, T, names, depth - 1, idx)
    if kind == "tube":
        delta = float(
            rng.choice([0.0, np.inf, rounded(10 ** rng.uniform(-6, 0) * base.size.min()), rounded(0.3 * base.size.max())])
        )
        return compose.inflated(base, delta, str(rng.choice(["euclidean", "euclidean", "objective"])))
    if kind == "penalty":
        return compose.penalized(base, float(rng.choice([0.0, 1e-9, 1e-3, 1.0, 1e6, np.inf])))
    return base


def _product(rng, T, names, depth, idx, whole):
    order = [int(t) for t in rng.permutation(T)]
    cuts = sorted(int(k) for k in rng.choice(np.arange(1, T), size=int(rng.integers(1, min(T, 3))), replace=False))
    groups = [g for g in np.split(np.array(order), cuts) if len(g)]
    if len(groups) > 1 and rng.random() < 0.3:
        groups = groups[:-1]  # the last outputs are in no block: free
    blocks, written = [], []
    for group in groups:
        columns = [int(t) for t in group]
        part = draw_law(rng, len(columns), names, depth - 1, [idx[t] for t in columns])
        blocks.append((part, columns))
        by_name = names.outputs is not None and whole and rng.random() < 0.5
        written.append([names.outputs[t] for t in columns] if by_name else columns)
    return compose.product(blocks, T, written)


def around(rng: np.random.Generator, T: int, point: np.ndarray, size: np.ndarray) -> Law:
    """A set that contains the point: what another law can be intersected with."""
    kind = str(rng.choice(["box", "ball", "affine", "half", "sphere", "cloud"], p=[0.35, 0.2, 0.15, 0.15, 0.1, 0.05]))
    if kind == "box":
        return laws.box(point - size * rng.uniform(0, 1, T), point + size * rng.uniform(0, 1, T), T)
    if kind == "half":
        return laws.box(np.where(rng.random(T) < 0.5, point - size * rng.uniform(0, 1, T), -np.inf), np.inf, T)
    if kind == "affine":
        A = rounded(rng.standard_normal((1, T)) / size)
        return laws.affine(A, A @ point, T)
    if kind == "cloud":
        return laws.cloud(np.concatenate([point[None], point + size * rng.standard_normal((3, T))]))
    u = rng.standard_normal(T)
    radius = float(rounded(size.max() * rng.uniform(0.2, 2)))
    return laws.round_set("Ball" if kind == "ball" else "Sphere", radius, point + radius * u / np.linalg.norm(u), T)
