"""Reading a law: what is understood, what is refused and how, and what the set then knows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy
from sklearn.base import clone

from lawful import Equations, project
from lawful.sets.laws.graph import Graph
from lawful.sets.parser import parse
from lawful.sets.systems import CompiledSystem

Y = [sympy.Symbol(f"y{t + 1}", real=True) for t in range(3)]
NAMES = {str(s): ("y", t) for t, s in enumerate(Y)}
ZEROS = np.zeros((4, 2))
RNG = np.random.default_rng(0)


def fit(equations, T=2, **names):
    return Equations(equations).fit(np.zeros((4, T)), **names)


# ------------------------------------------------------------------ the parser


@pytest.mark.parametrize(
    "text, expected",
    [
        ("y1 = 2", [(Y[0] - 2, "=")]),
        ("y1 == 2*y2", [(Y[0] - 2 * Y[1], "=")]),
        ("y1 <= 1", [(Y[0] - 1, "<=")]),
        ("y1 > y2", [(Y[1] - Y[0], "<=")]),
        ("y1 ≤ 1", [(Y[0] - 1, "<=")]),
        ("y1 ≥ −1", [(-1 - Y[0], "<=")]),
        ("0 <= y1 <= 3", [(-Y[0], "<="), (Y[0] - 3, "<=")]),
        ("0 < y1 = y2 <= 3", [(-Y[0], "<="), (Y[0] - Y[1], "="), (Y[1] - 3, "<=")]),
        ("-(+y1) = sqrt(y2)", [(-Y[0] - sympy.sqrt(Y[1]), "=")]),
        ("atan2(y1, y2) = 0", [(sympy.atan2(Y[0], Y[1]), "=")]),
        ("y1**2**2 = y1**-1", [(Y[0] ** 4 - 1 / Y[0], "=")]),
        ("  y1\t=\ty2  ", [(Y[0] - Y[1], "=")]),
    ],
)
def test_understood(text, expected):
    graph = Graph()
    relations = parse(text, NAMES, graph)
    assert [kind for _, kind in relations] == [kind for _, kind in expected]
    c = RNG.uniform(0.5, 3, (9, 3))
    for kind in {"=", "<="} & {kind for _, kind in expected}:
        found = CompiledSystem(graph, relations, 3, 0).values(kind, c, None)
        wanted = [sympy.lambdify(Y, e)(*c.T) for e, k in expected if k == kind]
        np.testing.assert_allclose(found, np.transpose(wanted), rtol=1e-14, atol=1e-14)


REFUSED = {
    "no relation": "y1 + y2",
    "caret": "y1^2 = 1",
    "not equal": "y1 != 2",
    "membership": "y1 in (1, 2)",
    "call of a method": "y1.diff() = 1",
    "attribute": "y1.__class__ = 1",
    "import": "__import__('os').system('true') = 1",
    "lambda": "(lambda: 1)() = y1",
    "comprehension": "[y1 for y1 in (1,)] = 1",
    "subscript": "y1[0] = 1",
    "string": "'y1' = 1",
    "bytes": "b'y1' = y1",
    "f-string": "f'{y1}' = y1",
    "boolean": "True = y1",
    "none": "None = y1",
    "ellipsis": "... = y1",
    "complex": "1j*y1 = 1",
    "walrus": "(y1 := 2) = y2",
    "conditional": "(y1 if y2 else 1) = 1",
    "and": "(y1 and y2) = 1",
    "not": "(not y1) = 1",
    "inverse bits": "~y1 = 1",
    "modulo": "y1 % 2 = 1",
    "floor": "y1 // 2 = 1",
    "shift": "y1 << 2 = 1",
    "matrix": "y1 @ y2 = 1",
    "xor": "(y1 | y2) = 1",
    "tuple": "(y1, y2) = 1",
    "starred": "sin(*y1) = 1",
    "keyword": "sin(x=y1) = 1",
    "two arguments": "sin(y1, y2) = 1",
    "unknown function": "gamma(y1) = 1",
    "eval": "eval('y1') = 1",
    "nested comparison": "(y1 = 2) = 3",
    "statements": "y1 = 1; y2 = 2",
    "lines": "y1 = 1\ny2 = 2",
    "assignment": "y1 += 1",
    "empty": "",
    "half": "y1 =",
    "function as a name": "sin = y1",
    "division by zero": "y1/0 = 1",
    "infinity": "y1 = 1e999",
    "huge power": "9**9**9 = y1",
    "huge exponent": "y1**101 = 1",
    "overflow": "y1 = 1e300**90",
    "power of a negative": "y1 = (-8)**(1/3)",
    "long": "y1 = " + "+".join(["1"] * 200_000),
    "deep": "y1 = " + "(" * 300 + "y2" + "+1)" * 300,
    "very deep": "y1 = " + "-" * 5000 + "1",
    "null byte": "y1 = \0",
    "open backtick": "`y1 = 1",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_a_reason(text):
    with pytest.raises(ValueError, match=r"^Equations: "):
        parse(text, NAMES)


def test_nothing_is_evaluated(tmp_path):
    target = tmp_path / "touched"
    for attack in (f"open('{target}', 'w') = y1", f"y1 = `open('{target}', 'w')`", "y1 = `__import__('os')`"):
        with pytest.raises(ValueError, match=r"^Equations: "):
            fit(attack)
    assert not target.exists()


def test_a_misspelt_name_is_told_the_known_ones():
    with pytest.raises(
        ValueError, match=r"unknown name 'heatt' in .*did you mean 'heat'\? Known names: heat, mass, x1, y1, y2"
    ):
        fit("heatt + mass = 1", outputs=["heat", "mass"], inputs=["x1"])
    with pytest.raises(ValueError, match="unknown name 'y3'"):
        fit("y1 + y3 = 1")
    with pytest.raises(ValueError, match="unknown name 'x2'"):
        fit("y1 + x2 = 1", inputs=["x1"])
    with pytest.raises(ValueError, match=r"unknown name 'net heat'.*did you mean 'net_heat'"):
        fit("`net heat` = 1", outputs=["net_heat", "mass"])
    with pytest.raises(ValueError, match=r"unknown names \['z'\].*Known names: .*y1"):
        fit(sympy.Symbol("z") - Y[0])


def test_names_of_columns():
    C = fit("`net heat` = 2*mass", outputs=["net heat", "mass"])
    np.testing.assert_array_equal(C.residual(np.array([[2.0, 1.0], [1.0, 1.0]])), [0.0, 1.0])
    swapped = fit("y2 = 3", outputs=["y2", "y1"])  # column names win over y1, y2 by position
    assert swapped.contains(np.array([[3.0, 0.0]]))[0] and not swapped.contains(np.array([[0.0, 3.0]]))[0]
    by_x = fit("y1 = 2*feed", inputs=["feed"]).at(np.array([[1.0], [2.0]]))
    np.testing.assert_array_equal(by_x.residual(np.array([[2.0, 0.0], [2.0, 0.0]])), [0.0, 2.0])
    with pytest.raises(ValueError, match="'a' in a = 1 is ambiguous: it names both an input column and an output column"):
        fit("a = 1", outputs=["a", "b"], inputs=["a"])


@pytest.mark.parametrize(
    "equations, message",
    [
        ([], "empty"),
        ("x1 = 2", "does not constrain any output"),
        ("1 = 1", "does not constrain any output"),
        (["y1 = 1", "y1 - y1 = 0"], "does not constrain any output"),
        ([sympy.Eq(1, 2)], "always"),
    ],
)
def test_laws_that_say_nothing(equations, message):
    with pytest.raises(ValueError, match=message):
        fit(equations)


def test_either_strings_or_callables():
    for bad in (Equations(), Equations("y1 = 1", gamma=lambda c: c[:, 0])):
        with pytest.raises(ValueError, match="one of the two"):
            bad.fit(ZEROS)
    with pytest.raises(TypeError, match="is a int"):
        fit([1])


# ------------------------------------------------------------------ sympy, x, copies

LAWS = {
    "circle": "y1**2 + y2**2 = 1",
    "mixed": ["exp(y1)*sin(y2) + y1*y2 = x1", "y1**3 <= x2 + atan2(y2, 3)", "sqrt(1 + y2**2) >= y1"],
    "logarithm inside abs": "abs(log(2 + y1**2) - y2) = abs(y1)",
    "everything": "tan(y1/4) + acos(y1/9) + asin(y2/9) + sinh(y1)*cosh(y2) + tanh(y2) + log(9 + y1) + abs(y2 + 8) = cos(pi*y1)",
}


def test_sympy_says_the_same_as_strings():
    a, b = sympy.symbols("y1 y2")
    c = RNG.standard_normal((7, 2))
    for relation, text in [
        (a**2 + b**2 - 1, "y1**2 + y2**2 = 1"),
        (sympy.Eq(a * b, sympy.sin(a)), "y1*y2 = sin(y1)"),
        (sympy.Le(a, b), "y1 <= y2"),
        (sympy.Gt(a, b**2), "y1 > y2**2"),
    ]:
        np.testing.assert_allclose(fit(relation).residual(c), fit(text).residual(c), atol=1e-15)
    odd = [sympy.gamma(a), sympy.Max(a, b), sympy.I * a, sympy.Piecewise((a, b > 0), (b, True)), sympy.Derivative(a * b, a)]
    for strange in [*odd, sympy.Integral(a, a), sympy.Ne(a, b), sympy.And(a > 0, b > 0), a - sympy.oo]:
        with pytest.raises(ValueError, match="Equations: "):
            fit(strange)


def differences(f, c, h=1e-6):
    eye = np.eye(c.shape[1])
    return np.stack([(f(c + h * e) - f(c - h * e)) / (2 * h) for e in eye], axis=-1)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_derivatives_against_differences(law):
    X = RNG.standard_normal((6, 2))
    c = RNG.standard_normal((6, 2))
    C = fit(law, inputs=["x1", "x2"]).at(X)
    kinds = [k for k in ("equality", "inequality") if hasattr(C, k)]
    jacobians = [getattr(C, f"{k}_jacobian") for k in kinds]
    for k, jacobian in zip(kinds, jacobians):
        np.testing.assert_allclose(jacobian(c), differences(getattr(C, k), c), atol=1e-7)
    nu = RNG.standard_normal((6, sum(J(c).shape[1] for J in jacobians)))

    def weighted(c):
        return np.einsum("mp,mpt->mt", nu, np.concatenate([J(c) for J in jacobians], axis=1))

    np.testing.assert_allclose(C.curvature(c, nu), differences(weighted, c), atol=1e-6)
    callable_C = Equations(**{{"equality": "gamma", "inequality": "slack"}[k]: _of(C, k) for k in kinds}).fit(c)
    np.testing.assert_allclose(callable_C.curvature(c, nu), C.curvature(c, nu), atol=2e-5)


def _of(C, kind):
    """The compiled functions as plain callables, with the inputs of the nearest row."""
    return lambda c: getattr(C.rows(np.arange(len(c)) % 6), kind)(c)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_copies_and_pickles(law):
    c, X = RNG.standard_normal((3, 2)), RNG.standard_normal((3, 2))
    C = fit(law, inputs=["x1", "x2"])
    before = C.at(X).residual(c)
    for other in (pickle.loads(pickle.dumps(C)), clone(C).fit(ZEROS, inputs=["x1", "x2"])):
        np.testing.assert_array_equal(other.at(X).residual(c), before)
    assert repr(clone(C)) == repr(C)


def test_laws_that_depend_on_inputs():
    C = fit("y1 + y2 = x1")
    with pytest.raises(ValueError, match=r"bind them first with \.at\(X\)"):
        C.residual(ZEROS)
    with pytest.raises(ValueError, match=r"bind them first with \.at\(X\)"):
        C.sample(4)
    with pytest.raises(ValueError, match="X has 0 columns"):
        C.at(np.zeros((4, 0)))
    bound = C.at(np.arange(4.0)[:, None])
    np.testing.assert_array_equal(bound.residual(ZEROS), [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(bound.rows(np.array([3, 1])).residual(ZEROS[:2]), [3.0, 1.0])
    points = bound.sample(4, random_state=0)
    np.testing.assert_allclose(points.sum(axis=1), np.arange(4.0), atol=1e-9)
    assert not fit("y1 + 0*x1 = 1").depends_on_x


# ------------------------------------------------------------------ callables


def test_callables_are_checked():
    for gamma, jacobian, message in [
        (lambda c: c.sum(), None, "returned shape"),
        (lambda c: np.zeros((3, 1)), None, "returned shape"),
        (lambda c: (c**2).sum(1) - 1, lambda c: c, "disagrees with finite differences"),
        (lambda c: (c**2).sum(1) - 1, lambda c: np.zeros((len(c), 2, 2)), "jacobian has shape"),
        (lambda c: np.random.default_rng().standard_normal(len(c)), None, "does not settle"),
        (lambda c: np.floor(1e5 * c[:, 0]), None, "does not settle"),
    ]:
        with pytest.raises(ValueError, match=message):
            Equations(gamma=gamma, jacobian=jacobian).fit(ZEROS)


def test_callable_of_c_and_x():
    C = Equations(gamma=lambda c, X: (c**2).sum(1) - X[:, 0], slack=lambda c: -c).fit(ZEROS)
    assert C.depends_on_x
    bound = C.at(np.array([[1.0], [4.0]]))
    np.testing.assert_allclose(bound.residual(np.array([[1.0, 0.0], [0.0, -2.0]])), [0.0, 2.0])
    np.testing.assert_allclose(project([[3.0, 3.0], [1.0, -5.0]], C, X=[[1.0], [4.0]]), [[0.5**0.5] * 2, [2.0, 0.0]], atol=1e-8)


# ------------------------------------------------------------------ samples, redundancy, contradiction


@pytest.mark.parametrize("law", ["y1**2 + y2**2 = 1", ["y1*y2 = 1", "y1 >= 0"], ["y1 >= 0", "y1 + y2 <= 1"]], ids=str)
def test_samples_satisfy_the_law(law):
    C = fit(law)
    c = C.sample(100, random_state=0)
    assert c.shape == (100, 2) and (C.residual(c) <= 1e-8).all()
    np.testing.assert_array_equal(c, C.sample(100, random_state=0))


def test_an_empty_set_cannot_be_sampled():
    with pytest.raises(ValueError, match="may be empty"):
        fit("y1**2 + y2**2 = -1").sample(5, random_state=0)


@pytest.mark.parametrize(
    "law",
    [
        ["y1**2 + y2**2 = 1", "y1**2 + y2**2 = 1"],
        ["y1**2 + y2**2 = 1", "2*y1**2 = 2 - 2*y2**2", "3*y1**2 + 3*y2**2 <= 3"],
        ["y1**2 + y2**2 = 1", "y1**2 + y2**2 = 1", "5*y1**2 + 5*y2**2 = 5"],
    ],
    ids=["twice", "scaled", "three for two outputs"],
)
def test_redundant_equations_change_nothing(law):
    points = RNG.standard_normal((50, 2))
    d = project(points, Equations(law), certificate=True)
    np.testing.assert_allclose(d.value, (np.linalg.norm(points, axis=1) - 1) ** 2, atol=1e-10)
    np.testing.assert_allclose(d.c, points / np.linalg.norm(points, axis=1, keepdims=True), atol=1e-7)
    assert (d.status == "ok").all() and (d.residual < 1e-9).all()


def test_more_equations_than_outputs_that_agree():
    law = ["y1 + y2 = 3", "y1 - y2 = 1", "y1*y2 = 2", "y1 = 2"]
    d = project(RNG.standard_normal((9, 2)), Equations(law), certificate=True)
    np.testing.assert_allclose(d.c, np.tile([2.0, 1.0], (9, 1)), atol=1e-8)
    assert (d.status == "ok").all()


@pytest.mark.parametrize(
    "law, least",
    [
        (["y1 = 0", "y1 = 1"], 0.5),
        ("y1**2 + y2**2 = -1", 1.0),
        (["y1 + y2 = 1", "y1 + y2 >= 3"], 1.0),
        (["y1 <= 0", "y1 >= 2"], 1.0),
    ],
    ids=str,
)
def test_contradictory_equations_are_infeasible_with_the_smallest_violation(law, least):
    d = project(RNG.standard_normal((9, 2)), Equations(law), certificate=True)
    assert (d.status == "infeasible").all() and np.isfinite(d.c).all() and np.isfinite(d.value).all()
    np.testing.assert_allclose(d.residual, least, rtol=1e-3)
