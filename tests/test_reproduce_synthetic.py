"""The synthetic experiment: its search against brute force, its rows byte for byte, its report."""

import json

import numpy as np
import pytest

from lawful import ConstrainedRegressor, ConstrainedRegressorCV, Equations, Square
from lawful.baselines import RelationshipLearning, SingleTask
from lawful.decoders import decode, relaxation_path
from lawful.experiments._base import Clock, Options
from lawful.experiments._document import blocks
from lawful.experiments.synthetic import SYNTHETIC, as_printed, by_default
from lawful.experiments.synthetic._curves import STEPS, relaxed_errors
from lawful.experiments.synthetic.cells import METHODS, SELECTIONS, gather
from lawful.experiments.synthetic.claims import ENOUGH
from lawful.experiments.synthetic.coupled import mtrl, penalties
from lawful.experiments.synthetic.draw import LAWS, NOISE, draw
from lawful.experiments.synthetic.hold_out import LAMS, RELAXED, SHAPES, SIGMAS, search, table
from lawful.experiments.synthetic.kernel import SmoothGaussian, gaussian
from lawful.kernels import Gaussian
from lawful.losses import Quadratic
from lawful.report.blocks import Claim, Figure, Grid, Table
from lawful.surrogates import KernelRidge

pytestmark = pytest.mark.xdist_group("synthetic")  # the rows are made once, not once for each worker
QUICK = Options(quick=True, trials=1)
LAW_NAMES = [law for laws in LAWS.values() for law in laws]


@pytest.fixture(scope="module")
def laws():
    return SYNTHETIC.load(QUICK)


@pytest.fixture(scope="module")
def rows(laws):
    return [{**c, "results": SYNTHETIC.run(c, laws, Clock())} for c in SYNTHETIC.configurations(QUICK)]


def often(rows):
    """The same rows as if they were five trials: as many as claims need."""
    return [row | {"trial": k} for row in rows for k in range(ENOUGH)]


def curve(law):
    u, v, s, h = SHAPES[law]
    t = 2 * np.pi * np.arange(STEPS) / STEPS
    return np.c_[u * np.sin(t) + v * np.cos(t), s * np.sin(t) + h * np.sin(2 * t)]


# ------------------------------------------------------------------------------------------------------------------ data


def test_vector_valued_trials_share_inputs_and_multitask_ones_do_not():
    shared, own = (draw("circle", 20, "sd", setting, 3) for setting in ("vector-valued", "multitask"))
    assert shared.shared and shared.X.shape == (20, 1)
    assert not own.shared and own.X.shape == (40, 1)
    assert (np.isnan(own.Y).sum(axis=1) == 1).all()
    assert (~np.isnan(own.Y)).sum(axis=0).tolist() == [20, 20]
    assert np.intersect1d(*(own.X[r, 0] for r in own.tasks.rows)).size == 0
    assert np.array_equal(shared.Y[:, 0], own.Y[:20, 0])


def test_the_two_readings_of_the_noise():
    for noise, sd in (("sd", 0.05), ("variance", 0.05**0.5)):
        trial = draw("circle", 1000, noise, "vector-valued", 0)
        off = trial.Y - np.c_[np.cos(trial.X), np.sin(trial.X)]
        assert off.std() == pytest.approx(sd, rel=0.05)
    assert set(NOISE) == {"sd", "variance"}


# ------------------------------------------------------------------------------------------------------------- the search


@pytest.mark.parametrize("law", LAW_NAMES)
def test_shapes_are_the_laws(laws, law):
    assert np.abs(laws[law].equality(curve(law))).max() < 1e-12


@pytest.mark.parametrize("law", LAW_NAMES)
@pytest.mark.parametrize("euclidean", [True, False])
def test_errors_of_the_search_are_those_of_the_decoder(laws, law, euclidean):
    """Equal weights: every delta and mu. Different weights: the exact law and every delta."""
    rng = np.random.default_rng(0)
    k, m = 3, 40
    w = curve(law)[rng.integers(STEPS, size=(k, m))] + 0.3 * rng.standard_normal((k, m, 2))
    a = np.repeat(rng.uniform(0.5, 1, (k, m, 1)), 2, axis=2) if euclidean else rng.uniform(0.8, 1.0, (k, m, 2))
    y, seen = rng.standard_normal((m, 2)), rng.uniform(size=(m, 2)) < 0.7
    values = np.array([1e-3, 0.1, 0.5, 3.0])
    found = relaxed_errors(a, a * w, y, seen.astype(float), SHAPES[law], curve(law), values, euclidean)
    for i in range(k):
        F = Quadratic(a[i], a[i] * w[i])
        tubes, soft, exact = relaxation_path(F, laws[law], values, values, "euclidean" if euclidean else "objective")
        expected = [((p - y)[seen] ** 2).sum() for p in (exact, *tubes, *soft)]
        upto = len(expected) if euclidean else 1 + len(values)
        np.testing.assert_allclose(found[i, :upto], expected[:upto], rtol=1e-7)


def test_the_table_holds_the_scores_of_plain_ridges():
    trial = draw("lemniscate", 24, "sd", "multitask", 1)
    held = table(trial)
    train, test = held.fold
    for k in (0, 437, 555):
        sigma, lam = held.pair(k)
        assert (sigma, lam) == (SIGMAS[k // 30], LAMS[k % 30])
        ridge = KernelRidge(Gaussian(sigma), lam=lam, intercept=False)
        b = ridge.fit(trial.X[train], trial.Y[train]).predict(trial.X[test])
        ones = np.where(np.isnan(trial.Y), np.nan, 1.0)
        a = ridge.fit(trial.X[train], ones[train]).predict(trial.X[test])
        np.testing.assert_allclose(held.b[k], b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(held.a[k], a, rtol=1e-5, atol=1e-6)


def test_the_search_is_that_of_the_library(laws):
    """`ConstrainedRegressorCV(select_on="constrained")` on a part of the grid around the optimum finds the same pair."""
    trial = draw("circle", 40, "sd", "vector-valued", 2)
    held = table(trial)
    choices = search(held, "circle", "euclidean")
    sigma, lam = held.pair(choices["paper"]["NL-MTL"].candidate)
    i, j = np.argmin(abs(SIGMAS - sigma)), np.argmin(abs(LAMS - lam))
    model = ConstrainedRegressorCV(
        Equations("y1**2 + y2**2 = 1"),
        kernels=SIGMAS[max(i - 2, 0) : i + 3],
        lams=LAMS[max(j - 2, 0) : j + 3],
        intercepts=False,
        cv=[held.fold],
        select_on="constrained",
        scoring="neg_mean_squared_error",
        loss=Square("identity", "scores"),
    )
    model.fit(trial.X, trial.Y)
    assert model.best_params_["kernel"].sigma == pytest.approx(sigma)
    assert model.best_params_["lam"] == pytest.approx(lam)
    assert held.pair(choices["ridge"]["NL-MTL"].candidate) == held.pair(int(np.argmin(held.free())))


# ------------------------------------------------------------------------------------------------------------ the methods


@pytest.mark.parametrize("sigma", [0.15, 1.0, 5.0])
def test_features_are_the_kernel(sigma):
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, (300, 1))
    kernel = gaussian(sigma)
    assert isinstance(kernel, SmoothGaussian)
    np.testing.assert_allclose(kernel.features(x) @ kernel.features(x).T, Gaussian(sigma)(x, x), atol=1e-11)


def test_a_rough_kernel_has_no_features():
    assert not hasattr(gaussian(0.02), "features")


@pytest.mark.parametrize("setting", ["vector-valued", "multitask"])
def test_mtrl_contains_stl_and_features_change_nothing(setting):
    trial = draw("lemniscate", 30, "sd", setting, 0)
    first = {key: value[0] for key, value in penalties(np.array([1e-3]))[0].items()}
    assert first == {"lam1": 2e-3, "lam2": 0.0}
    alone = SingleTask(1e-3, kernel=Gaussian(1.5), intercept=False).fit(trial.X, trial.Y).predict(trial.X_test)
    limit = RelationshipLearning(**first, kernel=Gaussian(1.5), intercept=False).fit(trial.X, trial.Y)
    np.testing.assert_allclose(limit.predict(trial.X_test), alone, atol=1e-7)
    model, risk = mtrl(trial, 1.5, LAMS[10:17], 3, False, np.ones(2))
    plain = RelationshipLearning(model.lam1, model.lam2, kernel=Gaussian(1.5), intercept=False).fit(trial.X, trial.Y)
    np.testing.assert_allclose(model.predict(trial.X_test), plain.predict(trial.X_test), atol=1e-6)
    assert 0 < risk < 1


@pytest.mark.parametrize("setting", ["vector-valued", "multitask"])
def test_default_nl_mtl_is_the_constrained_regressor(laws, setting):
    trial = draw("lemniscate", 30, "sd", setting, 4)
    found = by_default.predictions(trial, {"lemniscate": laws["lemniscate"]}, trial.X_test, Clock())["default"]
    model = ConstrainedRegressor(Equations("y1**4 = y1**2 - y2**2")).fit(trial.X, trial.Y)
    np.testing.assert_allclose(found["lemniscate"]["NL-MTL"], model.predict(trial.X_test), atol=1e-7)
    np.testing.assert_allclose(found["STL"], KernelRidge().fit(trial.X, trial.Y).predict(trial.X_test), atol=1e-10)


def test_printed_nl_mtl_is_the_projection_of_b_over_a(laws):
    trial = draw("circle", 30, "sd", "vector-valued", 4)
    found = as_printed.predictions(trial, {"circle": laws["circle"]}, trial.X_test, Clock())
    held = table(trial)
    sigma, lam = held.pair(search(held, "circle", "euclidean")["paper"]["NL-MTL"].candidate)
    F = as_printed.objective(trial, sigma, lam, trial.X_test)
    w = F.b / F.a
    assert (F.a > 0).all()
    np.testing.assert_allclose(found["paper"]["circle"]["NL-MTL"], w / np.linalg.norm(w, axis=1, keepdims=True), atol=1e-8)
    np.testing.assert_allclose(decode(F, laws["circle"]).c, found["paper"]["circle"]["NL-MTL"], atol=1e-12)
    np.testing.assert_array_equal(found["paper"]["STL"], found["ridge"]["STL"])


# --------------------------------------------------------------------------------------------------------------- the rows


def test_plans():
    quick, full = SYNTHETIC.configurations(QUICK), SYNTHETIC.configurations(Options())
    assert len(full) == 840 and len(quick) == 12
    assert len({json.dumps(c) for c in full}) == len(full)
    assert {c["n"] for c in full} == {10, 20, 50, 100, 200, 500, 1000}
    assert {c["seed"] for c in SYNTHETIC.configurations(Options(trials=2, seed=100))} == {100, 101}
    assert 600 < sum(map(SYNTHETIC.cost, full)) < 2400
    assert SYNTHETIC.describe(None)


def test_same_configuration_same_bytes(laws, rows):
    for row in (rows[0], rows[3], rows[-2]):
        configuration = {key: value for key, value in row.items() if key != "results"}
        clock = Clock()
        again = SYNTHETIC.run(configuration, laws, clock)
        assert json.dumps(again) == json.dumps(row["results"])
        assert set(clock.seconds) >= {"STL, paper", "MTRL, paper", "NL-MTL, paper", "STL, default", "MTRL, default"}


def test_rows_hold_finite_numbers_for_every_method(rows):
    for row in rows:
        for selection in SELECTIONS:
            assert set(row["results"][selection]) == set(METHODS)
            assert all(np.isfinite(v) and v > 0 for v in row["results"][selection].values())
        assert row["results"]["violation"] < 1e-8
        assert ("lemniscate_printed" in row["results"]) == (row["curve"] == "lemniscate_tall")
    assert len(json.dumps(rows)) < 200_000


def test_cells_are_paired(rows):
    cells = gather(rows)
    assert len(cells) == 4 * 2 * 2 * len(SELECTIONS)
    tall, printed = (next(c for c in cells if c.law == law and c.n == 50) for law in ("lemniscate_tall", "lemniscate_printed"))
    assert np.array_equal(tall.mse["STL"], printed.mse["STL"])
    assert tall.median("NL-MTL") < 0.01 < printed.median("NL-MTL")
    assert printed.wins("NL-MTL", "STL") == 0
    assert printed.ratio("NL-MTL", "STL") == pytest.approx(printed.median("NL-MTL") / printed.median("STL"))


# ------------------------------------------------------------------------------------------------------------- the report


def test_the_report(rows):
    sections = SYNTHETIC.pages(often(rows), {"STL, paper": [0.1, 0.2]}, QUICK, None)
    found = list(blocks(sections))
    claims = [b for b in found if isinstance(b, Claim)]
    assert len(claims) == 13
    assert all(any(ch.isdigit() for ch in c.numbers) for c in claims)
    printed = next(c for c in claims if "exactly as printed" in c.claim)
    assert printed.holds is False and "E1" in printed.numbers
    for block in found:
        if isinstance(block, Table):
            assert block.rows and all(len(row) == len(block.columns) for row in block.rows)
            assert all(isinstance(cell, str) for row in block.rows for cell in row)
    figures = [b for b in found if isinstance(b, Figure)]
    assert len({f.name for f in figures}) == len(figures)
    first = next(b for b in found if isinstance(b, Grid))
    assert [f.name.rsplit("-", 1)[1] for f in first.figures] == ["sample", "sample", "mse", "mse"]
    for figure in figures:
        drawn = figure.draw()
        assert drawn.get_figwidth() == pytest.approx(4.6) and drawn.axes[0].has_data()
        assert figure.alt and figure.caption


def test_few_trials_decide_nothing(rows):
    claims = [b for b in blocks(SYNTHETIC.pages(rows, {}, QUICK, None)) if isinstance(b, Claim)]
    assert all(c.holds is None and "Undecided: a cell has 1 of the 5 trials" in c.numbers for c in claims)
    claims = [b for b in blocks(SYNTHETIC.pages(often(rows), {}, QUICK, None)) if isinstance(b, Claim)]
    assert all(c.holds is not None for c in claims)


def test_claims_that_rows_cannot_decide(rows):
    small = [row | {"n": 20} for row in rows if row["n"] == 50]
    claims = [b for b in blocks(SYNTHETIC.pages(small, {}, QUICK, None)) if isinstance(b, Claim)]
    assert all(c.holds is None and "n >= 50" in c.numbers for c in claims)


def test_a_claim_that_fails_names_its_cells(rows):
    spoiled = json.loads(json.dumps(rows))
    for row in spoiled:
        if row["curve"] == "circle" and row["n"] == 100 and row["setting"] == "multitask":
            row["results"]["default"]["NL-MTL"] = 2 * row["results"]["default"]["STL"]
    claims = [b for b in blocks(SYNTHETIC.pages(often(spoiled), {}, QUICK, None)) if isinstance(b, Claim)]
    claim = next(c for c in claims if "circumference" in c.claim and "defaults" in c.claim)
    assert claim.holds is False
    assert "sd, multitask, n = 100 (2.00" in claim.numbers


def test_grids_are_those_of_the_paper():
    assert len(SIGMAS) == len(LAMS) == len(RELAXED) == 30
    for grid, ends in ((SIGMAS, (0.01, 100)), (LAMS, (1e-9, 1)), (RELAXED, (1e-5, 1e5))):
        np.testing.assert_allclose(grid[[0, -1]], ends)
        np.testing.assert_allclose(np.diff(np.log(grid)), np.log(grid[1] / grid[0]))
