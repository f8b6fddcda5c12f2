"""Label logic: what formulas mean, what is the best assignment, how probable each label is, all against every assignment."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.pace import within

from lawful import ConstrainedRegressor, Hinge, KernelRidge, Logic, ZeroOne, kernels
from lawful.decoders import Assignments, choose, decode
from lawful.losses.choices import Choices
from lawful.sets.logic.graph import Gates
from lawful.sets.logic.junction import Junction
from lawful.sets.logic.parts import Conflict, split
from lawful.sets.logic.reader import MAX_DEPTH, MAX_LENGTH, read
from lawful.sets.logic.search import STARTS, Search
from lawful.sets.logic.table import Table, holds

LABELS = 7
NAMES = [f"y{t + 1}" for t in range(LABELS)]


def everything(T):
    return np.array(list(itertools.product([False, True], repeat=T)))


def law_of(formulas, labels):
    return Logic(formulas, labels=labels).fit(np.zeros((1, len(labels))))


# ---------------------------------------------------------------------- a second reading of formulas, as trees of tuples

OPERATORS = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "->": lambda a, b: ~a | b,
    "<->": lambda a, b: a == b,
}
LEAVES = st.sampled_from([("label", t) for t in range(LABELS)]) | st.sampled_from([("true",), ("false",)])


def deeper(inner):
    counts = st.tuples(
        st.sampled_from(["exactly", "at_most", "at_least"]),
        st.integers(0, 3),
        st.lists(st.integers(0, LABELS - 1), min_size=3, max_size=LABELS, unique=True).map(
            lambda ts: [("label", t) for t in ts]
        ),
    )
    return st.tuples(st.sampled_from(list(OPERATORS)), inner, inner) | st.tuples(st.just("not"), inner) | counts


FORMULAS = st.recursive(LEAVES, deeper, max_leaves=8)


def spelled(tree):
    if tree[0] == "label":
        return NAMES[tree[1]]
    if tree[0] in ("true", "false"):
        return tree[0]
    if tree[0] == "not":
        return f"not ({spelled(tree[1])})"
    if tree[0] in OPERATORS:
        return f"({spelled(tree[1])}) {tree[0]} ({spelled(tree[2])})"
    return f"{tree[0]}({tree[1]}, {', '.join(map(spelled, tree[2]))})"


def meant(tree, values):
    if tree[0] == "label":
        return values[:, tree[1]]
    if tree[0] in ("true", "false"):
        return np.full(len(values), tree[0] == "true")
    if tree[0] == "not":
        return ~meant(tree[1], values)
    if tree[0] in OPERATORS:
        return OPERATORS[tree[0]](meant(tree[1], values), meant(tree[2], values))
    number = sum(meant(part, values).astype(int) for part in tree[2])
    return {"exactly": number == tree[1], "at_most": number <= tree[1], "at_least": number >= tree[1]}[tree[0]]


@settings(max_examples=200, deadline=None)
@given(tree=FORMULAS)
def test_formulas_mean_what_they_say(tree):
    gates, values = Gates(LABELS), everything(LABELS)
    root = read(spelled(tree), {name: t for t, name in enumerate(NAMES)}, gates)
    np.testing.assert_array_equal(gates.truth([root], values)[:, 0], meant(tree, values))


@settings(max_examples=150, deadline=None)
@given(trees=st.lists(FORMULAS, min_size=1, max_size=5), seed=st.integers(0, 2**31))
def test_best_and_sums_of_every_way_are_exact(trees, seed):
    gates = Gates(LABELS)
    roots = [read(spelled(tree), {name: t for t, name in enumerate(NAMES)}, gates) for tree in trees]
    values = everything(LABELS)
    points = values[np.all([meant(tree, values) for tree in trees], axis=0)]
    try:
        found = split(gates, roots)
    except Conflict:
        assert not len(points)
        return
    logits = np.random.default_rng(seed).standard_normal((5, LABELS))
    ways = {"table": lambda part: Table.of(part, 2**16), "junction": Junction.of, "search": Search}
    for way, make in ways.items():
        solvers = [make(part) for part in found.parts]
        assert all(solver is not None for solver in solvers)
        assert (len(points) > 0) == all(solver.any() is not None for solver in solvers)
        if not len(points):
            continue
        assert all((points[:, t] == value).all() for t, value in found.decided.items())
        for part, solver in zip(found.parts, solvers):
            inside, s = np.unique(points[:, part.labels], axis=0), logits[:, part.labels]
            cost = -s @ inside.T.astype(float)
            best, margin, gap = solver.best(-s)
            assert (best[:, None] == inside[None]).all(axis=2).any(axis=1).all(), way
            np.testing.assert_allclose(-(s * best).sum(axis=1), cost.min(axis=1), atol=1e-12)
            assert (gap == 0).all()
            if way == "search":
                continue
            second = np.sort(cost, axis=1)[:, 1] if len(inside) > 1 else np.inf
            np.testing.assert_allclose(margin, second - cost.min(axis=1), atol=1e-12)
            weight = np.exp(-cost)
            total, share = solver.sums(s)
            np.testing.assert_allclose(total, np.log(weight.sum(axis=1)), atol=1e-12)
            np.testing.assert_allclose(share, weight @ inside / weight.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_twelve_labels_against_all_assignments(seed):
    rng = np.random.default_rng(seed)
    pick = lambda k: [f"y{t + 1}" for t in rng.choice(12, k, replace=False)]  # noqa: E731
    formulas = ["{} and {} -> {}".format(*pick(3)) for _ in range(6)] + [f"at_most(3, {', '.join(pick(7))})"]
    formulas += ["{} -> exactly_one({}, {}, {})".format(*pick(4)), "{} <-> ({} or {})".format(*pick(3))]
    law = Logic(formulas).fit(np.zeros((1, 12)))
    points = everything(12)[law.contains(everything(12))].astype(float)
    assert 1 < len(points) < 4096
    logits = 2 * rng.standard_normal((50, 12))
    weight = np.exp(logits @ points.T)
    np.testing.assert_allclose((logits * law.best(-logits)[0]).sum(1), (logits @ points.T).max(1), atol=1e-12)
    np.testing.assert_allclose(law.marginals(logits), weight @ points / weight.sum(1, keepdims=True), atol=1e-12)


# ---------------------------------------------------------------------- the language


@pytest.mark.parametrize(
    "text, like",
    [
        ("a -> b -> c", "a -> (b -> c)"),
        ("not a and b", "(not a) and b"),
        ("a or b and c", "a or (b and c)"),
        ("a xor b or c", "(a xor b) or c"),
        ("a xor b and c", "a xor (b and c)"),
        ("a or b -> c", "(a or b) -> c"),
        ("a -> b <-> c", "(a -> b) <-> c"),
        ("!a & ~b | ¬c", "(not a and not b) or not c"),
        ("a => b", "a implies b"),
        ("a <=> b", "a iff b"),
        ("a ∧ b ∨ c", "a && b || c"),
        ("exactly_one(a, b, c)", "exactly(1, a, b, c)"),
        ("at_most_one(a, b, c)", "at_most(1, a, b, c)"),
        ("none(a, b)", "not any(a, b)"),
        ("all(a, b, c)", "a and b and c"),
        ("xor(a, b, c)", "a xor b xor c"),
        ("exactly_one(a and b, not c)", "(a and b) xor not c"),
        ("at_least(2, a, b, c)", "(a and b) or (a and c) or (b and c)"),
        ("`a` -> (  b # why\n or c)", "a -> b or c"),
    ],
)
def test_operators(text, like):
    first, second = (law_of([formula], ["a", "b", "c"]) for formula in (text, like))
    np.testing.assert_array_equal(first.contains(everything(3)), second.contains(everything(3)))


@pytest.mark.parametrize(
    "formula, message",
    [
        ("", "is empty"),
        ("a ->", "ends too early"),
        ("a b", "where an operator is expected"),
        ("a and", "ends too early"),
        ("and a", "where a label is expected"),
        ("(a", "without its '\\)'"),
        ("a)", "without its '\\('"),
        ("a, b", "without its"),
        ("(a, b)", "outside of a function"),
        ("anmal", "did you mean 'animal'"),
        ("exactly_on(a, b)", "did you mean 'exactly_one'"),
        ("at_most(a, b)", "without a number"),
        ("at_most(2)", "without a number"),
        ("at_most(1, a, a)", "twice"),
        ("exactly(3, a, b)", "never hold"),
        ("exactly_one()", "no label"),
        ("any(a,)", "no label|comma"),
        ("2 a", "number 2"),
        ("a = b", "Equations"),
        ("a -> `b", "not closed"),
        ("a\nb", "several lines"),
        ("a[0]", "not allowed"),
        ("__import__('os')", "cannot call"),
        ("not " * (MAX_DEPTH + 1) + "a", "levels deep"),
        ("(" * (MAX_DEPTH + 1) + "a", "levels deep"),
        ("a -> " * (MAX_DEPTH + 1) + "a", "levels deep"),
        ("a" * (MAX_LENGTH + 1), "too long"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_formulas_are_explained_at_once(formula, message):
    with within(0.1), pytest.raises(ValueError, match=message) as caught:
        law_of([formula], ["a", "b", "animal"])
    assert str(caught.value).startswith("Logic") and len(str(caught.value)) < 1000


def test_long_formulas_are_read_in_linear_time():
    labels = [f"l{t}" for t in range(2000)]
    with within(5):
        law = law_of([" or ".join(labels), f"at_most(3, {', '.join(labels)})"], labels)
        assert law.contains(np.eye(2000)[:3]).all() and not law.contains(np.zeros((1, 2000)))[0]


def test_names():
    law = law_of(["`hot dog` -> animal", "`not` or animal"], ["animal", "hot dog", "not"])
    np.testing.assert_array_equal(law.contains([[0, 1, 1], [1, 1, 0], [0, 0, 0]]), [False, True, False])
    assert Logic("y1 -> y2").fit(np.zeros((1, 2))).contains([[1, 0]]).tolist() == [False]
    for labels, message in ((["a", "a"], "several columns"), (["a"], "1 outputs"), ("ab", "list")):
        with pytest.raises(ValueError, match=message):
            Logic("a", labels=labels).fit(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="not the columns"):
        Logic("a", labels=["a", "b"]).fit(np.zeros((1, 2)), outputs=["b", "a"])
    for formulas in (3, [3], None):
        with pytest.raises(TypeError, match="list of strings"):
            Logic(formulas).fit(np.zeros((1, 2)))


# ---------------------------------------------------------------------- contradictions


@pytest.mark.parametrize(
    "formulas, conflict",
    [
        (["a -> b", "c or d", "a", "not b", "d -> c"], {"a -> b", "a", "not b"}),
        (["a and not a", "b"], {"a and not a"}),
        (["exactly_one(a, b)", "exactly_one(b, c)", "exactly_one(a, c)", "d"], 3),
        (["a <-> b", "b <-> c", "c xor a", "d -> a"], {"a <-> b", "b <-> c", "c xor a"}),
        (["at_least(3, a, b, c, d)", "at_most(2, a, b, c, d)", "a"], {"at_least(3, a, b, c, d)", "at_most(2, a, b, c, d)"}),
        (["false"], {"false"}),
    ],
)
def test_contradictions_are_named_and_minimal(formulas, conflict):
    labels = ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match=r"can never hold|cannot all hold") as caught:
        law_of(formulas, labels)
    named = [formula for formula in formulas if repr(formula) in str(caught.value)]
    assert len(named) == conflict if isinstance(conflict, int) else set(named) == conflict
    for left_out in named:  # without any one of them the others can hold
        law_of([formula for formula in named if formula != left_out], labels)


def test_a_contradiction_among_many_formulas_is_found_soon():
    """Pigeons: five labels of which each of four holes takes one at most; hidden among a hundred other formulas."""
    labels = [f"p{i}h{j}" for i in range(5) for j in range(4)] + [f"l{t}" for t in range(100)]
    noise = [f"l{t} -> l{t + 1}" for t in range(99)]
    pigeons = [f"any({', '.join(f'p{i}h{j}' for j in range(4))})" for i in range(5)]
    holes = [f"at_most(1, {', '.join(f'p{i}h{j}' for i in range(5))})" for j in range(4)]
    with within(20), pytest.raises(ValueError, match="these 9 formulas cannot all hold") as caught:
        law_of([*noise[:50], *pigeons, *noise[50:], *holes], labels)
    assert "l1 " not in str(caught.value)


# ---------------------------------------------------------------------- hierarchies


def test_hierarchies():
    parents = {"animal": None, "dog": "animal", "cat": ["animal"], "plant": None, "hot dog": ["dog", "food"]}
    labels = ["animal", "plant", "food", "dog", "cat", "hot dog"]
    law = Logic.from_hierarchy(parents, labels=labels).fit(np.zeros((1, 6)))
    up = lambda *names: [[label in names for label in labels]]  # noqa: E731
    assert law.contains(up("animal", "dog", "cat")) and law.contains(up()) and not law.contains(up("dog"))
    assert not law.contains(up("hot dog", "dog", "animal")) and law.contains(up("hot dog", "dog", "animal", "food"))
    strict = Logic.from_hierarchy({"dog": "animal", "cat": "animal", "plant": None}, exclusive=True, complete=True)
    strict.labels = ["animal", "plant", "dog", "cat"]
    strict.fit(np.zeros((1, 4)))
    kept = everything(4)[strict.contains(everything(4))]
    assert sorted(kept.astype(int).tolist()) == [[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0]]
    with pytest.raises(ValueError, match="cycle"):
        Logic.from_hierarchy({"a": "b", "b": "c", "c": "a"})
    with pytest.raises(ValueError, match="backticks"):
        Logic.from_hierarchy({"a`": "b"})


@pytest.mark.parametrize("exclusive", [False, True])
def test_large_trees_are_solved_exactly(exclusive):
    """Against the recursion from the leaves to the root, written out for trees."""
    rng = np.random.default_rng(0)
    T = 150
    parents = {f"l{t}": f"l{rng.integers(max(0, t - 8), t)}" if t else None for t in range(T)}
    children = {t: [u for u in range(T) if parents[f"l{u}"] == f"l{t}"] for t in range(T)}
    law = Logic.from_hierarchy(parents, exclusive=exclusive, labels=list(parents)).fit(np.zeros((1, T)))
    assert law.exact_
    logits = 2 * rng.standard_normal((30, T))
    best, total = np.zeros((T, 30)), np.zeros((T, 30))  # of the subtree of t: value of the best, log of the sum; t may be false
    for t in reversed(range(T)):
        below, sums = np.zeros((2, 30)), np.zeros((2, 30))
        if exclusive and children[t]:
            below = np.max([best[u] for u in children[t]], axis=0)
            odds = [np.exp(total[u]) - 1 for u in children[t]]  # all assignments of u's subtree in which u is true
            sums = np.log1p(np.sum(odds, axis=0))
        elif children[t]:
            below, sums = np.sum([best[u] for u in children[t]], axis=0), np.sum([total[u] for u in children[t]], axis=0)
        else:
            below = sums = np.zeros(30)
        best[t] = np.maximum(0, logits[:, t] + below)
        total[t] = np.logaddexp(0, logits[:, t] + sums)
    found, margin, gap = law.best(-logits)
    assert law.contains(found).all() and (gap == 0).all() and (margin >= 0).all()
    np.testing.assert_allclose((logits * found).sum(axis=1), best[0], atol=1e-10)
    log_z, q = law.sums(logits)
    np.testing.assert_allclose(log_z, total[0], atol=1e-9)
    np.testing.assert_allclose(q[:, 0], 1 - np.exp(-total[0]), atol=1e-9)
    step = 1e-5  # marginals are the slope of log Z
    nudged = law.sums(logits + step * np.eye(T)[7])[0] - law.sums(logits - step * np.eye(T)[7])[0]
    np.testing.assert_allclose(q[:, 7], nudged / (2 * step), atol=1e-7)


# ---------------------------------------------------------------------- search


def hard(T=60, seed=0, time_limit=10.0):
    rng = np.random.default_rng(seed)
    clauses = [rng.choice(T, 3, replace=False) + 1 for _ in range(3 * T)]
    formulas = [f"not (y{a} and y{b} and y{c})" if a % 2 else f"y{a} or y{b} or not y{c}" for a, b, c in clauses]
    formulas += ["at_most(20, " + ", ".join(f"y{t + 1}" for t in range(T)) + ")"]
    return Logic(formulas, time_limit=time_limit).fit(np.zeros((1, T)))


def test_search_agrees_with_integer_programming():
    law = hard(time_limit=600.0)  # a busy machine is no reason to give up
    assert not law.exact_
    costs = np.random.default_rng(1).standard_normal((40, 60))
    found, _, gap = law.best(costs)
    assert law.contains(found).all() and (gap == 0).all()
    (solver,) = law.compiled_.solvers
    for row in range(5):
        outcome = solver.linear.minimise(costs[row], 60.0)
        assert outcome.proven
        np.testing.assert_allclose(costs[row] @ found[row], costs[row] @ outcome.values, atol=1e-9)
    solver.nodes = 1  # branch and bound gives up at once: integer programming answers
    again, _, gap = law.best(costs[:5])
    np.testing.assert_allclose((costs[:5] * again).sum(1), (costs[:5] * found[:5]).sum(1), atol=1e-9)
    assert (gap == 0).all()


def test_what_is_not_proven_has_a_gap():
    law = hard(time_limit=1e-9)
    costs = np.random.default_rng(1).standard_normal((20, 60))
    true, _, _ = law.best(costs)
    law.compiled_.solvers[0].nodes = 1
    d = decode(Choices(np.zeros_like(costs), costs), law)
    assert law.contains(d.c).all()
    open_rows = d.gap > 0
    assert open_rows.any() and (d.status[open_rows] == "not_converged").all() and (d.status[~open_rows] == "ok").all()
    assert (d.value - (costs * true).sum(1) <= d.gap + 1e-9).all()
    assert "gap" in d.to_frame()


def test_marginals_that_are_drawn_obey_and_are_near():
    law = Logic([f"y{t + 1} -> y{t + 2}" for t in range(7)]).fit(np.zeros((1, 8)))
    (part,) = law.compiled_.split.parts
    logits = np.random.default_rng(0).standard_normal((20, 8))
    drawn, exact = Search(part).sums(logits)[1], law.marginals(logits)
    assert (np.diff(drawn, axis=1) >= -1e-12).all()  # a mean of assignments that obey
    assert np.abs(drawn - exact).mean() < 0.01


NESTED = (
    "{0} -> {1}",
    "not ({0} and {1} and {2})",
    "({0} or {1}) <-> ({2} xor {3})",
    "at_most(2, {0}, {1}, {2}, {3}, {4})",
    "{5} -> exactly(1, {0}, {1}, {2}, {3})",
    "exactly_one({0}, {1}, {2}) or {3}",
    "at_least(2, {0}, not {1}, {2} and {3}, {4})",
    "exactly(2, {0} or {1}, {0} and {1}, exactly_one({2}, {3}, {4}))",
)


def test_random_walks_over_nested_formulas_are_near_all_assignments():
    """Formulas of every shape, log-odds from weak to strong; before the walks the error was up to 0.7."""
    rng, errors = np.random.default_rng(3), []
    for k in range(24):
        T = int(rng.integers(6, 11))
        values = everything(T)
        chosen = [NESTED[rng.integers(len(NESTED))].format(*(f"y{t + 1}" for t in rng.permutation(T))) for _ in range(4)]
        law = Logic(chosen, labels=[f"y{t + 1}" for t in range(T)])
        try:
            law = law.fit(np.zeros((1, T)))
        except ValueError:  # they contradict each other
            continue
        points = values[law.contains(values)].astype(float)
        logits = rng.standard_normal((10, T)) * (0.5, 1.0, 2.0, 4.0)[k % 4]
        for part in law.compiled_.split.parts:
            drawn, s = Search(part).sums(logits[:, part.labels])[1], logits
            weight = np.exp(s @ points.T - (s @ points.T).max(axis=1, keepdims=True))
            exact = (weight / weight.sum(axis=1, keepdims=True)) @ points[:, part.labels]
            errors.append(drawn - exact)
            one = Search(part).sums(logits[3:4, part.labels])[1]
            np.testing.assert_array_equal(one[0], drawn[3])  # a row's answer is its own affair
    off = np.concatenate([e.ravel() for e in errors])
    assert len(errors) > 15 and np.sqrt((off**2).mean()) < 0.02 and np.abs(off).max() < 0.25 and abs(off.mean()) < 0.003


def test_random_walks_where_no_label_can_move_alone():
    law = Logic(["exactly_one(y1, y2, y3, y4, y5)", "y1 xor y6"]).fit(np.zeros((1, 6)))
    (part,) = law.compiled_.split.parts
    logits = np.random.default_rng(1).standard_normal((30, 6))
    drawn = Search(part).sums(logits[:, part.labels])[1]
    np.testing.assert_allclose(drawn, law.marginals(logits)[:, part.labels], atol=0.05)


# ---------------------------------------------------------------------- a set among sets


def test_violations_are_counted_and_named():
    law = law_of(["a -> b", "not (a and c)", "exactly_one(b, c)"], ["a", "b", "c"])
    c = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.0], [np.nan, 0.0, 1.0]])
    np.testing.assert_array_equal(law.residual(c), [2, 0, 1, np.inf])
    assert law.violated(c[:2]) == [["a -> b", "not (a and c)"], []]
    assert law.contains(c).tolist() == [False, True, False, False]


def test_other_losses_and_values():
    """Hinge and 0-1 losses with labels in {-1, 1}, the square with {0, 1}: the best of all assignments, by enumeration."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 1))
    truth = np.c_[X[:, 0] > 0, X[:, 0] > 1, X[:, 0] < -1] ^ (rng.uniform(size=(60, 3)) < 0.1)
    formulas = ["y2 -> y1", "not (y1 and y3)"]
    for values, loss in (((-1, 1), Hinge()), ((-1, 1), ZeroOne()), ((0, 1), None)):
        law = Logic(formulas, values=values)
        ridge = KernelRidge(kernels.Gaussian(0.5), lam=1e-2)
        model = ConstrainedRegressor(law, loss=loss, surrogate=ridge).fit(X, np.where(truth, values[1], values[0]))
        F, d = model.objective(X), model.decode(X)
        assert isinstance(choose(F, model.constraint_), Assignments)
        points = np.array(list(itertools.product(values, repeat=3)), float)
        points = points[model.constraint_.contains(points)]
        assert len(points) == 4
        np.testing.assert_allclose(d.value, F.costs(points).min(axis=1), atol=1e-9)
        assert model.constraint_.contains(d.c).all() and (d.gap == 0).all()


def test_few_assignments_are_listed():
    law = Logic(["y1 -> y2", "y4", "exactly_one(y5, y6, y7)"]).fit(np.zeros((1, 8)))
    values = everything(8)
    expected = values[law.contains(values)].astype(float)
    assert sorted(law.points_.tolist()) == sorted(expected.tolist()) and len(expected) == 3 * 3 * 2 * 2
    assert not hasattr(Logic("y1 -> y2").fit(np.zeros((1, 20))), "points_")


def test_copies_say_the_same():
    law = law_of(["a -> b"], ["a", "b"])
    copy = pickle.loads(pickle.dumps(law))
    assert copy.contains([[1, 0]]).tolist() == [False] and clone(law).get_params() == law.get_params()
    for bad in ((0, 0), (1,), "ab", (0, np.nan)):
        with pytest.raises(ValueError, match="two different numbers"):
            Logic("y1", values=bad).fit(np.zeros((1, 1)))


def test_random_assignments_have_a_bounded_price(monkeypatch):
    """Marginals of formulas that no table holds never wait for integer programming, and every draw obeys."""
    rng = np.random.default_rng(5)
    T = 60
    clauses = []
    for _ in range(150):
        chosen = rng.choice(T, 3, replace=False)
        clauses.append(" or ".join(f"{'not ' if rng.random() < 0.5 else ''}y{t + 1}" for t in chosen))
    law = Logic(clauses).fit(np.zeros((1, T)))
    assert not law.exact_
    drawn = []
    original = Search._draw
    monkeypatch.setattr(Search, "_draw", lambda self, *given: drawn.append(original(self, *given)) or drawn[-1])
    monkeypatch.setattr(Search, "_repair", lambda *_: pytest.fail("a draw asked for a proof"))
    q = law.marginals(rng.standard_normal((3, T)))
    assert q.shape == (3, T) and (q >= 0).all() and (q <= 1).all()
    part = law.compiled_.split.parts[0]
    assert len(drawn) == STARTS and all(holds(part, part.asserted, found).all() for found in drawn)
