"""Laws learned from data: known curves come out, clouds without a law give none, and a learned law is a set like any other."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import lawful
from lawful import (
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    Inflated,
    LearnedEquations,
    Penalized,
    Product,
    Reals,
    discover,
    project,
)
from lawful.datasets import load_distillation, make_curve
from lawful.sets.learned.features import library
from lawful.sets.learned.findings import Search
from lawful.sets.learned.refine import feet, geometric
from lawful.sets.learned.supports import candidates, laws_of, moments
from lawful.sets.learned.words import whole_numbers


def circle(n, noise, seed, radius=1.0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-np.pi, np.pi, n)
    return radius * np.c_[np.cos(t), np.sin(t)] + noise * rng.standard_normal((n, 2))


def sphere(n, noise, seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((n, 5))
    return v / np.linalg.norm(v, axis=1, keepdims=True) + noise * rng.standard_normal((n, 5))


def lemniscate(n, noise, seed):
    return make_curve("lemniscate", n, noise=noise, random_state=seed, n_test=1).Y


FIVE = {f"y{t}**2" for t in range(1, 6)}
KNOWN = {
    "circle": (lambda s: circle(100, 0.02, s), 0.02, {"y1**2", "y2**2", "1"}, 2),
    "noisy circle": (lambda s: circle(200, 0.05, s), 0.05, {"y1**2", "y2**2", "1"}, 2),
    "lemniscate": (lambda s: lemniscate(500, 0.02, s), 0.02, {"y1**4", "y1**2", "y2**2"}, 4),
    "sphere": (lambda s: sphere(500, 0.02, s), 0.02, FIVE | {"1"}, 2),
    "shifted ellipse": (
        lambda s: circle(200, 0.0, s) @ [[1.32, 0.72], [-0.34, 0.61]] + [0.6, -0.4] + circle(200, 0.05, s + 1, 0.0),
        0.05,
        {"y1**2", "y1*y2", "y2**2", "y1", "y2", "1"},
        2,
    ),
}


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", KNOWN)
def test_known_laws_come_out(name, given):
    """Right support in at least 9 of 10 draws, whether the noise is known or not."""
    draw, noise, support, degree = KNOWN[name]
    exact = 0
    for seed in range(10):
        C = LearnedEquations(noise=noise if given else None).fit(draw(500 + seed))
        exact += len(C.laws_) == 1 and set(C.laws_[0].terms) == support and C.laws_[0].degree == degree
        if C.noise_ is not None:
            np.testing.assert_allclose(C.noise_, noise, rtol=0.35)
    assert exact >= 9


@pytest.mark.parametrize("noise", [0.05, None, 0.0])
def test_clouds_without_a_law_give_none(noise):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for Y in (rng.uniform(-1, 1, (200, 2)), rng.standard_normal((200, 5)), rng.normal([5, 0, 0], 1, (300, 3))):
            C = LearnedEquations(noise=noise).fit(Y)
            assert C.equations_ == [] and "no law" in C.remarks_[-1]


def test_a_degree_that_fits_anything_is_refused():
    Y = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    C = LearnedEquations(degree=5, noise=0.1).fit(Y)
    assert not C.laws_ and any("refused" in remark for remark in C.remarks_)


def test_standard_errors_cover():
    """95 % intervals of both free coefficients of an ellipse hold the truth in 88 to 99 % of 100 draws."""
    inside = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        Y = circle(200, 0.0, seed) * [1.37, 1.0] + 0.03 * rng.standard_normal((200, 2))
        law = LearnedEquations(noise=0.03, tidy=False).fit(Y).laws_[0]
        b = dict(zip(law.terms, zip(law.coefficients, law.std)))
        lead = next(term for term, (x, e) in b.items() if e == 0)
        scale = {"y1**2": 1.0, "y2**2": 1.37**2, "1": -(1.37**2)}
        inside += [
            abs(x - scale[term] / scale[lead]) <= 1.96 * e for term, (x, e) in b.items() if term != lead and term in scale
        ]
    assert len(inside) >= 190
    assert 0.88 <= np.mean(inside) <= 0.99


def test_several_laws_with_the_fewest_terms():
    """Three laws on a surface in five dimensions, none of them a consequence of the others."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.5, 2, (2, 600))
    Y = np.c_[a, b, a + b, a * b, a**2 - 2 * b] + 0.001 * rng.standard_normal((600, 5))
    C = LearnedEquations(noise=0.001).fit(Y)
    assert sorted(C.equations_) == ["y1 + y2 - y3 = 0", "y1**2 - 2*y2 - y5 = 0", "y1*y2 - y4 = 0"]


def test_long_linear_laws_are_found_by_elimination():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((400, 8))
    Y[:, 7] = 3 - Y[:, :7].sum(axis=1)
    Y[:, 6] = Y[:, :5] @ [1.0, -2.0, 0.5, 1.5, 1.0]
    Y[:, 7] = 3 - Y[:, :7].sum(axis=1)
    noisy = Y + 0.01 * rng.standard_normal(Y.shape)
    C = LearnedEquations(noise=0.01).fit(noisy)
    assert len(C.laws_) == 2
    assert np.abs(C.equality(Y)).max() < 0.03  # the true points are where both laws say, to within their errors


def test_laws_with_inputs():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (400, 2))
    Y = np.c_[X[:, 0] * 3, np.zeros(400)]
    Y[:, 1] = X.sum(axis=1) - Y[:, 0]
    noisy = Y + 0.01 * rng.standard_normal(Y.shape)
    C = LearnedEquations(x_dependent=True, noise=0.01).fit(noisy, X)
    assert len(C.laws_) == 2 and C.depends_on_x
    assert np.abs(C.at(X).equality(Y)).max() < 0.02
    model = ConstrainedRegressor(LearnedEquations(x_dependent=True, noise=0.01)).fit(X, noisy)
    assert model.decode(X).residual.max() < 1e-8
    with pytest.raises(ValueError, match="needs the inputs"):
        LearnedEquations(x_dependent=True).fit(noisy)


@pytest.mark.parametrize(
    "kind, curve, terms",
    [
        ("exp", np.exp, {"y2", "exp(y1)"}),
        ("log", np.log, {"y2", "log(y1)"}),
        ("inverse", lambda z: 1 / z, {"1", "y1*y2"}),
    ],
)
def test_terms_on_request(kind, curve, terms):
    rng = np.random.default_rng(0)
    z = rng.uniform(0.3, 2.5, 400)
    Y = np.c_[z, curve(z)] + 0.005 * rng.standard_normal((400, 2))
    C = LearnedEquations(degree=2, noise=0.005, terms=[kind]).fit(Y)
    assert any(set(law.terms) == terms or set(law.terms) == {"y2", f"1/{'y1'}"} for law in C.laws_)


def test_exact_data_need_no_noise():
    Y = circle(80, 0.0, 0, radius=2.0)
    for noise in (0.0, None):
        C = LearnedEquations(noise=noise).fit(Y)
        assert C.equations_ == ["y1**2 + y2**2 = 4"]


def test_gaps_and_extra_outputs():
    Y = circle(60, 0.02, 0)
    Y[::2, 0] = np.nan
    alone = LearnedEquations(noise=0.02).fit(Y)
    assert alone.equations_ == ["y1**2 + y2**2 = 1"] and "30 of 60 rows have gaps" in alone.remarks_[0]
    Y[10:] = np.nan
    assert LearnedEquations(noise=0.02).fit(Y).equations_ == []
    more = LearnedEquations(noise=0.02, extra=circle(100, 0.02, 1)).fit(Y)
    assert more.equations_ == ["y1**2 + y2**2 = 1"]
    with pytest.raises(ValueError, match="extra has shape"):
        LearnedEquations(extra=np.zeros((3, 5))).fit(Y)


def test_names_of_columns_appear_in_the_equations():
    Y = pd.DataFrame(circle(100, 0.02, 0), columns=["cos", "left side"])
    X = pd.DataFrame({"time": np.arange(100.0)})
    model = ConstrainedRegressor(LearnedEquations(noise=0.02)).fit(X, Y)
    assert model.constraint_.equations_ == ["`cos`**2 + `left side`**2 = 1"]
    again = ConstrainedRegressor(model.constraint_.to_equations()).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-9)


# ---------------------------------------------------------------------- a set like any other


def test_it_is_a_set_that_every_decoder_knows():
    data = make_curve("circle", 60, noise=0.05, random_state=1)
    for C in (
        LearnedEquations(noise=0.05),
        Inflated(LearnedEquations(noise=0.05), 0.01),
        Penalized(LearnedEquations(noise=0.05), 0.1),
        Product([(LearnedEquations(noise=0.05), [0, 1])]),
    ):
        d = ConstrainedRegressor(C).fit(data.X, data.Y).decode(data.X_test[:50])
        assert (d.status == "ok").all()
    C = LearnedEquations(noise=0.05).fit(data.Y)
    law = C.to_equations().fit(data.Y)
    c = np.random.default_rng(0).standard_normal((20, 2))
    np.testing.assert_array_equal(C.equality(c), law.equality(c))
    np.testing.assert_array_equal(project(c, C), project(c, law))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(C)).residual(c), C.residual(c))
    assert isinstance(law, Equations) and C.contains(C.sample(10, 0)).all()
    assert set(clone(C).get_params()) == set(C.get_params()) and not hasattr(clone(C), "laws_")


def test_without_a_law_it_is_all_of_space():
    Y = np.random.default_rng(0).standard_normal((100, 3))
    C = LearnedEquations(noise=0.05).fit(Y)
    free = Reals().fit(Y)
    assert isinstance(C.to_equations(), Reals) and C.unbounded
    assert C.contains(Y).all() and (C.residual(Y) == 0).all() and not hasattr(C, "equality")
    assert not C.contains(np.full((1, 3), np.nan)).any()
    np.testing.assert_array_equal(C.project(Y, np.ones_like(Y)), free.project(Y, np.ones_like(Y)))
    assert C.sample(4, 0).shape == (4, 3)
    X = np.random.default_rng(1).standard_normal((100, 2))
    learned, plain = (ConstrainedRegressor(S).fit(X, Y).predict(X) for S in (LearnedEquations(noise=0.05), Reals()))
    np.testing.assert_allclose(learned, plain, atol=1e-9)


def test_points_with_names_are_not_learned_from():
    """Projecting a table of points on a fitted law must not learn another law from the points."""
    Y = pd.DataFrame(circle(100, 0.02, 0), columns=["a", "b"])
    C = LearnedEquations(noise=0.02).fit(Y.to_numpy(), outputs=["a", "b"])
    found = project(Y[:5] * 3, C)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-8)


def test_the_regressor_is_as_good_as_with_the_true_law():
    ratios = []
    for seed in range(5):
        data = make_curve("circle", 200, noise=0.05, random_state=seed)
        models = [ConstrainedRegressor(C).fit(data.X, data.Y) for C in (Equations(data.equation), LearnedEquations())]
        true, learned = (np.mean((m.predict(data.X_test) - data.Y_test) ** 2) for m in models)
        ratios.append(learned / true)
    assert np.median(ratios) <= 1.1


def test_the_search_learns_the_law_anew_in_every_fold():
    data = make_curve("circle", 80, noise=0.05, random_state=1)
    model = ConstrainedRegressorCV(LearnedEquations(noise=0.05), cv=5).fit(data.X, data.Y)
    assert np.mean((model.predict(data.X_test) - data.Y_test) ** 2) < 3e-4


def test_correlated_outputs_are_no_law():
    """Outputs that go together to 5 %, but are known to 0.1 % from the inputs: no law up to noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    Y = np.c_[X[:, 0], X[:, 0] + 0.05 * X[:, 1]] + 0.001 * rng.standard_normal((200, 2))
    assert LearnedEquations().fit(Y).laws_  # from the outputs alone there is no telling
    C = LearnedEquations().fit(Y, X)
    assert not C.laws_ and any("correlation" in remark for remark in C.remarks_)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"degree": 0}, "degree=0"),
        ({"degree": "two"}, "degree='two'"),
        ({"noise": "loud"}, "noise='loud'"),
        ({"noise": "regression"}, "needs the inputs"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"noise": [1.0, 2.0, 3.0]}, "2 of them"),
        ({"terms": "exp"}, "terms='exp'"),
        ({"terms": ["sin"]}, "sin"),
        ({"max_terms": 9}, "max_terms=9"),
    ],
)
def test_bad_parameters_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        LearnedEquations(**options).fit(circle(50, 0.02, 0))


# ---------------------------------------------------------------------- discover


def test_discover_tells_a_table_and_a_text():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"feed": rng.uniform(1, 2, 200), "heat": rng.uniform(1, 2, 200)})
    Y = pd.DataFrame({"top": 0.3 * X["feed"] * X["heat"], "still": 1.0}, columns=["top", "bottom", "still"])
    Y["bottom"], Y["still"] = X["feed"] - Y["top"], 1.0
    Y += 0.002 * rng.standard_normal(Y.shape)
    table = discover(X, Y, noise=0.002)
    assert {law.simple for law in table} >= {"top + bottom = feed"}
    assert len(table) == 2 and table.constant == ["still"]
    text = str(table)
    assert "2 laws found" in text and "standard errors" in text and "still" in text
    frame = table.to_frame()
    assert list(frame["law"]) == [law.equation for law in table.laws] and (frame["misfit"] < 1.5).all()
    assert (frame["shuffled"] > 10 * frame["misfit"]).all() and frame["sentence"].str.len().min() > 20
    assert table.constraint.at(X.to_numpy()).residual(Y.to_numpy()).max() < 0.05
    nothing = discover(None, rng.standard_normal((100, 3)))
    assert len(nothing) == 0 and nothing.to_frame().empty and str(nothing).startswith("0 laws found")
    for bad in ((None, np.zeros(5)), (np.zeros((4, 1)), np.zeros((5, 2)))):
        with pytest.raises(ValueError, match="discover: "):
            discover(*bad)


@pytest.mark.data
@pytest.mark.parametrize("noise", [0.0, 1e-3, 1e-2])
def test_balances_of_the_distillation_column(noise):
    """Five of the six listed laws come out term by term, and the sixth holds on what obeys them."""
    data = load_distillation(Path(os.environ["LAWFUL_DATA"]) / "distillation")
    rng = np.random.default_rng(0)
    sigma = noise * data.Y.std(axis=0)
    Y = data.Y[:1600] + sigma * rng.standard_normal((1600, 9))
    table = discover(data.X[:1600], Y, noise=sigma, degree=2)
    found = [{t if t != "y1*x3" else "reflux" for t in law.terms} for law in table]
    carriers = {"x1", "y1*y3", "y2*y6"}, {"x1", "y1*y4", "y2*y7"}
    for terms in ({"y1", "y2", "x1", "x2"}, {"y3", "y4", "1"}, {"y6", "y7", "y8", "1"}, {"y9", "reflux"}):
        assert terms in found
    assert carriers[0] in found or carriers[1] in found
    c = project(data.Y_test[:100], table.constraint, X=data.X_test[:100], weights=1 / np.maximum(data.Y.var(axis=0), 1e-12))
    law = Equations(data.equations).fit(c, data.X_test).at(data.X_test[:100])
    assert np.abs(law.equality(c)).max() < max(5 * noise, 1e-5)


# ---------------------------------------------------------------------- the parts


def test_gradients_of_all_terms_agree_with_differences():
    rng = np.random.default_rng(0)
    Z = rng.uniform(0.5, 2, (6, 3))
    lib = library(Z, 3, np.zeros(3), ("exp", "log", "inverse"), constant=True)
    _, dF = lib.evaluate(Z)
    h = 1e-6
    for i in range(3):
        step = h * np.eye(3)[i] * lib.unit[i]
        difference = (lib.evaluate(Z + step)[0] - lib.evaluate(Z - step)[0]) / (2 * h)
        np.testing.assert_allclose(dF[:, :, i], difference, rtol=1e-5, atol=1e-7)


def test_candidates_are_those_of_brute_force():
    """Supports on which M - tau N is indefinite, by eigenvalues of every one of them."""
    from itertools import combinations

    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, (2, 300))
    Z = np.c_[a, b, a + b] + 0.01 * rng.standard_normal((300, 3))
    lib = library(Z, 2, np.full(3, 0.01), constant=True)
    M, N = moments(lib, Z, np.full(3, 0.01))
    for size in (2, 3, 4):
        found = {tuple(s) for s in candidates(M, N, 1.2, size)}
        for support in combinations(range(len(lib)), size):
            A = M[np.ix_(support, support)] - 1.2 * N[np.ix_(support, support)]
            head = A[:-2, :-2]
            if np.linalg.eigvalsh(A)[0] < -1e-9 and (size == 2 or np.linalg.eigvalsh(head)[0] > 1e-9):
                pairs = [A[np.ix_([*range(size - 2), k], [*range(size - 2), k])] for k in (size - 2, size - 1)]
                if all(np.linalg.eigvalsh(p)[0] > 1e-9 for p in pairs):
                    assert support in found
        for support in found:
            assert np.linalg.eigvalsh(M[np.ix_(support, support)] - 1.2 * N[np.ix_(support, support)])[0] < 1e-9
        if found:
            mu, theta, _ = laws_of(np.array(sorted(found)), M, N, 300)
            assert (mu <= 1.2 + 1e-6).all() and np.isfinite(theta).all()


def test_foot_points_are_nearest_points():
    Y = circle(50, 0.1, 0)
    lib = library(Y, 2, np.full(2, 0.1), constant=True).subset([0, 3, 5])
    theta = np.array([-1.0, 1.0, 1.0]) / lib.factors()
    foot, distance = feet(lib, theta, Y, np.full(2, 0.1))
    np.testing.assert_allclose(foot, Y / np.linalg.norm(Y, axis=1, keepdims=True), atol=2e-3)
    np.testing.assert_allclose(np.abs(distance) * 0.1, np.abs(np.linalg.norm(Y, axis=1) - 1), atol=2e-3)
    fit = geometric(lib, theta, Y, np.full(2, 0.1))
    assert np.sum(fit.distance**2) <= np.sum(distance**2)


def test_whole_numbers_only_where_the_data_agree():
    covariance = np.diag([0.0, 0.01**2, 0.01**2])
    np.testing.assert_array_equal(whole_numbers(np.array([1.0, 0.99, -2.01]), covariance, 0), [1.0, 1.0, -2.0])
    np.testing.assert_array_equal(whole_numbers(np.array([1.0, 0.9, -2.01]), covariance, 0), [1.0, 0.9, -2.0])
    vague = np.diag([0.0, 0.2**2, 0.2**2])
    np.testing.assert_array_equal(whole_numbers(np.array([1.0, 0.9, -2.1]), vague, 0), [1.0, 0.9, -2.1])


def test_a_multiple_of_a_law_is_no_second_law():
    Y = circle(400, 0.005, 0)
    found = Search(Y, np.full(2, 0.005), 2).run([1, 2, 3], stop=False)
    assert len(found.laws) == 1
    wide = np.c_[Y, np.random.default_rng(1).uniform(1, 2, 400)]
    assert len(Search(wide, np.full(3, 0.005), 3).run([1, 2, 3], stop=False).laws) == 1


def test_a_common_factor_is_no_part_of_a_law():
    """A noise that is a little too small lets a multiple of the law pass; what is reported is the law, or nothing."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = rng.uniform(0, 2 * np.pi, 200)
        Y = np.c_[np.cos(t), np.sin(t)] + 0.03 * (1 + (t > 3))[:, None] * rng.standard_normal((200, 2))
        for law in LearnedEquations(noise=0.045).fit(Y).laws_:
            assert set(law.terms) == {"y1**2", "y2**2", "1"}
    lib = library(np.ones((3, 2)), 3, np.zeros(2)).subset([2, 5])  # y1**2, y1**3
    assert [lib.without_common_factor().text(j, ["y1", "y2"]) for j in range(2)] == ["1", "y1"]


def test_a_single_output_that_the_inputs_give():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (200, 2))
    Y = X[:, :1] * X[:, 1:] + 0.01 * rng.standard_normal((200, 1))
    for noise in (0.01, None):
        assert LearnedEquations(noise=noise, x_dependent=True).fit(Y, X).equations_ == ["y1 = x1*x2"]


def test_names_are_public():
    assert {"LearnedEquations", "discover"} <= set(lawful.__all__)


def test_noise_along_a_bend_does_not_widen_a_circle():
    """Least squares of distances alone would put r^2 at 1 + s^2 = 1.0225, ten of the standard errors of this mean away."""
    squared = []
    for k in range(12):
        rng = np.random.default_rng([8, k])
        t = rng.uniform(0, 2 * np.pi, 400)
        Y = np.c_[np.cos(t), np.sin(t)] + 0.15 * rng.standard_normal((400, 2))
        (law,) = LearnedEquations(degree=2, noise=0.15, tidy=False).fit(Y).laws_
        squared.append(-law.coefficients[law.terms.index("1")] / np.mean(law.coefficients[:2]))
    assert np.mean(squared) == pytest.approx(1.0, abs=0.012)
