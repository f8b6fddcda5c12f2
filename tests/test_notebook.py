"""What notebooks show: laws typeset as MathML, decodings as tables; nothing that a user wrote becomes markup."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn

from lawful import (
    Box,
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
    Product,
    Sphere,
    Union,
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
