"""Orders: exact against brute force, bounds never above the optimum, time limits kept, sets and decoders of pairs."""

import itertools
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from lawful.decoders.arcset import ArcSet, net_costs
from lawful.decoders.orders import _exact, order
from lawful.decoders.orders._bounds import packed_triangles
from lawful.decoders.orders._insertion import insertion_order
from lawful.losses import Hinge, Logistic, Objective, Quadratic
from lawful.rankings import linear_ordering, minimum_feedback_arc_set
from lawful.sets.rankings import Rankings


@cache
def all_orders(D):
    """Every order of D items, and the signs (D!, pairs) of its pairs p < q."""
    orders = np.array(list(itertools.permutations(range(D))))
    place = np.argsort(orders, axis=1)
    p, q = np.triu_indices(D, 1)
    return orders, np.where(place[:, p] < place[:, q], 1.0, -1.0)


def optimum(S):
    """The least violated weight by enumeration."""
    D = len(S)
    a = ((S - S.T) / 2)[np.triu_indices(D, 1)]
    return float((np.abs(a).sum() - all_orders(D)[1] @ a).min() / 2)


def measured(S, found):
    """(satisfied, violated) weight of an order, the slow way."""
    A, good, bad = (S - S.T) / 2, 0.0, 0.0
    for i, p in enumerate(found):
        for q in found[i + 1 :]:
            good, bad = good + max(A[p, q], 0), bad + max(-A[p, q], 0)
    return good, bad


def matrices(n, seed, D=(2, 9)):
    """Random matrices of several kinds: noise, an order plus noise, few values with many ties, sparse."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        d = int(rng.integers(*D))
        f = rng.standard_normal(d)
        kinds = (
            rng.standard_normal((d, d)),
            f[:, None] - f + rng.standard_normal((d, d)),
            rng.integers(0, 3, (d, d)).astype(float),
            rng.uniform(size=(d, d)) * (rng.uniform(size=(d, d)) < 0.4) * 1e6,
        )
        yield kinds[t % 4]


@pytest.mark.parametrize("few", [2, _exact.SUBSETS])
def test_exact_equals_brute_force(few, monkeypatch):
    """200 matrices; with few = 2 the integer programme does the work, else dynamic programming does."""
    monkeypatch.setattr(_exact, "SUBSETS", few)
    for S in matrices(200, seed=few):
        best, found = optimum(S), order(S, "exact")
        assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-9 * np.abs(S).max())
        assert (found.status, found.gap, found.bound) == ("optimal", 0.0, found.objective)
        assert sorted(found.order) == list(range(len(S)))


def test_exact_proves_forty_items():
    rng = np.random.default_rng(5)
    f = rng.standard_normal(40)
    S = f[:, None] - f + rng.standard_normal((40, 40))
    found = order(S, "exact")
    assert found.status == "optimal" and found.bound_method == "integer"
    assert found.objective <= order(S).objective
    assert order(S, bound="lp").bound <= found.objective * (1 + 1e-9)
    # The relaxation is tight for such matrices, the packing is not.
    assert order(S).bound < order(S, bound="lp").bound


def test_exact_that_runs_out_of_time_still_bounds():
    S = np.random.default_rng(6).standard_normal((50, 50))
    order(S[:15, :15], "exact", time_limit=0.1)  # what is compiled on first use is compiled here
    begin = time.perf_counter()
    found = order(S, "exact", time_limit=0.5)
    assert time.perf_counter() - begin < 5
    assert found.status == "time_limit" and 0 < found.bound < found.objective and 0 < found.gap < 1


def test_components_violate_nothing_between_them():
    """Two cycles, everything of the first before everything of the second: one arc of each is lost, no more."""
    W = np.zeros((7, 7))
    for cycle in ([4, 1, 6], [0, 5, 2, 3]):
        for p, q in zip(cycle, cycle[1:] + cycle[:1]):
            W[p, q] = 2.0
    W[np.ix_([4, 1, 6], [0, 5, 2, 3])] = 0.1
    parts = _exact.components(W - W.T)
    assert [list(part) for part in parts] == [[1, 4, 6], [0, 2, 3, 5]]
    assert order(W, "exact").objective == pytest.approx(2.0)  # weights of the skew part are half of W's


def test_bounds_never_exceed_the_optimum(monkeypatch):
    monkeypatch.setattr(_exact, "SUBSETS", 2)
    rng = np.random.default_rng(7)
    tight = 0
    for S in matrices(120, seed=8, D=(3, 9)):
        A, best = (S - S.T) / 2, optimum(S)
        top, slack = np.abs(A).max(), 1e-9 * np.abs(S).max()
        guess = order(S, bound=False).order
        if top > 0:
            for start in (guess, rng.permutation(len(S))):  # any order will do
                for visits in (1, 50, 10**6):
                    assert 0 <= packed_triangles(A, start, top, visits) <= best + slack
        relaxed = _exact.exact_order(A, guess, relaxed=True).bound
        assert relaxed <= best + slack
        assert packed_triangles(A, guess, max(top, 1e-300), 10**6) <= relaxed + slack
        tight += relaxed >= best - slack
    assert tight >= 100  # the triangle relaxation of so few items is nearly always integral


@pytest.mark.parametrize("D", [14, 60, 450])
def test_packed_triangles_bound_something(D):
    S = np.random.default_rng(D).standard_normal((D, D))
    found, tight = order(S), order(S, bound="tight")
    assert found.bound_method == tight.bound_method == "triangles"
    assert 0 < found.bound <= tight.bound * (1 + 1e-9) < found.objective
    assert found.gap == pytest.approx(1 - found.bound / found.objective)
    assert order(S, bound=False).bound == 0


def eades_by_hand(A):
    left, head, tail = list(range(len(A))), [], []
    while left:
        sources = [p for p in left if not any(A[q, p] > 0 for q in left)]
        sinks = [p for p in left if not any(A[p, q] > 0 for q in left)]
        p = sources[0] if sources else sinks[0] if sinks else max(left, key=lambda p: (A[p, left].sum().round(9), -p))
        (head if sources or not sinks else tail).append(p)
        left.remove(p)
    return head + tail[::-1]


def test_classical_rules():
    for S in matrices(40, seed=9, D=(3, 12)):
        A = (S - S.T) / 2
        assert order(A, "eades").order.tolist() == eades_by_hand(A)
        borda = order(A, "borda").order
        assert (np.diff(A.sum(axis=1)[borda]) <= 1e-9).all()


def test_insertion_ends_where_no_insertion_helps():
    for S in matrices(20, seed=10, D=(14, 40)):
        found = order(S, bound=False)
        good, bad = measured(S, found.order)
        assert (found.value, found.objective) == pytest.approx((good, bad))
        A = ((S - S.T) / 2)[np.ix_(found.order, found.order)]
        for k in range(len(A)):
            gains = np.concatenate([np.cumsum(A[k, :k][::-1]), np.cumsum(-A[k, k + 1 :])])
            assert gains.max() <= 1e-9 * np.abs(S).max()


def test_insertion_kernel_counts_what_it_saves():
    rng = np.random.default_rng(11)
    for dtype in (np.float64, np.float32):
        A = rng.standard_normal((101, 101)).astype(dtype)
        A -= A.T.copy()
        start, before = rng.permutation(101), A.copy()
        keep = start.copy()
        found, saved, made = insertion_order(A, start, 3, 1e-9)
        assert measured(A, start)[1] - measured(A, found)[1] == pytest.approx(saved, rel=1e-5)
        assert made == 3 and (before == A).all() and (start == keep).all()


def test_only_the_skew_part_matters():
    rng = np.random.default_rng(12)
    S, symmetric = rng.standard_normal((20, 20)), rng.standard_normal((20, 20))
    A = (S - S.T) / 2
    one, two = order(A), order(A + symmetric + symmetric.T)
    assert one.order.tolist() == two.order.tolist()
    assert (one.objective, one.bound) == pytest.approx((two.objective, two.bound))
    assert order(A * 1e-200).order.tolist() == one.order.tolist()  # tolerances follow the scale
    assert order(A * 1e200).order.tolist() == one.order.tolist()


@pytest.mark.parametrize(("D", "noise"), [(60, 0.5), (500, 1.0)])
def test_a_planted_order_is_recovered(D, noise):
    """All pairs say p before q with weight 1 + noise: with enough pairs the planted order is the best one, or nearly."""
    rng = np.random.default_rng(D)
    planted = rng.permutation(D)
    S = np.zeros((D, D))
    S[np.ix_(planted, planted)] = np.triu(1 + noise * rng.standard_normal((D, D)), 1)
    found = order(S)
    assert found.objective <= measured(S, planted)[1] + 1e-9
    displacement = np.abs(found.positions[planted] - np.arange(D))
    assert displacement.mean() <= 2.5
    clean = np.zeros((D, D))
    clean[np.ix_(planted, planted)] = np.triu(np.ones((D, D)), 1)
    exact = order(clean)
    assert exact.order.tolist() == planted.tolist() and exact.status == "optimal" and exact.objective == 0


def test_time_limits_are_kept_and_used():
    S = np.random.default_rng(13).standard_normal((80, 80))
    order(S, time_limit=0.01)  # compile
    quick = order(S)
    for limit in (0.1, 0.5):
        begin = time.perf_counter()
        found = order(S, time_limit=limit, random_state=0)
        assert time.perf_counter() - begin <= 1.5 * limit + 0.1  # the promise is 10 %, a busy machine may stall
        assert found.status == "time_limit" and found.objective < quick.objective
        assert sorted(found.order) == list(range(80)) and 0 < found.bound <= found.objective


def test_the_same_matrix_gives_the_same_order():
    W = np.random.default_rng(14).uniform(size=(50, 50))
    one, two, other = (linear_ordering(W, random_state=s) for s in (3, 3, 4))
    assert one.order.tolist() == two.order.tolist() and one.value == two.value
    assert abs(other.value / one.value - 1) < 0.01
    assert order(W).order.tolist() == order(W).order.tolist()


def test_the_order_does_not_depend_on_the_bound():
    for S in matrices(20, seed=20, D=(4, 30)):
        for options in ({}, {"kicks": 50}):
            orders = [order(S, bound=bound, **options).order.tolist() for bound in (True, False, "tight", "lp")]
            assert orders[0] == orders[1] == orders[2] == orders[3]


def test_one_item_no_weights_ties():
    alone = order([[0.0]])
    assert (alone.order.tolist(), alone.gap, alone.status) == ([0], 0.0, "optimal")
    for method in ("insertion", "exact", "eades", "borda"):
        nothing = order(np.zeros((5, 5)), method, ties=True)
        assert nothing.order.tolist() == [0, 1, 2, 3, 4]  # by item number
        assert nothing.positions.tolist() == [0] * 5 and nothing.status == "optimal" and nothing.objective == 0
    assert order(np.zeros((5, 5))).positions.tolist() == [0, 1, 2, 3, 4]
    S = np.zeros((4, 4))
    S[[2, 2, 3, 3], [0, 1, 0, 1]] = 1.0  # {2, 3} before {0, 1}
    assert order(S, ties=True).positions.tolist() == [2, 2, 0, 0]
    assert order(np.zeros((20, 20)), time_limit=0.05).status == "optimal"


def test_contradictory_comparisons():
    """p before q and q before p with the same weight is no comparison; unequal ones leave the difference."""
    assert order(np.ones((4, 4))).objective == 0
    W = np.array([[0, 5.0], [3.0, 0]])
    assert order(W).order.tolist() == [0, 1] and order(W).value == 1.0
    found = minimum_feedback_arc_set(W)
    assert (found.arcs.tolist(), found.weight, found.bound, found.gap) == ([[1, 0]], 3.0, 3.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: order(np.zeros((2, 3))), "square"),
        (lambda: order(np.zeros(4)), "square"),
        (lambda: order(np.zeros((0, 0))), "empty"),
        (lambda: order([[0, np.nan], [0, 0]]), "NaN"),
        (lambda: order([[0, np.inf], [-np.inf, 0]]), "infinities"),
        (lambda: order([[np.nan, 1], [-1, 0]]), "NaN"),
        (lambda: order([["a", "b"], ["c", "d"]]), "real numbers"),
        (lambda: order([[0, 1j], [0, 0]]), "real numbers"),
        (lambda: order(np.eye(2), "best"), "insertion, borda, eades, exact"),
        (lambda: order(np.eye(2), bound="some"), "tight"),
        (lambda: order(np.eye(2), time_limit=-1), "seconds"),
        (lambda: minimum_feedback_arc_set([[0, -1], [1, 0]]), "arc 0 -> 1 is -1"),
        (lambda: minimum_feedback_arc_set([[0, np.inf], [1, 0]]), "NaN or infinities"),
        (lambda: linear_ordering(np.zeros((3, 2))), "linear_ordering.*square"),
        (lambda: Rankings().fit(np.ones((3, 4))), "4 outputs are not the pairs"),
        (lambda: Rankings().fit(np.full((3, 3), 0.5)), "0.5"),
        (lambda: Rankings().fit(np.ones((3, 3))).encode([0, 1, 1]), "not an order"),
    ],
)
def test_errors_say_what_would_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_feedback_arc_sets():
    rng = np.random.default_rng(15)
    for t in range(30):
        D = int(rng.integers(3, 8))
        W = rng.integers(0, 4, (D, D)) * (rng.uniform(size=(D, D)) < 0.7)  # loops and opposite arcs included
        found = minimum_feedback_arc_set(sparse.csr_array(W) if t % 2 else W, "exact" if t % 3 else "insertion")
        rest = W.copy()
        rest[tuple(found.arcs.T)] = 0
        assert not np.tril(rest[np.ix_(found.order, found.order)]).any()  # what is left points forward
        best = min(np.tril(W[np.ix_(o, o)]).sum() for o in itertools.permutations(range(D)))
        assert found.weight == W[tuple(found.arcs.T)].sum() == best  # up to 13 items every answer is proven
        assert found.bound == found.weight and found.gap == 0
    empty = minimum_feedback_arc_set(np.zeros((3, 3)))
    assert empty.arcs.shape == (0, 2) and empty.weight == empty.gap == 0


def test_linear_ordering_takes_any_sign():
    rng = np.random.default_rng(16)
    for _ in range(20):
        W = rng.standard_normal((6, 6))
        best = max(np.triu(W[np.ix_(o, o)], 1).sum() for o in itertools.permutations(range(6)))
        found = linear_ordering(W)
        assert found.value == pytest.approx(best) and found.bound == pytest.approx(best) and found.gap == pytest.approx(0)
    W = rng.uniform(size=(40, 40))
    found, exact = linear_ordering(W), linear_ordering(W, time_limit=1.0, method="exact")
    assert found.value <= exact.bound + 1e-9 and exact.value <= found.bound and found.gap > 0
    assert linear_ordering([[7.0]]).value == 0


def dags(D):
    """All acyclic comparisons {-1, 0, 1} of D items, by brute force over 3^pairs."""
    p, q = np.triu_indices(D, 1)
    found = []
    for c in itertools.product((-1.0, 0.0, 1.0), repeat=len(p)):
        arcs = np.zeros((D, D))
        arcs[p, q], arcs[q, p] = np.maximum(c, 0), np.maximum(np.negative(c), 0)
        if not np.linalg.matrix_power(arcs, D).any():
            found.append(c)
    return np.array(found)


def test_rankings_as_a_set():
    every = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=6)))
    loose, strict = Rankings(ties=True).fit(every), Rankings().fit(every)
    assert (every[loose.contains(every)] == dags(4)).all() and len(dags(4)) == 543
    inside = every[strict.contains(every)]
    assert len(inside) == 24 and not (inside == 0).any()
    assert {tuple(c) for c in inside} == {tuple(c) for c in strict.encode(all_orders(4)[0])}
    assert strict.pairs().tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    for law in (strict, loose):
        draw = law.sample(50, random_state=0)
        assert draw.shape == (50, 6) and law.contains(draw).all() and len(np.unique(draw, axis=0)) > 10
    cycle = np.array([[1.0, -1.0, 1.0]])  # 0 before 1 before 2 before 0
    three = Rankings().fit(cycle)
    assert three.residual(cycle) == 1 and three.residual(0.9 * np.ones((1, 3))) == pytest.approx(0.1)
    assert np.isinf(three.residual(np.full((1, 3), np.nan)))


def test_open_comparisons_need_net_costs():
    """The literal DAG(4): S' decodes all 543 exactly; S = cost(-1) - cost(+1) alone does not."""
    rng = np.random.default_rng(17)
    graphs, (p, q) = dags(4), np.triu_indices(4, 1)
    pick = (graphs + 1).astype(int)
    naive_wrong = 0
    for _ in range(100):
        cost = rng.standard_normal((6, 3))
        best = cost[np.arange(6), pick].sum(axis=1).min()
        reached = []
        for gain in (net_costs(cost[:, 0], cost[:, 1], cost[:, 2]), cost[:, 0] - cost[:, 2]):
            S = np.zeros((4, 4))
            S[p, q], S[q, p] = gain, -gain
            place = order(S, "exact").positions
            side = np.where(place[p] < place[q], cost[:, 2], cost[:, 0])
            reached.append(np.minimum(side, cost[:, 1]).sum())
        assert reached[0] == pytest.approx(best)
        naive_wrong += reached[1] > best + 1e-9
    assert naive_wrong > 10


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", ["quadratic", "hinge"])
def test_pairs_decode_exactly(ties, kind):
    rng = np.random.default_rng(18)
    m, T = 25, 6
    if kind == "quadratic":
        F = Quadratic(rng.standard_normal((m, T)) + 0.5, rng.standard_normal((m, T)))  # weights of both signs
    else:
        atoms = [np.array([-1.0, 0.0, 1.0])] * T
        losses = [Hinge() if t % 2 else Logistic() for t in range(T)]
        F = Objective(losses, [rng.standard_normal((m, 3)) for _ in range(T)], atoms)
    candidates = dags(4) if ties else all_orders(4)[1]
    C = Rankings(ties=ties).fit(candidates)
    assert not ArcSet().missing(F, C)
    d = ArcSet().solve(F, C, None)
    assert d.value == pytest.approx(F.costs(candidates).min(axis=1))
    assert (d.residual == 0).all() and set(d.status) <= {"ok", "low_confidence"}


def test_many_pairs_are_lawful_but_not_proven():
    D = 35
    C = Rankings().fit(np.ones((1, D * (D - 1) // 2)))
    b = np.random.default_rng(19).standard_normal((1, C.n_tasks_))
    d = ArcSet().solve(Quadratic(np.ones_like(b), b), C, None)
    assert d.residual[0] == 0 and d.status[0] == "not_converged"


def lolib():
    """(matrix, best known value) of the linear-ordering instances in LAWFUL_DATA."""
    folder = Path(os.environ["LAWFUL_DATA"]) / "lolib"
    for line in (folder / "best_known.txt").read_text().splitlines():
        name, best = line.split()
        numbers = np.array((folder / name).read_text().split(), float)
        yield numbers[1:].reshape(int(numbers[0]), -1), float(best)


@pytest.mark.data
@pytest.mark.parametrize(("limit", "gap", "step"), [(0.2, 0.003, 1), (5.0, 0.0005, 2)])
def test_linear_ordering_instances(limit, gap, step):
    gaps = []
    linear_ordering(np.eye(20), time_limit=0.01)  # compile
    for W, best in list(lolib())[::step]:
        begin = time.perf_counter()
        found = linear_ordering(W, time_limit=limit, random_state=1)
        assert time.perf_counter() - begin <= 1.5 * limit
        assert best <= found.bound
        gaps.append(1 - found.value / best)
    assert np.mean(gaps) <= gap
