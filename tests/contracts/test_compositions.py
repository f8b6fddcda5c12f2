"""ok implies contained, for random sets made of sets; `tests/fuzz` does the same at length, and with a judge of its own."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lawful import (
    Absolute,
    Affine,
    Ball,
    Box,
    Ellipsoid,
    Equations,
    Huber,
    Inflated,
    Intersection,
    Penalized,
    PointCloud,
    Product,
    Reals,
    Simplex,
    Sphere,
    Stiefel,
    Union,
)
from lawful.decoders import decode
from lawful.losses.objective import SmoothObjective
from lawful.losses.quadratic import Quadratic, QuadraticForm

ROWS = 3


def leaves(T: int) -> st.SearchStrategy:
    """Sets of T outputs that all come near the point (1, ..., 1) / T, so that intersections are seldom empty."""
    near = np.full(T, 1 / T)
    found = [
        st.floats(0.3, 2).map(lambda r: Sphere(r, center=near)),
        st.floats(0.3, 2).map(lambda r: Ball(r, center=near)),
        st.floats(0.5, 2).map(lambda r: Ellipsoid(r * np.arange(1.0, T + 1), center=near)),
        st.floats(0, 1).map(lambda low: Box(-low, 1.0)),
        st.just(Affine(np.ones((1, T)), [1.0])),
        st.just(Simplex(1.0)),
        st.just(Reals()),
        st.just(Stiefel(T, 1)),
        st.integers(0, 99).map(lambda k: PointCloud(near + np.random.default_rng(k).standard_normal((6, T)))),
    ]
    if T == 2:
        found.append(
            st.sampled_from(["y1 * y2 = 0.25", "y1**2 <= y2", "y1**2 + 4*y2**2 = 1.25", "y2 = sin(3*y1)"]).map(Equations)
        )
    return st.one_of(found)


def sets(T: int, depth: int = 2) -> st.SearchStrategy:
    if depth == 0:
        return leaves(T)
    inner = st.deferred(lambda: sets(T, depth - 1))
    found = [
        leaves(T),
        st.lists(inner, min_size=2, max_size=2).map(Union),
        st.lists(inner, min_size=2, max_size=2).map(Intersection),
        st.tuples(inner, st.sampled_from([0.0, 1e-3, 0.2])).map(lambda made: Inflated(*made)),
        st.tuples(inner, st.sampled_from([0.0, 0.5])).map(lambda made: Penalized(*made)),
    ]
    if T > 1:
        blocks = st.tuples(sets(1, depth - 1), sets(T - 1, depth - 1), st.permutations(range(T)))
        found.append(blocks.map(lambda made: Product([(made[0], made[2][:1]), (made[1], made[2][1:])])))
    return st.integers(0, len(found) - 1).flatmap(found.__getitem__)  # one_of would count every leaf as one choice


def objective(kind: str, T: int, seed: int, far: float):
    rng = np.random.default_rng(seed)
    w = far * rng.standard_normal((ROWS, T))
    if kind == "form":
        B = rng.standard_normal((ROWS, T, T))
        return QuadraticForm(B @ B.transpose(0, 2, 1) + 0.1 * np.eye(T), w)
    if kind == "corners":
        atoms = [np.sort(far * rng.standard_normal(4)) for _ in range(T)]
        losses = [Absolute() if t % 2 else Huber(0.5) for t in range(T)]
        return SmoothObjective(losses, [rng.uniform(0.1, 1, (ROWS, 4)) for _ in range(T)], atoms)
    a = rng.uniform(0.2, 3, (ROWS, T)) if kind == "weights" else rng.uniform(-1, 3, (ROWS, T))
    return Quadratic(a, a * w)


CASES = st.integers(1, 3).flatmap(
    lambda T: st.tuples(
        sets(T),
        st.sampled_from(["weights", "weights", "form", "corners", "any sign"]),
        st.integers(0, 10**6),
        st.sampled_from([0.1, 1.0, 50.0]),
        st.just(T),
    )
)


def test_ok_implies_contained():
    seen: Counter[str] = Counter()

    @settings(derandomize=True, max_examples=60, deadline=None, database=None)
    @given(CASES)
    def holds(case):
        C, kind, seed, far, T = case
        F = objective(kind, T, seed, far)
        try:
            fitted = C.fit(np.full(T, 1 / T) + np.random.default_rng(seed).standard_normal((8, T)))
            d = decode(F, fitted)
        except (TypeError, ValueError) as error:
            assert "no decoder minimises" in str(error) or "empty set" in str(error)
            seen["refused"] += 1
            return
        seen.update(d.status.tolist())
        seen["composed"] += ROWS * any(hasattr(fitted, part) for part in ("base_", "members_", "blocks_"))
        good = np.isin(d.status, ("ok", "low_confidence", "not_converged"))
        assert np.isfinite(d.c[good]).all()
        assert fitted.contains(d.c)[good].all(), (d.status, d.c)
        if not fitted.relaxed:
            assert np.allclose(d.residual[good], fitted.residual(d.c)[good], rtol=1e-6, atol=1e-12)
        assert not fitted.contains(d.c)[d.status == "infeasible"].any()

    holds()
    assert seen["ok"] > 80 and seen["composed"] > 80 and seen["refused"] < 20, seen
