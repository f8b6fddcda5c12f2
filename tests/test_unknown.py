"""Unknown coefficients of a law: estimates, standard errors, gaps, bounds, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sympy

from lawful import Box, ConstrainedRegressor, ConstrainedRegressorCV, Equations, Intersection, doctor, load


def ring(n=300, radius=1.5, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 1))
    return x, radius * np.c_[np.cos(6 * x), np.sin(6 * x)] + noise * rng.standard_normal((n, 2))


def balance(n=200, seed=0, noise=0.02):
    """0.7 x1 = y1 y2 + 1.3 y3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform([1, 0], [2, 1], (n, 2))
    y1, y2 = 0.6 + 0.2 * np.sin(4 * x[:, 1]), 0.8 + 0.3 * np.cos(3 * x[:, 0])
    return x, np.c_[y1, y2, (0.7 * x[:, 0] - y1 * y2) / 1.3] + noise * rng.standard_normal((n, 3))


def within(C, sigmas=4.0, **truth):
    for name, value in truth.items():
        assert abs(C.unknown_[name] - value) <= sigmas * C.unknown_std_[name], (name, C.unknown_, C.unknown_std_)


def test_without_noise_the_numbers_are_exact():
    x, Y = balance(noise=0.0)
    C = Equations("a*x1 = y1*y2 + b*y3", unknown=["a", "b"]).fit(Y, x)
    assert C.unknown_ == pytest.approx({"a": 0.7, "b": 1.3}, rel=1e-6)
    assert C.at(x).contains(Y, tol=1e-5).all()


def test_inside_a_regressor():
    x, Y = ring()
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, None)})).fit(x, Y)
    within(model.constraint_, r=1.5)
    assert 0.002 < model.constraint_.unknown_std_["r"] < 0.004  # 0.05 / sqrt(300)
    d = model.decode(np.linspace(0, 1, 50)[:, None])
    assert (d.status == "ok").all()
    np.testing.assert_allclose((d.c**2).sum(axis=1), model.constraint_.unknown_["r"] ** 2, rtol=1e-9)


def test_the_bias_of_maximum_likelihood_is_removed():
    """Mean of |y| is r + s^2 / (2 r): 0.02 too large here, some ten standard errors."""
    x, Y = ring(n=4000, radius=1.0, noise=0.2)
    for C in (Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, 9)}).fit(Y, X) for X in (x, None)):
        assert abs(np.linalg.norm(Y, axis=1).mean() - 1) > 0.015
        assert abs(C.unknown_["r"] - 1) < 3.5 * 0.2 / np.sqrt(4000)


def test_a_line_is_total_least_squares():
    """Equal noise in both outputs, no inputs: the principal axis is the maximum of the likelihood."""
    rng = np.random.default_rng(1)
    t = rng.standard_normal(200)
    Y = np.c_[t, 2 * t + 1] + 0.3 * rng.standard_normal((200, 2))
    C = Equations("y2 = a*y1 + b", unknown=["a", "b"], noise=1.0).fit(Y)
    axis = np.linalg.svd(Y - Y.mean(axis=0))[2][0]
    slope = axis[1] / axis[0]
    assert C.unknown_ == pytest.approx({"a": slope, "b": Y[:, 1].mean() - slope * Y[:, 0].mean()}, rel=1e-6)


def test_gaps_are_filled_by_the_regression():
    """No row has all three labels, and the coefficients are found all the same."""
    x, Y = balance(n=400)
    Y[np.arange(400), np.arange(400) % 3] = np.nan
    C = Equations("a*x1 = y1*y2 + b*y3", unknown=["a", "b"]).fit(Y, x)
    within(C, a=0.7, b=1.3)
    assert C.unknown_std_["a"] < 0.05


def test_gaps_without_inputs_leave_the_complete_rows():
    Y = ring()[1]
    Y[::3, 0] = np.nan
    some = ~np.isnan(Y).any(axis=1)
    law = Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, 9)}, noise=1.0)
    whole, part = law.fit(Y).unknown_["r"], law.fit(Y[some]).unknown_["r"]
    assert whole == pytest.approx(part, rel=1e-5)


def test_bounds_hold_and_are_said():
    x, Y = ring()
    C = Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, 1.2)}).fit(Y, x)
    assert C.unknown_["r"] == 1.2
    assert np.isnan(C.unknown_std_["r"])


def test_a_coefficient_inside_a_function():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (250, 1))
    y2 = 0.2 + 2.6 * x[:, 0]
    Y = np.c_[np.exp(4 - 8 / (2.3 + y2)), y2] + [0.05, 0.01] * rng.standard_normal((250, 2))
    C = Equations("y1 = exp(p - q/(r + y2))", unknown={"p": None, "q": (0, None), "r": (0.5, 10)}).fit(Y, x)
    within(C, p=4.0, q=8.0, r=2.3)


def test_sympy_and_names_of_columns():
    x, Y = balance()
    names = sympy.symbols("x1 y1 y2 y3 a b")
    x1, y1, y2, y3, a, b = names
    one = Equations(sympy.Eq(a * x1, y1 * y2 + b * y3), unknown=["a", "b"]).fit(Y, x)
    frame = pd.DataFrame(Y, columns=["feed rate", "y2", "out"])
    model = ConstrainedRegressor(Equations("`the a`*x1 = `feed rate`*y2 + b*out", unknown=["the a", "b"])).fit(x, frame)
    assert model.constraint_.unknown_["the a"] == pytest.approx(one.unknown_["a"], rel=1e-9)
    assert one.to_equations().fit(Y, x).residual is not None
    text = model.constraint_.to_equations().equations[0]
    assert "the a" not in text and "`feed rate`" in text


def test_saved_and_loaded(tmp_path):
    x, Y = ring()
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, None)})).fit(x, Y)
    model.save(tmp_path / "model.lawful")
    for other in (load(tmp_path / "model.lawful"), pickle.loads(pickle.dumps(model))):
        assert other.constraint_.unknown_ == model.constraint_.unknown_
        np.testing.assert_array_equal(other.predict(x[:20]), model.predict(x[:20]))
        with pytest.raises(ValueError, match="fit once more"):
            other.constraint_.profile("r")


def test_the_search_estimates_by_fold():
    """Each fold has a coefficient of its own."""
    x, Y = ring(n=60)
    seen = []

    class Spy(Equations):
        def fit(self, Y, X=None, **names):
            super().fit(Y, X, **names)
            seen.append((len(Y), self.unknown_["r"]))
            return self

    Spy.__init__ = Equations.__init__
    ConstrainedRegressorCV(Spy("y1**2 + y2**2 = r**2", unknown={"r": (0, 9)}), cv=3).fit(x, Y)
    sizes = {n for n, _ in seen}
    assert {40, 60} <= sizes
    assert len({r for n, r in seen if n == 40}) == 3


def test_composed_with_bounds():
    x, Y = balance()
    C = Intersection([Equations("a*x1 = y1*y2 + b*y3", unknown=["a", "b"]), Box(0, 3)])
    model = ConstrainedRegressor(C).fit(x, Y)
    assert (model.decode(x).status == "ok").all()


def test_profile():
    x, Y = balance()
    C = Equations("a*x1 = y1*y2 + b*y3", unknown=["a", "b"]).fit(Y, x)
    p = C.profile("a")
    best, std = C.unknown_["a"], C.unknown_std_["a"]
    assert p.value[np.argmin(p.statistic)] == pytest.approx(best, abs=0.4 * std)
    assert p.statistic.min() < 0.2
    low, high = p.interval()
    assert low < best < high
    assert (high - low) / (2 * 1.96 * std) == pytest.approx(1, abs=0.3)
    assert set(p.others) == {"b"}
    assert np.corrcoef(p.value, p.others["b"])[0, 1] > 0.9  # they go together
    far = C.profile("a", [best + 100 * std]).statistic
    assert far[0] > 20


@pytest.mark.parametrize(
    ("law", "unknown", "message"),
    [
        ("a*y1 = b*y2", ["a", "b"], "a and b cannot be told apart"),
        ("a*y1 = y2", ["a", "b"], "'b' stands in no equation"),
        ("y1*y2 = 1", ["y1"], "name of an output"),
        ("a*y1 = x1", {"x1": None}, "name of an output, an input"),
        ("pi*y1 = y2", ["pi"], "constant"),
        ("a*y1 = y2", {"a": (2, 1)}, r"give None, \(low, high\)"),
        (["y1 = y2", "y1 <= a"], ["a"], "inequalities do not tell"),
        ("a*y1 = x1", ["a"], "give X to fit"),
        ("y1 = c + y2", [], "unknown name 'c'"),
    ],
)
def test_refused(law, unknown, message):
    Y = ring(40)[1]
    with pytest.raises(ValueError, match=message):
        Equations(law, unknown=unknown).fit(Y)


def test_callables_and_too_few_rows_are_refused():
    Y = ring(40)[1]
    with pytest.raises(ValueError, match="strings or sympy"):
        Equations(gamma=lambda c: c[:, 0], unknown=["a"]).fit(Y)
    with pytest.raises(ValueError, match="too few for 2"):
        Equations("y2 = a*y1 + b", unknown=["a", "b"]).fit(Y[:2])


def test_a_coefficient_that_labels_hardly_determine_is_warned_of():
    rng = np.random.default_rng(0)
    Y = 1 + np.c_[1e-3 * rng.standard_normal(50), rng.standard_normal(50)]
    with pytest.warns(UserWarning, match="hardly determine"):
        Equations("y2 = a*y1 + b", unknown=["a", "b"], noise=1e-2).fit(Y)


def test_unequal_noise_in_one_half_keeps_standard_errors_right():
    """Sandwich: the interval of the radius follows the rows that matter."""
    rng = np.random.default_rng(0)
    z = []
    for _ in range(60):
        t = rng.uniform(0, 6.28, 150)
        s = np.where(t < 3.14, 0.02, 0.08)[:, None]
        Y = np.c_[np.cos(t), np.sin(t)] + s * rng.standard_normal((150, 2))
        C = Equations("y1**2 + y2**2 = r**2", unknown={"r": 1.0}, noise=1.0).fit(Y)
        z.append((C.unknown_["r"] - 1) / C.unknown_std_["r"])
    assert 0.75 < np.std(z) < 1.3


def test_doctor_frees_a_coefficient():
    x, Y = ring(radius=1.0)
    found = doctor(x, Y, Equations("y1**2 + y2**2 = 1.1"))
    (alarm,) = found.alarms
    assert "`y1**2 + y2**2 = a` with unknown=['a'] estimates it" in alarm.sentence
    assert abs(alarm.numbers["value"] - 1) < 4 * alarm.numbers["error"] < 0.1
    C = Equations("y1**2 + y2**2 = a", unknown=["a"]).fit(Y, x)
    assert C.unknown_["a"] == pytest.approx(alarm.numbers["value"], abs=0.01)


def test_doctor_examines_a_law_with_unknown_coefficients():
    x, Y = ring(radius=1.0)
    found = doctor(x, Y, Equations("y1**2 + y2**2 = a", unknown=["a"]))
    assert found.sound
    (note,) = [n for n in found.notes if n.kind == "unknown"]
    assert note.subject == "a" and "estimated at" in note.sentence
