"""ConstrainedClassifier: no violations, better than labels on their own, and scikit-learn's conventions."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tests.pace import within

import lawful
from lawful import ConstrainedClassifier, Hinge, KernelRidge, Logic, Logistic, ZeroOne, kernels
from lawful.surrogates.joint import refine

LABELS = ["animal", "dog", "cat", "big", "small"]
LAW = Logic(["dog -> animal", "cat -> animal", "not (dog and cat)", "animal -> exactly_one(big, small)"], labels=LABELS)


def problem(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    score = X @ rng.standard_normal((4, 5)) + 0.7 * rng.standard_normal((n, 5))
    return X, clone(LAW).fit(np.zeros((1, 5))).nearest(score + 0.5)


X, Y = problem()
POINTS = np.array(list(itertools.product([0.0, 1.0], repeat=5)))
POINTS = POINTS[clone(LAW).fit(POINTS).contains(POINTS)]

SURROGATES = {
    "default": None,
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(20, random_state=0),
    "neighbours": KNeighborsClassifier(10),
    "network": MLPClassifier((10,), solver="lbfgs", max_iter=200, random_state=0),
    "naive Bayes": GaussianNB(),
    "several": MultiOutputClassifier(LogisticRegression()),
    "ridge": Ridge(),
    "kernel ridge": KernelRidge(kernels.Gaussian(2.0), lam=1e-2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("loss", ["subset", "hamming", "hinge", "logistic"])
def test_any_classifier_obeys(name, loss):
    model = ConstrainedClassifier(LAW, surrogate=SURROGATES[name], loss=loss).fit(X[:200], Y[:200])
    d, found, p = model.decode(X[200:]), model.predict(X[200:]), model.predict_proba(X[200:])
    assert found.shape == p.shape == (100, 5) and found.dtype.kind == "i"
    assert model.constraint_.contains(found).all() and (d.status == "ok").all() and (d.residual == 0).all()
    assert (p[:, 1] + p[:, 2] <= p[:, 0] + 1e-12).all()  # two of the formulas, in probabilities
    assert (p >= 0).all() and (p <= 1).all()
    assert model.score(X[200:], Y[200:]) > 0.25  # of 14 assignments
    F = model._objective(model._scores(X[200:]))
    np.testing.assert_allclose(d.value, F.costs(POINTS).min(axis=1), atol=1e-9)


def test_probabilities_are_those_of_the_assignments():
    model = ConstrainedClassifier(LAW, loss="subset").fit(X, Y)
    s = model.decision_function(X)
    weight = np.exp(s @ POINTS.T)
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), weight @ POINTS, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), POINTS[weight.argmax(axis=1)])
    wrong = np.abs(POINTS[:, None] - POINTS[None]).sum(axis=2)
    model = ConstrainedClassifier(LAW, loss="hamming").fit(X, Y)
    assert (model.thresholds_ == 0.5).all()
    np.testing.assert_allclose(model.decode(X).value, (weight @ wrong).min(axis=1), atol=1e-9)


def test_labels_are_predicted_as_often_as_on_their_own():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4))
    Y = clone(LAW).fit(np.zeros((1, 5))).nearest(X @ rng.standard_normal((4, 5)) + rng.logistic(size=(300, 5)))
    model = ConstrainedClassifier(LAW).fit(X, Y)
    assert model.surrogate_.kernel_ is None  # linear scores are the truth, or nearly
    assert model.loss_ == "hamming"  # "auto": its probabilities are exact
    tau, q = model.thresholds_, model.predict_proba(X)
    assert ((tau >= 0.2) & (tau <= 0.5)).all() and (tau < 0.5).any()
    assert (ConstrainedClassifier().fit(X, Y).thresholds_ == 0.5).all()
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    often, free = (q > tau).mean(axis=0), MultiOutputClassifier(peer).fit(X, Y).predict(X).mean(axis=0)
    moved = (tau > 0.2) & (tau < 0.5)
    np.testing.assert_allclose(often[moved], free[moved], atol=1.5 / len(X))
    assert (often[tau == 0.5] >= free[tau == 0.5] - 1e-9).all()
    cost = ((1 - q)[:, None] * POINTS * tau + q[:, None] * (1 - POINTS) * (1 - tau)).sum(axis=2)
    np.testing.assert_array_equal(model.predict(X), POINTS[cost.argmin(axis=1)])
    assert (ConstrainedClassifier(LAW, weights=[1, 1, 1, 1, 1]).fit(X, Y).thresholds_ == 0.5).all()  # they say what errors cost
    assert (ConstrainedClassifier(LAW, surrogate=LogisticRegression()).fit(X, Y).thresholds_ == 0.5).all()


def test_the_loss_is_that_of_whole_rows_where_probabilities_are_not_known():
    assert ConstrainedClassifier(LAW, surrogate=LinearSVC()).fit(X, Y).loss_ == "subset"
    with pytest.raises(ValueError, match="weights need probabilities"):
        ConstrainedClassifier(LAW, surrogate=LinearSVC(), weights=[1, 2, 3, 4, 5]).fit(X, Y)


def test_losses_by_score():
    free = ConstrainedClassifier(surrogate=LogisticRegression()).fit(X, Y)
    s = free.decision_function(X)
    signs = 2 * POINTS - 1
    for loss, formula in (
        (Hinge(), lambda z: np.maximum(0, 1 - z)),
        (Logistic(), lambda z: np.logaddexp(0, -z)),
        (ZeroOne(), lambda z: (z <= 0).astype(float)),
    ):
        model = ConstrainedClassifier(LAW, surrogate=LogisticRegression(), loss=loss, weights=[1, 2, 3, 4, 5]).fit(X, Y)
        expected = (formula(s[:, None] * signs[None]) * [1, 2, 3, 4, 5]).sum(axis=2).min(axis=1)
        np.testing.assert_allclose(model.decode(X).value, expected, atol=1e-9)


def test_weights_say_what_an_error_costs():
    plain = ConstrainedClassifier(LAW, loss="hamming").fit(X, Y).predict(X)
    careful = ConstrainedClassifier(LAW, loss="hamming", weights={"dog": (1, 20)}).fit(X, Y).predict(X)
    assert careful[:, 1].sum() > 1.2 * plain[:, 1].sum()
    assert ((careful[:, 1] == 0) & (Y[:, 1] == 1)).sum() < ((plain[:, 1] == 0) & (Y[:, 1] == 1)).sum()


def test_margins_without_probabilities():
    model = ConstrainedClassifier(LAW, surrogate=LinearSVC(), loss="hinge").fit(X, Y)
    assert model.constraint_.contains(model.predict(X)).all()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="needs probabilities"):
        ConstrainedClassifier(LAW, surrogate=LinearSVC(), loss="hamming").fit(X, Y)


def test_frames_gaps_and_sparse_labels():
    named = Logic(LAW.formulas)
    table = pd.DataFrame(Y, columns=LABELS).sample(frac=1, axis=1, random_state=0)
    model = ConstrainedClassifier(named).fit(pd.DataFrame(X, columns=list("pqrs")), table)
    assert list(model.classes_) == list(table.columns) and list(model.feature_names_in_) == list("pqrs")
    assert set(model.decode(pd.DataFrame(X, columns=list("pqrs"))).to_frame()["dog"]) == {0, 1}
    full = ConstrainedClassifier(LAW).fit(X, Y)
    columns = [LABELS.index(name) for name in table.columns]
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame(X, columns=list("pqrs"))), full.predict_proba(X)[:, columns], atol=1e-4
    )
    np.testing.assert_array_equal(ConstrainedClassifier(LAW).fit(X, sparse.csr_array(Y)).predict(X), full.predict(X))
    gaps = np.where(np.random.default_rng(0).uniform(size=Y.shape) < 0.3, np.nan, Y)
    part = ConstrainedClassifier(LAW).fit(X, gaps)
    assert part.constraint_.contains(part.predict(X)).all()
    assert part.score(X, Y) > 0.9 * full.score(X, Y)
    assert part.score(X, gaps) >= part.score(X, Y)
    with pytest.raises(ValueError, match="'dog' has no observation"):
        ConstrainedClassifier(named).fit(X, table.assign(dog=np.nan))


def test_sample_weights_are_repetitions():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = ConstrainedClassifier(LAW).fit(X, Y, weight)
    repeated = ConstrainedClassifier(LAW).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        ConstrainedClassifier(LAW, surrogate=KNeighborsClassifier()).fit(X, Y, weight + 1)


def test_labels_that_never_vary():
    Z = Y.copy()
    Z[:, 2] = 0
    for surrogate in SURROGATES.values():
        if not isinstance(surrogate, MLPClassifier):
            model = ConstrainedClassifier(LAW, surrogate=surrogate).fit(X, Z)
            assert not model.predict(X)[:, 2].any() and (model.predict_proba(X)[:, 2] < 0.1).all()


def test_one_column_of_classes():
    noise = np.random.default_rng(3).gumbel(size=(len(X), 3))
    y = np.array(["ant", "bee", "cat"])[np.argmax(X[:, :3] + noise, axis=1)]  # linear scores are the truth
    model = ConstrainedClassifier().fit(X, y)
    assert model.surrogate_.kernel_ is None
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    assert list(model.classes_) == ["ant", "bee", "cat"]
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    assert (model.predict(X) == peer.predict(X)).mean() > 0.99
    without = ConstrainedClassifier(Logic("not bee")).fit(X, y)
    assert set(without.predict(X)) == {"ant", "cat"}
    p = peer.predict_proba(X)[:, [0, 2]]
    np.testing.assert_allclose(without.predict_proba(X)[:, [0, 2]], p / p.sum(axis=1, keepdims=True), atol=1e-3)


def test_scikit_learn_tools():
    scores = cross_val_score(ConstrainedClassifier(LAW), X, Y, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.25
    search = GridSearchCV(
        ConstrainedClassifier(LAW, surrogate=LogisticRegression()), {"surrogate__C": [0.01, 1.0], "loss": ["subset", "hamming"]}
    )
    assert search.fit(X, Y).best_score_ >= 0.25


@pytest.mark.parametrize("surrogate", [None, KernelRidge(kernels.Gaussian(2.0), lam=1e-2)], ids=str)
def test_saved_and_loaded(tmp_path, surrogate):
    for target in (Y, Y.argmax(axis=1)):
        model = ConstrainedClassifier(LAW if target is Y else None, surrogate=surrogate).fit(X, target)
        model.save(tmp_path / "m")
        again = lawful.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert ("not (dog and cat)" in lawful.saving.describe(tmp_path / "m")["law"]) == (target is Y)


def test_what_cannot_be_saved_says_so(tmp_path):
    with pytest.raises(TypeError, match="skops"):
        ConstrainedClassifier(LAW, surrogate=LogisticRegression()).fit(X, Y).save(tmp_path / "m")


@pytest.mark.parametrize(
    "model, target, error, message",
    [
        (ConstrainedClassifier(["a -> b"]), Y, TypeError, "give Logic"),
        (ConstrainedClassifier(LAW, loss="hammin"), Y, ValueError, "choose one of"),
        (ConstrainedClassifier(LAW, loss="subset", weights=[1] * 5), Y, ValueError, "weights mean nothing"),
        (ConstrainedClassifier(LAW, loss="hamming", weights=[1, 2]), Y, ValueError, "give 5 numbers"),
        (ConstrainedClassifier(LAW, loss="hamming", weights={"dgo": 1}), Y, ValueError, "no label"),
        (ConstrainedClassifier(LAW, surrogate=LogisticRegression), Y, TypeError, "an instance"),
        (ConstrainedClassifier(LAW), 2 * Y, ValueError, "labels are 0 and 1"),
        (ConstrainedClassifier(LAW), Y[:, :3], ValueError, "5 outputs.*3 columns"),
        (ConstrainedClassifier(Logic("cow -> animal")), Y, ValueError, "unknown label 'cow'"),
        (ConstrainedClassifier(Logic("y1", values=(-1, 1))), Y, ValueError, "labels are 0 and 1"),
        (ConstrainedClassifier(Logic(["y1 -> y2", "y1", "y3", "not y2"])), Y, ValueError, "these 3 formulas cannot all hold"),
        (ConstrainedClassifier(LAW), None, ValueError, "requires y"),
        (ConstrainedClassifier(LAW), Y[:10], ValueError, "inconsistent"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_bad_input_is_explained(model, target, error, message):
    with pytest.raises(error, match=message):
        model.fit(X, target)


def test_training_rows_that_do_not_obey_are_counted():
    Z = Y.copy()
    Z[3, :3] = 0, 1, 0
    with pytest.warns(UserWarning, match=r"1 of 300 complete rows.*row 3: 'dog -> animal'"):
        model = ConstrainedClassifier(LAW).fit(X, Z)
    assert model.constraint_.contains(model.predict(X)).all()


# ---------------------------------------------------------------------- learning under the logic


def test_the_joint_likelihood_has_its_slope():
    """`refine` with next to no penalty reaches the maximum: no step in any direction makes the labels more probable."""
    law = clone(LAW).fit(np.zeros((1, 5)))
    gaps = np.where(np.random.default_rng(1).uniform(size=Y.shape) < 0.2, np.nan, Y)
    W = refine(np.zeros((5, 5)), X, gaps, np.ones(len(X)), law, 1e-3)

    def likelihood(W):
        s = X @ W[:, :-1].T + W[:, -1]
        weight = np.exp(s @ POINTS.T)
        fits = (np.isnan(gaps)[:, None] | (gaps[:, None] == POINTS[None])).all(axis=2)
        return np.log((weight * fits).sum(axis=1) / weight.sum(axis=1)).sum() - 0.5e-3 * (W**2).sum()

    best = likelihood(W)
    rng = np.random.default_rng(2)
    assert best > likelihood(np.zeros((5, 5))) + 50
    assert all(likelihood(W + 0.05 * rng.standard_normal(W.shape)) < best for _ in range(20))


def test_labels_learned_together_are_better():
    """On hierarchies with noise, against the same classifiers apart: rows right as a whole and F1, means over seeds."""
    gains = []
    for seed in range(4):
        A, B = problem(500, seed + 10)
        free = ConstrainedClassifier().fit(A[:150], B[:150])
        model = ConstrainedClassifier(LAW).fit(A[:150], B[:150])
        found, alone = model.predict(A[150:]), free.predict(A[150:])
        nearest = model.constraint_.nearest(alone.astype(float))
        right = [np.mean((B[150:] == P).all(axis=1)) for P in (found, alone, nearest)]
        micro = [f1_score(B[150:], P, average="micro") for P in (found, alone, nearest)]
        gains.append([right[0] - right[1], right[0] - right[2], micro[0] - micro[1], micro[0] - micro[2]])
        assert model.constraint_.contains(found).all()
    assert (np.mean(gains, axis=0) > 0).all()


def test_many_rows_and_labels():
    """10,000 rows with 200 labels in a tree; the bound of 10 s is that of the issue, on a busy machine."""
    rng = np.random.default_rng(0)
    parents = {f"l{t}": f"l{rng.integers(max(0, t - 20), t)}" if t > 2 else None for t in range(200)}
    law = Logic.from_hierarchy(parents, exclusive=True, labels=list(parents))
    A = rng.standard_normal((10_200, 10))
    B = law.fit(np.zeros((1, 200))).nearest(A[:200] @ rng.standard_normal((10, 200)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConstrainedClassifier(law, surrogate=LogisticRegression(tol=0.1)).fit(A[:200], B)
        with within(10):
            d = model.decode(A[200:])
    assert (d.status == "ok").all() and model.constraint_.contains(d.c).all()
