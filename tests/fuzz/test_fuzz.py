"""The fuzz suite with fixed seeds, its invariants as hypothesis properties, and tests of the fuzzer itself: planted faults."""

from __future__ import annotations

import ast
import contextlib
import io
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lawful
from lawful.sets.manifolds import Rotations
from lawful.sets.round import Sphere

from . import calls, compose, draw, fields, laws, optimum, run
from .expressions import Binary, Const, Power, Relation, Unary, Var
from .judge import clear, judge
from .laws import Evidence
from .source import Handed, New

NAMES = draw.Names(None, None, 2, 1)
Y1, Y2 = Var("y", 0), Var("y", 1)


# ------------------------------------------------------------------ the library, attacked


@pytest.mark.parametrize("seed", [1, 8])
def test_laws_of_all_kinds_hold(seed):
    """Fixed seeds, a few calls on each law; `make fuzz` is the long run."""
    report = run.run_here(range(12), seed, n_calls=2, share=np.inf)
    assert not report.failures, str(report)
    assert report.rows["ok"] > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_fixed_seeds(seed):
    report = run.run_here(range(60), seed, n_calls=6, share=1.0)
    assert not report.failures, str(report)
    assert report.rows["ok"] > 300


def test_named_sets_hold():
    """Sets with closed forms are quick: many of them."""
    named = [k for k in range(400) if isinstance(run.law_of(0, k)[2], laws.Named)]
    report = run.run_here(named, 0, n_calls=1, share=np.inf)
    assert not report.failures, str(report)
    assert report.cases > 100 and report.rows["ok"] > 300


@settings(derandomize=True, max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_any_case_holds(number):
    verdicts = run.run_case(7, number, n_calls=2, share=np.inf)
    failures = [failure for v in verdicts for failure in v.failures]
    assert not failures, (number, failures)


NUMBERS = st.floats(-3, 3).map(lambda v: round(v, 3))
SCALES = st.integers(-12, 12).map(lambda k: 10.0**k)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5).map(np.array)


ANY_SCALE = [
    "Sphere",
    "Ball",
    "Ellipsoid",
    "Box",
    "Simplex",
    "Affine",
    "PointCloud",
    "Monotone",
    "ConvexShape",
    "Hierarchy",
    "Flow",
]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(ROWS, SCALES, st.sampled_from(ANY_SCALE), NUMBERS)
def test_named_sets_hold_at_any_scale(rows, scale, kind, shift):
    """ok at every scale, contained, the same alone as in the batch, the input unchanged."""
    made = {
        "Sphere": lambda: laws.round_set("Sphere", scale, shift * scale, 3),
        "Ball": lambda: laws.round_set("Ball", scale, shift * scale, 3),
        "Ellipsoid": lambda: laws.round_set("Ellipsoid", scale * np.array([1.0, 0.5, 2.0]), shift * scale, 3),
        "Box": lambda: laws.box(-scale, np.array([scale, np.inf, 0.5 * scale]), 3),
        "Simplex": lambda: laws.simplex(scale, 3),
        "Affine": lambda: laws.affine(np.array([[1.0, 2.0, -1.0]]), np.array([shift * scale]), 3),
        "PointCloud": lambda: laws.cloud(scale * np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]])),
        "Monotone": lambda: fields.monotone(3, shift > 0, abs(shift) * scale, scale),
        "ConvexShape": lambda: fields.convex_shape(np.array([0.0, 1.0, 3.0]), shift > 0, scale),
        "Hierarchy": lambda: fields.hierarchy(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), shift > 0, scale),
        "Flow": lambda: fields.flow([(0, 1), (1, 2), (0, 2)], scale * np.array([1.0, 0.5, 2.0]), np.full(3, 3 * scale)),
    }
    law = made[kind]()
    names = draw.Names(None, None, 3, 1)
    C = calls.fitted(law, names, scale * rows, Handed())
    call = calls.ProjectCall(law, names, points=scale * rows, shared=C)
    verdict = judge(call, Always())
    assert not verdict.failures and verdict.statuses["ok"] == len(rows)


class Always:
    """A generator that looks at everything: every check of `judge` that is made now and then is made."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def random(self):
        return 0.0

    def __getattr__(self, name):
        return getattr(self.rng, name)


# ------------------------------------------------------------------ planted faults


def sphere_call(points=((3.0, 4.0), (0.5, -0.2), (-1.0, 2.0)), law=None):
    law = law or laws.round_set("Sphere", 1.0, 0.0, 2)
    C = calls.fitted(law, NAMES, np.zeros((1, law.T)), Handed())
    return calls.ProjectCall(law, NAMES, points=np.array(points), shared=C)


def kinds(verdict):
    return {kind for kind, _ in verdict.failures}


def test_an_honest_library_has_nothing_to_answer_for():
    assert not judge(sphere_call(), Always()).failures


def test_a_reflection_that_calls_itself_ok_is_found(monkeypatch):
    def reflected(self, c):
        R = -Rotations.__mro__[1].nearest(self, c).reshape(-1, 3, 3)
        R[:, :, 0] *= np.sign(np.linalg.det(R))[:, None] * -1
        return R.reshape(len(c), 9)

    monkeypatch.setattr(Rotations, "nearest", reflected)
    for measure in ("residual", "relative"):
        monkeypatch.setattr(Rotations, measure, lambda self, c: np.zeros(len(c)))
    law = laws.frames(3, 3, True)
    call = sphere_call(np.random.default_rng(0).standard_normal((4, 9)), law)
    call.names = draw.Names(None, None, 9, 1)
    assert "violated" in kinds(judge(call, Always()))


def test_a_point_off_the_law_is_found(monkeypatch):
    honest = Sphere.project
    monkeypatch.setattr(Sphere, "project", lambda self, b, a: honest(self, b, a) * (1 + 1e-5))
    for measure in ("residual", "relative"):
        monkeypatch.setattr(Sphere, measure, lambda self, c: np.zeros(len(c)))
    assert "violated" in kinds(judge(sphere_call(), Always()))


def test_a_hang_is_found(monkeypatch):
    def endless(self, b, a):
        while True:
            time.process_time()

    monkeypatch.setattr(Sphere, "project", endless)
    assert kinds(judge(sphere_call(), Always(), limit=0.2)) == {"hang"}


def test_a_changed_input_is_found(monkeypatch):
    def careless(points, *args, **kwargs):
        points[0] += 1
        return honest(points, *args, **kwargs)

    honest = lawful.project
    monkeypatch.setattr(lawful, "project", careless)
    assert "changed" in kinds(judge(sphere_call(), Always()))


def test_rows_that_depend_on_their_company_are_found(monkeypatch):
    honest = Sphere.project

    def sociable(self, b, a):
        return honest(self, b + 0.1 * b.mean(axis=0), a)

    monkeypatch.setattr(Sphere, "project", sociable)
    found = kinds(judge(sphere_call(), Always()))
    assert any(kind.startswith("row alone") for kind in found)


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), np.linalg.LinAlgError("Singular matrix"), ValueError("bad")])
def test_unclear_errors_are_found(monkeypatch, error):
    def broken(self, b, a):
        raise error

    monkeypatch.setattr(Sphere, "project", broken)
    assert kinds(judge(sphere_call(), Always())) == {"exception"}


def test_an_error_of_numpy_is_not_a_clear_error():
    call = sphere_call()
    with pytest.raises(ValueError) as caught:
        call.shared.residual(np.zeros((2, 3)))
    assert not clear(caught.value)
    with pytest.raises(ValueError) as caught:
        lawful.project([[np.nan, 1.0]], Sphere())
    assert clear(caught.value)


def test_a_leaked_warning_is_found(monkeypatch):
    honest = Sphere.project

    def loud(self, b, a):
        warnings.warn("overflow", RuntimeWarning, stacklevel=2)
        return honest(self, b, a)

    monkeypatch.setattr(Sphere, "project", loud)
    assert kinds(judge(sphere_call(), Always())) == {"warning"}


def test_a_wrong_value_and_a_residual_of_another_point_are_found(monkeypatch):
    honest = lawful.project
    monkeypatch.setattr(lawful, "project", lambda *a, **k: (d := honest(*a, **k)).with_(value=2 * d.value))
    assert "value" in kinds(judge(sphere_call(), Always()))
    monkeypatch.setattr(lawful, "project", lambda *a, **k: (d := honest(*a, **k)).with_(residual=d.residual + 0.1))
    assert "residual" in kinds(judge(sphere_call(), Always()))


def test_a_point_that_is_not_the_best_is_noted(monkeypatch):
    honest = Sphere.project
    monkeypatch.setattr(Sphere, "project", lambda self, b, a: -honest(self, b, a))
    verdict = judge(sphere_call(), Always())
    assert [kind for kind, _ in verdict.notes] == ["not optimal"]


def test_a_silent_worker_is_stopped_and_the_run_goes_on(monkeypatch):
    monkeypatch.setattr(run, "WATCHDOG", 1.0)
    script = "import sys, time; n = sys.argv[2].split('=')[1]; print('{\"begin\": ' + n + '}', flush=True); time.sleep(60)"
    worker = run.Worker(0, 5, 1, 10.0, command=(sys.executable, "-c", script))
    try:
        found = []
        end = time.monotonic() + 20
        while len(found) < 2 and time.monotonic() < end:
            if (done := worker.hear()) is not None:
                found.append(done)
        assert [number for number, _, _ in found] == [5, 6]
        assert all(v[0].failures[0][0] == "hang" for _, v, _ in found)
    finally:
        worker.stop()


# ------------------------------------------------------------------ the evaluator and the generator


def test_a_relation_is_measured_by_the_size_of_its_terms():
    circle = Relation(Binary("+", Power(Y1, 2.0), Power(Y2, 2.0)), "=", Const(1.0))
    off = circle.off(np.array([[1.0, 0.0], [1.1, 0.0], [1e6, 0.0]]), None)
    assert off[0] == 0 and off[1] == pytest.approx(0.21 / 2.21, rel=1e-3) and off[2] > 0.99
    wide = Relation(Binary("*", Const(1e12), Y1), "=", Const(1e12))
    assert wide.off(np.array([[1 + 1e-9, 0.0]]), None)[0] < 1e-6 < wide.off(np.array([[1 + 1e-4, 0.0]]), None)[0]
    below = Relation(Y1, "<=", Const(1.0))
    assert below.off(np.array([[0.5, 0.0], [2.0, 0.0]]), None)[0] == 0 < below.off(np.array([[2.0, 0.0]]), None)[0]


@pytest.mark.parametrize("name", ["log", "sqrt", "asin"])
def test_outside_the_domain_is_violated(name):
    relation = Relation(Unary(name, Y1), "<=", Const(1e6))
    assert relation.off(np.array([[-2.0, 0.0]]), None)[0] == np.inf


def test_what_is_too_large_for_a_number_is_above_a_bound():
    tower = Unary("exp", Unary("exp", Y1))
    high = np.array([[100.0, 0.0]])
    assert Relation(tower, ">=", Const(1.0)).off(high, None)[0] == 0
    assert Relation(tower, "<=", Const(1.0)).off(high, None)[0] == np.inf


def test_what_is_written_is_what_is_evaluated():
    """The strings that the library reads and the trees that the judge evaluates are the same formulas."""
    seen = 0
    for number in range(40):
        rng = np.random.default_rng([3, number])
        law = draw.draw_formulas(rng, 3, draw.Names(None, None, 3, 2))
        try:
            C = law.new.build(Handed()).fit(np.zeros((1, 3)), inputs=["x1", "x2"])
        except ValueError:
            continue
        c, X = law.middle + law.size * rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
        for inequality in (False, True):
            mine = [r.at(c, X) for r in law.relations if r.inequality == inequality]
            if not mine:
                continue
            theirs = (C.at(X).inequality if inequality else C.at(X).equality)(c)
            for k, value in enumerate(mine):
                both = np.isfinite(theirs[:, k]) & np.isfinite(value.v)
                np.testing.assert_allclose(
                    theirs[both, k], value.v[both].astype(float), atol=1e-9 * float((value.s + value.e)[both].max(initial=0))
                )
                seen += int(both.sum())
    assert seen > 100


def test_gradients_are_those_of_the_formulas():
    for number in range(30):
        rng = np.random.default_rng([4, number])
        law = draw.draw_formulas(rng, 2, draw.Names(None, None, 2, 1))
        c, X = law.middle + 0.1 * law.size * rng.standard_normal((3, 2)), rng.standard_normal((3, 1))
        for relation in law.relations:
            value = relation.at(c, X)
            for t in range(2):
                step = 1e-6 * law.size[t] * np.eye(2)[t]
                with np.errstate(all="ignore"):
                    slope = (relation.at(c + step, X).v - relation.at(c - step, X).v) / (2e-6 * law.size[t])
                sane = np.isfinite(slope) & np.isfinite(value.g[:, t])
                scale = np.abs(value.g[sane, t]) + (value.e + value.s)[sane] / law.size[t]
                assert (np.abs(slope - value.g[:, t])[sane] <= 1e-2 * scale).all()


@pytest.mark.parametrize("number", range(12))
def test_points_of_named_laws_are_points_of_the_librarys_sets(number):
    rng = np.random.default_rng([5, number])
    law = draw.draw_named(rng, [1, 2, 3, 4, 6, 9][number % 6])
    points = law.snap(law.middle + law.size * rng.standard_normal((20, law.T)), None, rng)
    assert (law.off(points) <= 1e-9).all()
    moved = law.off(points + 0.5 * law.size * rng.choice([-1, 1], size=points.shape))
    roomy = law.name in ("Reals", "Box", "Ball", "Ellipsoid", "PositiveSemidefinite")  # where a step may stay inside
    assert roomy or (moved > 1e-6).any()


def test_tubes_are_judged_by_points_that_are_checked_first():
    tube = compose.inflated(laws.round_set("Sphere", 1.0, 0.0, 2), 0.1, "euclidean")
    c = np.array([[1.05, 0.0], [1.2, 0.0]])
    assert (tube.off(c) <= 1e-6).tolist() == [True, False]
    lie = Evidence([c.copy()])  # points that are not on the sphere prove nothing
    assert (tube.off(c, None, lie) <= 1e-6).tolist() == [True, False]


def test_what_the_objective_owes_to_company_is_no_fault_of_the_decoder():
    """Weights that are what is left of a cancellation differ with the order of rows, and so may answers: by as much."""
    X = np.arange(3.0)[:, None]
    together = lawful.losses.Quadratic(np.full((3, 2), 2.0), np.ones((3, 2)))

    other = lawful.losses.Quadratic(np.full((1, 2), 2.0 + 2e-7), np.full((1, 2), 1.0 + 1e-7))
    law = laws.round_set("Ball", 1.0, 0.0, 2)
    call = calls.FitCall(law, NAMES, X, table=SimpleNamespace(given=(X, None, X)))
    call.model = SimpleNamespace(objective=lambda X: together if len(X) == 3 else other)
    assert call.blur(np.array([1])) == pytest.approx(1e-7, rel=1e-3)


@pytest.mark.parametrize("outer", ["euclidean", "objective"])
@pytest.mark.parametrize("inner", [0.1, 1e-6])
def test_a_tube_around_a_tube_is_judged_by_points_of_the_inner_one(outer, inner, monkeypatch):
    """The border itself is allowed, in the norm of each tube; 1e-3 beyond it is found."""
    law = compose.inflated(compose.inflated(laws.round_set("Ball", 0.4, 100.0, 2), inner, "euclidean"), 0.1, outer)
    weight = np.array([[2.0, 0.3], [0.1, 3.0]])
    points = np.array([[900.0, -300.0], [-20.0, 700.0]])
    C = calls.fitted(law, NAMES, points, Handed())
    assert not judge(calls.ProjectCall(law, NAMES, points=points, weight=weight, shared=C), Always()).failures
    honest = lawful.project

    def beyond(points, C, weights=None, X=None, certificate=True):
        d = honest(points, C, weights=weights, X=X, certificate=certificate)
        return d.with_(c=d.c + 2e-3 * (points - d.c) / np.linalg.norm(points - d.c, axis=1, keepdims=True))

    monkeypatch.setattr(lawful, "project", beyond)
    assert "violated" in kinds(judge(calls.ProjectCall(law, NAMES, points=points, weight=weight, shared=C), Always()))


def test_a_case_is_the_same_whatever_ran_before():
    def printed(number):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run.show_case(11, number, only=0)
        return out.getvalue()

    first = printed(4)
    printed(5)
    assert printed(4) == first and "lawful." in first


def test_a_printed_case_is_python():
    for number in range(15):
        for call in run.make_case(12, number, n_calls=3).calls:
            ast.parse("\n".join([calls.HEADER, *call.lines()]))


def test_a_printed_case_runs():
    """Calls on named sets, which are fast; each in its own try, because a clear error is a good outcome too."""
    parts = [calls.HEADER]
    for number in range(8):
        rng = np.random.default_rng([13, number])
        law, names = draw.draw_named(rng, 2), draw.draw_names(rng, 2, 1)
        C, made = calls.fitted(law, names, np.ones((2, 2)), Handed()), calls.fit_line(law, names, np.ones((2, 2)))
        fit = calls.draw_fit(rng, law, names)
        fit.options = {
            **fit.options,
            "loss": New("lawful.Square", metric="identity"),
            "surrogate": New("lawful.KernelRidge", lam=0.1),
        }
        for call in (calls.draw_project(rng, law, names, C, made), fit):
            body = "\n".join(f"    {line}" for line in call.lines())
            parts.append(f"try:\n{body}\nexcept (ValueError, TypeError) as error:\n    print(error)")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(parts)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_search_for_a_better_point_finds_the_best_one():
    call = sphere_call()
    best, value = optimum.search(call, np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]]), 0, np.random.default_rng(0))
    assert value == pytest.approx(16.0, rel=1e-4) and np.allclose(best, [0.6, 0.8], atol=1e-2)


def test_new_prints_what_it_builds():
    new = New("lawful.Sphere", 2.0, center=np.array([0.0, 1.0]))
    assert str(new) == "lawful.Sphere(2.0, center=np.array([0.0, 1.0]))"
    assert new.build(Handed()).radius == 2.0
