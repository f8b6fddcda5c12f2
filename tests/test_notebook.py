"""What notebooks show: laws typeset as MathML, decodings as tables; nothing that a user wrote becomes markup."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn
import sympy

from lawful import (
    Box,
    ConformalRegressor,
    ConstrainedClassifier,
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    Inflated,
    Intersection,
    LearnedEquations,
    Logic,
    Penalized,
    PointCloud,
    Product,
    Rankings,
    Sphere,
    Union,
    choose_law,
    doctor,
)
from lawful.decoders.base import Decoding
from lawful.sets.typeset import mathml
from lawful.surrogates import KernelRidge


def text(markup: str) -> str:
    """The characters that are shown; an error where the markup is not well-formed."""
    return "".join(ElementTree.fromstring(f"<div>{markup}</div>").itertext()).replace(" ", "")


@pytest.mark.parametrize(
    "law, shown, element",
    [
        ("y1**2 + y2**2 = 1", "y12+y22=1", "msup"),
        ("y1/y2 <= 3", "y1y2≤3", "mfrac"),
        ("sqrt(y1) >= abs(y2)", "y1≥|y2|", "msqrt"),
        ("exp(-k*T_in) = sigma", "e−kTin=σ", "msub"),
        ("0 <= `feed rate` <= 2*3", "0≤feedrate≤2·3", "mtext"),
        ("-(y1 + y2)*y3 = 2*(y1 - 1)", "−(y1+y2)y3=2(y1−1)", "mo"),
        ("(y1 + 1)/(y2 - 1) = atan2(y1, y2)", "y1+1y2−1=atan2(y1,y2)", "mfrac"),
        ("y1**(a + b) = 1e-3", "y1a+b=1e-3", "msup"),
        ("(y1 + 1)*(y2 + 1)/2 = 0", "(y1+1)(y2+1)2=0", "mfrac"),
    ],
)
def test_laws_are_typeset(law, shown, element):
    markup = mathml(law)
    assert markup.startswith("<math") and f"<{element}" in markup
    assert text(markup) == shown


ODD = ["y1 +", "y1 = = 2", "sin = 2)", "y1 ^ 2", "f(x) = 1", "(" * 300, "(" * 100 + "y1" + ")" * 100, "y1 + " * 400]


@pytest.mark.parametrize("law", ODD)
def test_what_cannot_be_read_is_shown_as_it_stands(law):
    assert mathml(law).startswith("<code>")


def test_nothing_becomes_markup():
    evil = "<script>alert(1)</script>"
    for law in (f"`{evil}` = 1", evil, "y1 = 1 # <b>"):
        assert "<script>" not in mathml(law) and "<b>" not in mathml(law)
    for shown in (Logic([f"`{evil}` -> a"]), Product([(Sphere(), [evil, "b"])]), Equations(f"`{evil}` = 1")):
        assert "<script>alert" not in shown._repr_html_()
    d = Decoding(*[np.zeros((1, 1))], *[np.zeros(1)] * 3, np.zeros(1, int), np.zeros(1, int), np.zeros(1), names=(evil,))
    assert evil not in d._repr_html_() and "&lt;script&gt;" in d._repr_html_()


def test_sets_say_what_they_demand():
    for law, words in (
        (Sphere(), "‖c − center‖ = radius"),
        (Intersection([Sphere(), Box(0)]), "all of"),
        (Union([Sphere(), Box(0)]), "one of"),
        (Inflated(Equations("y1 = y2"), 0.2), "within 0.2 of"),
        (Penalized(Sphere(), 3.0), "at a price of 3"),
        (Product([(Sphere(), ["a", "b"]), (Box(0), ["c"])]), "a, b"),
        (Logic(["dog -> animal"]), "dog → animal"),
        (LearnedEquations(), "LearnedEquations"),
        (Equations([f"y{t} = 1" for t in range(1, 20)]), "and 7 more"),
    ):
        page = law._repr_html_()
        assert words in page and "sk-container" in page, "scikit-learn's own picture is there too"


def test_estimators_show_their_law():
    x = np.linspace(0, 6, 30)[:, None]
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"), surrogate=KernelRidge(lam=1e-3))
    model.fit(x, np.c_[np.cos(x), np.sin(x)])
    for shown in (model, ConstrainedRegressorCV(Equations("y1 = y2")), ConstrainedClassifier(Logic(["y1 -> y2"]))):
        page = shown._repr_mimebundle_()["text/html"]
        assert 'class="lawful"' in page and "sk-container" in page
        assert page == shown._repr_html_() or "sk-" in page
    assert 'class="lawful"' not in ConstrainedRanker()._repr_html_(), "an order has no formula before it is fitted"
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_") and "text/html" not in model._repr_mimebundle_()
    page = model.decode(x)._repr_html_()
    assert "30 ok" in page and "and 22 more rows" in page and page.count("<tr>") == 9


def test_rankings_are_shown():
    X = np.random.default_rng(0).standard_normal((20, 2))
    ranker = ConstrainedRanker().fit(X, X @ np.ones((2, 4)))
    assert "best4" in ranker.decode(X)._repr_html_() and "and 12 more queries" in ranker.decode(X)._repr_html_()


def test_prediction_sets_and_draws_are_shown():
    x = np.linspace(0, 6, 40)[:, None]
    Y = np.c_[np.cos(x), np.sin(x)]
    base = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3))
    model = ConformalRegressor(base, alpha=0.2, random_state=0)
    assert "‖c − center‖ = radius" in model._repr_html_() and "calibration" not in model._repr_html_()
    page = model.fit(x, Y)._repr_html_()
    assert "probability 0.8, split, 12 calibration rows, lawful labels" in page and "sk-container" in page
    assert "sk-container" in ConformalRegressor()._repr_html_()
    sets = model.predict_set(x)
    page = sets._repr_html_()
    low, high = sets.intervals()[3, 1]
    assert f"{low:.4g} to {high:.4g}" in page and "40 prediction sets (curves)" in page and "and 32 more rows" in page
    assert page.count("<tr>") == 9 and "too few" not in page
    assert "too few for that: each set is the whole law" in model.predict_set(x, alpha=0.01)._repr_html_()
    cloud = ConformalRegressor(ConstrainedRegressor(PointCloud(Y), surrogate=KernelRidge(lam=1e-3)), random_state=0).fit(x, Y)
    assert (
        "(points)" in cloud.predict_set(x[:2])._repr_html_() and "2 prediction sets" in cloud.predict_set(x[:2])._repr_html_()
    )
    draws = model.estimator_.sample(x[:10], 50, random_state=0)
    page = draws._repr_html_()
    assert "50 draws for each of 10 rows, independent" in page and "and 2 more rows" in page
    assert f"{np.asarray(draws)[0, :, 0].mean():.4g} ±" in page and draws[0]._repr_html_() is None
    many = ConstrainedRegressor(surrogate=KernelRidge(lam=1e-3)).fit(x, np.tile(Y, 6)).sample(x[:2], 5, random_state=0)
    assert "…" in many._repr_html_() and "y7" in many._repr_html_() and "y8" not in many._repr_html_()


def test_sets_of_orders_are_shown():
    X = np.random.default_rng(0).standard_normal((60, 1))
    law = Rankings()
    signs = np.sign((X @ np.array([[1.0, 0.5, -1.0]])) + 0.1)
    model = ConformalRegressor(ConstrainedRegressor(law, surrogate=KernelRidge(lam=1e-2)), random_state=0)
    assert "certain pairs" in model.fit(X, signs).predict_set(X[:3])._repr_html_()


def test_diagnoses_and_choices_are_shown():
    evil = "<script>alert(1)</script>"
    x = np.linspace(-3, 3, 60)[:, None]
    Y = np.c_[np.cos(x), np.sin(x)] + 0.01 * np.random.default_rng(0).standard_normal((60, 2))
    sound = doctor(x, Y, Equations("y1**2 + y2**2 = 1"))._repr_html_()
    wrong = doctor(x, Y, Equations("y1**2 + y2**2 = 2"))
    assert "no alarm" in sound and "y1**2 + y2**2 = 1" in sound
    assert "alarm" in wrong._repr_html_() and wrong.alarms[0].sentence[:20] in wrong._repr_html_()
    wrong.untested.append(evil)
    assert evil not in wrong._repr_html_()
    choice = choose_law(Y, x, candidates={evil: Sphere()}, folds=2)
    assert evil not in choice._repr_html_() and "chosen" in choice._repr_html_() and "no law" in choice._repr_html_()


def test_relations_of_sympy_are_typeset_as_those_in_words():
    a, b = sympy.symbols("y1 y2")
    for relation, words in (
        (sympy.Eq(a * b, 3), "y1*y2 = 3"),
        (sympy.Le(a, 2 * b), "y1 <= 2*y2"),
        (sympy.Gt(a, b), "y1 > y2"),
        (a**2 - b, "y1**2 - y2 = 0"),
    ):
        assert mathml(words) in Equations([relation])._repr_html_()
