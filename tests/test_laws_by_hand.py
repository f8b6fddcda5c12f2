"""Laws in words against Python's own arithmetic; their names, their picture, and coefficients that are estimated in them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lawful import Equations
from lawful.sets import coefficients
from lawful.sets.coefficients import Estimate, Profile, _identified, _solve, _starts, _step
from lawful.sets.feet import feet, weights
from lawful.sets.names import BlockNames, Unknown, highest_input, names_of_block, read_unknown, resolve, with_numbers
from lawful.sets.noisy_labels import Evidence, OpenLaw, evidence, parts_of, shares
from lawful.sets.parser import MAX_CHAIN, MAX_DEPTH, check_length, parse
from lawful.sets.restore import restore, settle, violation
from lawful.sets.systems import CallableSystem
from lawful.sets.typeset import mathml

rng = np.random.default_rng(0)
KNOWN = {"y1": ("y", 0), "y2": ("y", 1), "x1": ("x", 0), "feed rate": ("y", 1), "k": ("number", 2.5)}
PYTHON = {name: getattr(math, name) for name in ("sin", "cos", "exp", "tan", "tanh", "atan2")} | {"abs": abs}


def law(*words, T=2):
    return Equations(list(words)).fit(np.zeros((1, T)), np.zeros((1, 1)))


def value(text, y, x=0.3):
    """Of the text, as the left side of an equation whose right side is known."""
    right = math.tan(y[0] + 0.1 * y[1])
    return law(f"{text} = tan(y1 + 0.1*y2)").at(np.array([[x]])).equality(np.array([y]))[0, 0] + right


# ---------------------------------------------------------------------- reading


def expression(draw, depth):
    """A random expression, written with random spaces, signs and parentheses."""
    kind = draw.integers(0, 9 if depth else 3)
    inner = lambda: expression(draw, depth - 1)  # noqa: E731
    if kind == 0:
        return str(draw.choice(["2", "0.5", "3.25", "1e-1", "7", ".5", "1_0.0"]))
    if kind < 3:
        return str(draw.choice(["y1", "y2", "x1"]))
    space = " " * draw.integers(0, 2)
    if kind < 6:
        return f"{inner()}{space}{draw.choice(['+', '-', '*'])}{space}{inner()}"
    if kind == 6:
        return f"({inner()}) / (3 + ({inner()})**2)"
    if kind == 7:
        return f"{draw.choice(['-', '+', '- -', '-+'])}{inner()}"
    if kind == 8:
        return f"({inner()})**{draw.choice(['2', '3', '1', '0'])}"
    return f"{draw.choice(['sin', 'cos', 'tanh', 'abs'])}{space}({inner()})"


def test_random_expressions_are_what_python_says():
    draw = np.random.default_rng(1)
    for _ in range(150):
        text = expression(draw, 4)
        y1, y2, x1 = (float(v) for v in draw.uniform(0.3, 1.5, 3))
        expected = eval(text, {"__builtins__": {}}, PYTHON | {"y1": y1, "y2": y2, "x1": x1})  # our own text
        assert value(text, [y1, y2], x1) == pytest.approx(expected, rel=1e-9, abs=1e-9), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y1 - y2 - 2", -1.5),
        ("y1 - (y2 - 2)", 2.5),
        ("8 / 4 / 2 + 0*y1", 1.0),
        ("2**3**2 + 0*y1", 512.0),
        ("-y1**2", -4.0),
        ("(-y1)**2", 4.0),
        ("2**-1 * y1", 1.0),
        ("y1 - -3*y2", 6.5),
        ("y1 + -3*y2", -2.5),
        ("y1 +- y2", 0.5),
        ("y1 - 3*y2 + y2*y2", -0.25),
        ("y1 - 2*y2**2", -2.5),
        ("y1*3 - y2 + 2*y1", 8.5),
        ("pi*y1", 2 * math.pi),
        ("exp(y1 - 2)", 1.0),
        ("atan2(y1, y2)", math.atan2(2, 1.5)),
        ("sqrt(y1 + 2)", 2.0),
        ("log(y1 - 1) + y1", 2.0),
        ("y1 − 1", 1.0),
        ("y1 # a remark", 2.0),
        ("y1 - 1_000*y2", -1498.0),
        ("y1 - y2 + y2 - y1 + 0.25*x1", 0.075),
    ],
)
def test_precedence(text, expected):
    if "#" in text:
        assert law("y1 = 0 # a remark").at(np.zeros((1, 1))).equality(np.array([[2.0, 1.5]]))[0, 0] == 2.0
    else:
        assert value(text, [2.0, 1.5]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "kinds", "values"),
    [
        ("y1 = 3", "=", [-1.0]),
        ("y1 == 3", "=", [-1.0]),
        ("y1 <= 3", "<", [-1.0]),
        ("y1 < 3", "<", [-1.0]),
        ("y1 ≤ 3", "<", [-1.0]),
        ("y1 >= 3", "<", [1.0]),
        ("y1 > 3", "<", [1.0]),
        ("3 ≥ y1", "<", [-1.0]),
        ("0 <= y1 <= 3", "<<", [-2.0, -1.0]),
        ("3 >= y1 >= 0", "<<", [-1.0, -2.0]),
        ("y1 = y2 = 1", "==", [0.5, 0.5]),
    ],
)
def test_comparisons(text, kinds, values):
    C = law(text)
    c = np.array([[2.0, 1.5]])
    found = [*(C.equality(c)[0] if "=" in kinds else []), *(C.inequality(c)[0] if "<" in kinds else [])]
    assert found == values and hasattr(C, "equality") == ("=" in kinds) and hasattr(C, "inequality") == ("<" in kinds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write it like"),
        ("y1 + y2", "has no '=', '<=' or '>='; write for instance 'y1 \\+ y2 = 0'"),
        ("y1 ^ 2 = 1", r"write powers with '\*\*'"),
        ("y1 != 2", "use =, <= or >="),
        ("`y1 = 2", "backtick that is not closed"),
        ("y1 = 2 @ 3", "contains '@', which is not allowed"),
        ("2y1 = 1", "has a letter right after the number 2"),
        ("y1 y2 = 1", "has 'y2' where an operator is expected"),
        ("y1 (y2) = 1", r"cannot call 'y1'; known: "),
        ("(y1)(y2) = 1", r"has '\(' where an operator is expected"),
        ("y1 + * y2 = 1", r"has '\*' where a number or a name is expected"),
        ("y1 = ", "ends too early or lacks a side"),
        ("= y1", "has '=' where a number or a name is expected"),
        ("y1 + = 2", "has '=' where a number or a name is expected"),
        ("(y1 = 2", "compares inside an expression"),
        ("(y1 + 2", r"has '\(' without its '\)'"),
        ("y1) = 2", r"has '\)' without its '\('"),
        ("sin() = 2", r"has '\)' where a number or a name is expected"),
        ("sin(y1, y2) = 2", "cannot call 'sin' with 2 arguments; it takes 1"),
        ("atan2(y1) = 2", "cannot call 'atan2' with 1 argument; it takes 2"),
        ("(y1, y2) = 2", "has ',' outside of a function"),
        ("y1 = 1\ny2 = 2", "has several lines; give a list"),
        ("y1 = 1e999", "which is not a finite number"),
        ("y1 = 1__0", "number that cannot be read: '1__0'"),
        ("y1 + 1__0*y2 = 1", "number that cannot be read: '1__0'"),
        ("y1 + 1e999*y2 = 1", "which is not a finite number"),
        ("temperature = 1", "unknown name 'temperature'"),
        ("y_1 = 1", "did you mean 'y1'"),
        ("feed = 1", "did you mean 'feed rate'"),
        ("y1 = " + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} levels"),
        ("y1 = " + "-" * (MAX_DEPTH + 1) + "1", f"nested more than {MAX_DEPTH} levels"),
        ("y1 = " + "1**" * (MAX_DEPTH + 1) + "1", f"nested more than {MAX_DEPTH} levels"),
        ("0" + " <= y1" * (MAX_CHAIN + 1), f"more than {MAX_CHAIN} comparisons"),
    ],
)
def test_words_that_are_no_law(text, message):
    with pytest.raises(ValueError, match=f"(?s)Equations: .*{message}"):
        parse(text, KNOWN)


def test_the_limits_themselves_are_allowed():
    deep = MAX_DEPTH
    for text in ("(" * deep + "y1" + ")" * deep + " = 1", "-" * deep + "y1 = 1", "y1" + "**1" * deep + " = 1"):
        assert len(parse(text, KNOWN)) == 1
    assert len(parse("0" + " <= y1" * MAX_CHAIN, KNOWN)) == MAX_CHAIN
    many = "y1 = " + " + ".join(["(-y1)"] * 500)  # one after the other is not inside each other
    assert len(parse(many, KNOWN)) == 1
    parse("y1 + (\n2) = 1", KNOWN)
    with pytest.raises(ValueError, match="a string of 200001 characters is too long"):
        check_length(["y" * 200_001])
    check_length(["y" * 200_000] * 20)
    with pytest.raises(ValueError, match="21 equations with 4000001 characters"):
        check_length([*["y" * 200_000] * 20, "y"])


def test_names_in_backticks_and_numbers_by_name():
    ((root, kind),) = parse("`feed rate` - k*y1 = k", KNOWN)
    assert kind == "=" and root.const == -2.5 and sorted(root.terms.values()) == [-2.5, 1.0]
    ((root, _),) = parse("y1 + k = 1", KNOWN)
    assert root.const == 1.5


# ---------------------------------------------------------------------- names


def test_what_names_mean():
    names = resolve(2, 2, ["y2", "top"], ["temp", "y1"])
    assert names.known["y2"] == ("y", 0) and names.known["top"] == ("y", 1) and names.known["temp"] == ("x", 0)
    assert names.known["x2"] == ("x", 1) and names.known["y1"] == ("y", 0)
    assert "output 1 by its number" in names.refused["y1"] and set(names.refused) == {"y1"}
    both = resolve(1, 1, ["a"], ["a"])
    assert "an input column and an output column" in both.refused["a"]
    assert "several columns" in resolve(2, 0, ["a", "a"], None).refused["a"]
    block = names_of_block(["a", "y1", "c"], [0, 2])
    assert block == ["a", "c"] and block.elsewhere == {"y1"} and isinstance(block, BlockNames)
    assert "outside this block" in resolve(2, 0, block, None).refused["y1"]
    assert names_of_block(None, [0]) is None and names_of_block(block, [1]).elsewhere == {"a", "y1"}


def test_the_highest_input_that_is_mentioned():
    assert highest_input(["y1 = x2 + x11", "`x99 z` = x3"]) == 11
    assert (
        highest_input(["y1 = y2"]) == 0 and highest_input(["x10000 = x0 + x01"]) == 0 and highest_input(["x9999 = 1"]) == 9999
    )


def test_numbers_in_place_of_names():
    found = with_numbers("a*y1 - a2 + `b c`*sin(a)/2.5e3 = d.a", {"a": -1.5, "b c": 2.0})
    assert found == "(-1.5)*y1 - a2 + 2.0*sin((-1.5))/2.5e3 = d.a"
    assert with_numbers("a = 0", {"a": 0.0}) == "0.0 = 0"


def test_unknown_coefficients_are_checked():
    names, items = resolve(2, 1, None, None), ["y1 = a*x1 + b*y2 + c"]
    found = read_unknown({"a": (0, None), "b": 2.5, "c": None}, items, names)
    assert found.names == ["a", "b", "c"] and found.low.tolist() == [0, -np.inf, -np.inf]
    assert np.isinf(found.high).all() and found.start[1] == 2.5 and np.isnan(found.start[[0, 2]]).all()
    assert read_unknown("a", items, names).names == ["a"] and read_unknown(["a", "c"], items, names).names == ["a", "c"]
    for given, message in (
        ({"y1": None}, "is the name of an output"),
        ({"x7": None}, "is the name of an output"),
        ({"pi": None}, "is the name of an output"),
        ({"d": None}, "stands in no equation"),
        ({"a": (1, 1)}, "will not do; give None"),
        ({"a": (2, 1)}, "will not do"),
        ({"a": (1, 2, 3)}, "will not do"),
        ({"a": "low"}, "will not do"),
        ({"a": np.inf}, "will not do"),
    ):
        with pytest.raises(ValueError, match=message):
            read_unknown(given, items, names)


# ---------------------------------------------------------------------- the picture


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y1 = 1", "<msub><mi>y</mi><mn>1</mn></msub><mo>=</mo><mn>1</mn>"),
        ("a < b", "<mi>a</mi><mo>≤</mo><mi>b</mi>"),
        ("a >= b", "<mi>a</mi><mo>≥</mo><mi>b</mi>"),
        ("a - b + c", "<mi>a</mi><mo>−</mo><mi>b</mi><mo>+</mo><mi>c</mi>"),
        ("-a", "<mo form='prefix'>−</mo><mi>a</mi>"),
        ("+a", "<mi>a</mi>"),
        ("2*a", "<mn>2</mn><mspace width='0.17em'></mspace><mi>a</mi>"),
        ("a*2", "<mi>a</mi><mo>·</mo><mn>2</mn>"),
        ("(a + b)/2", "<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mrow><mn>2</mn></mrow></mfrac>"),
        (
            "(a)*(b)/2",
            "<mfrac><mrow><mrow><mo>(</mo><mi>a</mi><mo>)</mo></mrow><mspace width='0.17em'></mspace><mrow><mo>(</mo><mi>b</mi>"
            "<mo>)</mo></mrow></mrow><mrow><mn>2</mn></mrow></mfrac>",
        ),
        ("a**(b + 1)", "<msup><mrow><mi>a</mi></mrow><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></msup>"),
        ("a**-2", "<msup><mrow><mi>a</mi></mrow><mrow><mo form='prefix'>−</mo><mn>2</mn></mrow></msup>"),
        ("sqrt(a)", "<msqrt><mi>a</mi></msqrt>"),
        ("abs(a)", "<mrow><mo>|</mo><mi>a</mi><mo>|</mo></mrow>"),
        ("exp(a)", "<msup><mi>e</mi><mrow><mi>a</mi></mrow></msup>"),
        (
            "atan2(a, b)",
            "<mrow><mi>atan2</mi><mrow><mo>(</mo><mi>a</mi><mo>,</mo><mi>b</mi><mo>)</mo></mrow></mrow>",
        ),
        ("sigma2", "<msub><mi>σ</mi><mn>2</mn></msub>"),
        ("feed_rate", "<msub><mi>feed</mi><mi>rate</mi></msub>"),
        ("mu_3", "<msub><mi>μ</mi><mn>3</mn></msub>"),
        ("flow", "<mi>flow</mi>"),
        ("`a & b`", "<mtext>a &amp; b</mtext>"),
    ],
)
def test_laws_are_typeset(text, expected):
    assert mathml(text) == f'<math display="block">{expected}</math>'


@pytest.mark.parametrize("text", ["a +", "(a", "a)", "f(a)", "a ^ b", "a b", "", "sqrt(a", "a = = b", "sin a"])
def test_what_cannot_be_read_is_shown_as_it_stands(text):
    assert mathml(text) == f"<code>{text}</code>"


def test_long_and_deep_laws_are_shown_as_they_stand():
    assert mathml("a" * 600).startswith("<math") and mathml("a" * 601) == f"<code>{'a' * 600}…</code>"
    assert mathml("(" * 59 + "a" + ")" * 59).startswith("<math") and mathml("(" * 60 + "a" + ")" * 60).startswith("<code")
    assert mathml("a" + "**a" * 59).startswith("<math") and mathml("a" + "**a" * 60).startswith("<code")


# ---------------------------------------------------------------------- the way back


ELLIPSE = law("y1**2/4 + y2**2 = 1")
ANGLE = np.linspace(-np.pi, np.pi, 100_001)
RIM = np.c_[2 * np.cos(ANGLE), np.sin(ANGLE)]


def test_points_are_moved_onto_a_law():
    c = rng.uniform(-3, 3, (20, 2))
    found, iterations = restore(ELLIPSE, c, np.ones(2))
    assert ELLIPSE.residual(found).max() < 1e-12 and (iterations >= 1).all() and (iterations < 30).all()
    still, none = restore(ELLIPSE, RIM[:3], np.ones(2))
    np.testing.assert_allclose(still, RIM[:3], atol=1e-12)
    assert none.max() <= 2


def test_moves_are_measured_in_units():
    """y1 + y2 = 3 from 0: the output with the larger unit moves by the square of it as far."""
    line = law("y1 + y2 = 3")
    np.testing.assert_allclose(restore(line, np.zeros((1, 2)), np.array([1.0, 1.0]))[0], [[1.5, 1.5]])
    np.testing.assert_allclose(restore(line, np.zeros((1, 2)), np.array([2.0, 1.0]))[0], [[2.4, 0.6]])


def test_inequalities_move_only_what_violates_them():
    disk = law("y1**2 + y2**2 <= 1", "y1 >= 0")
    found, _ = restore(disk, np.array([[0.3, 0.4], [3.0, 0.0], [-0.5, 0.2]]), np.ones(2))
    np.testing.assert_allclose(found, [[0.3, 0.4], [1.0, 0.0], [0.0, 0.2]], atol=1e-9)
    assert violation(disk, np.array([[2.0, 0.0], [-0.5, 0.0], [0.5, np.nan]])).tolist() == [[3, 0], [0, 0.5], [np.inf, 0]]


def test_where_there_is_no_point_the_violation_is_least():
    none = law("y1 = 0", "y1 = 1")
    found, iterations = restore(none, np.array([[5.0, 2.0]]), np.ones(2))
    np.testing.assert_allclose(found, [[0.5, 2.0]], atol=1e-6)
    assert iterations[0] <= 100


def test_the_nearest_point_of_a_law():
    targets = rng.uniform(-2, 2, (12, 2)) + np.array([[0.0, 1.5]])
    found = settle(ELLIPSE, targets, np.ones(2))
    for c, target in zip(found, targets):
        best = RIM[np.argmin(((RIM - target) ** 2).sum(axis=1))]
        if np.linalg.norm(c - best) > 0.5:  # another local minimum
            continue
        np.testing.assert_allclose(c, best, atol=1e-4)
    close = RIM[::20_000] * 1.1
    for c, target in zip(settle(ELLIPSE, close, np.ones(2)), close):
        np.testing.assert_allclose(c, RIM[np.argmin(((RIM - target) ** 2).sum(axis=1))], atol=1e-4)
    scaled = settle(ELLIPSE, close, np.array([1.0, 3.0]))
    for c, target in zip(scaled, close):
        np.testing.assert_allclose(c, RIM[np.argmin((((RIM - target) / [1, 3]) ** 2).sum(axis=1))], atol=2e-4)
    half = law("y1**2 + y2**2 <= 1", "y2 >= 0")
    np.testing.assert_allclose(settle(half, np.array([[3.0, -1.0], [0.2, 0.3]]), np.ones(2)), [[1, 0], [0.2, 0.3]], atol=1e-7)


# ---------------------------------------------------------------------- callables


def ring(c):
    return c[:, 0] ** 2 + 2 * c[:, 1] ** 3


def test_derivatives_of_a_callable_by_differences():
    C = Equations(gamma=ring).fit(rng.standard_normal((20, 2)))
    c, nu = rng.standard_normal((4, 2)), rng.standard_normal((4, 1))
    expected = np.stack([2 * c[:, 0], 6 * c[:, 1] ** 2], axis=1)
    np.testing.assert_allclose(C.equality_jacobian(c)[:, 0], expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(C.equality(c)[:, 0], ring(c))
    bend = nu[:, :, None] * np.einsum("mt,ts->mts", np.stack([2 + 0 * c[:, 1], 12 * c[:, 1]], axis=1), np.eye(2))
    np.testing.assert_allclose(C.curvature(c, nu), bend, atol=1e-4)
    given = Equations(gamma=ring, jacobian=lambda c: np.stack([2 * c[:, 0], 6 * c[:, 1] ** 2], axis=1)).fit(np.ones((2, 2)))
    np.testing.assert_array_equal(given.equality_jacobian(c)[:, 0], expected)
    np.testing.assert_allclose(given.curvature(c, nu), bend, atol=1e-7)
    np.testing.assert_allclose(C.scales(c)[:, 0], 1e-4 * (abs(expected) * abs(c)).sum(axis=1), rtol=1e-6)
    assert not C.depends_on_x and C.system_.count("=") == 1 and C.system_.count("<=") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": lambda c: c[:1]}, r"returned shape \(1, 2\) for 8 rows"),
        ({"gamma": lambda c: np.ones((8, 1, 1))}, "returned shape"),
        ({"gamma": lambda c: np.sign(np.sin(1e6 * c[:, 0]))}, "does not settle"),
        ({"gamma": ring, "jacobian": lambda c: np.ones((8, 3))}, r"jacobian has shape \(8, 1, 3\), expected \(8, 1, 2\)"),
        ({"gamma": ring, "jacobian": lambda c: 1.01 * np.stack([2 * c[:, 0], 6 * c[:, 1] ** 2], axis=1)}, "disagrees"),
    ],
)
def test_callables_that_will_not_do(options, message):
    with pytest.raises(ValueError, match=message):
        Equations(**options).fit(rng.standard_normal((20, 2)))


def test_a_callable_that_jumps_is_refused_whatever_the_data():
    """At single points differences of any length agree by chance: two lengths and the median of 8 points took 15 in 100."""
    taken = 0
    for _ in range(300):
        try:
            Equations(gamma=lambda c: np.sign(np.sin(1e6 * c[:, 0]))).fit(rng.standard_normal((20, 2)))
            taken += 1
        except ValueError as error:
            assert "does not settle" in str(error)
    assert taken <= 12  # 15 in 1000
    for _ in range(50):  # one kink within reach of the differences is no fault
        Equations(gamma=lambda c: abs(c[:, 0]) + abs(c[:, 1]) - 1).fit(np.r_[rng.standard_normal((19, 2)), [[0.0, 1.0]]])


def test_which_callables_take_inputs():
    system = CallableSystem(
        {"=": lambda c, X: c[:, 0] - X[:, 0], "<=": lambda c, scale=2.0: scale * c[:, 1] - 1},
        {"=": None, "<=": None},
        np.ones(2),
    )
    assert system.depends_on_x and list(system.takes_x.values()) == [True, False]
    system.check(np.ones((8, 2)), np.zeros((8, 1)))
    assert system.sizes == {"=": 1, "<=": 1}
    np.testing.assert_array_equal(system.values("<=", np.ones((2, 2)), None), [[1.0], [1.0]])
    assert system.measured(np.ones((1, 2))) is None


# ---------------------------------------------------------------------- plain laws


def test_affine_laws_are_matrices():
    C = law("2*y1 - y2 = 3", "y1 <= 4", "y2 >= -1")
    c = np.array([[1.0, 2.0], [5.0, -4.0]])
    np.testing.assert_array_equal(C.equality(c), [[-3.0], [11.0]])
    np.testing.assert_array_equal(C.inequality(c), [[-3.0, -3.0], [1.0, 3.0]])
    np.testing.assert_allclose(C.residual(c), [3.0, 11.0])
    np.testing.assert_allclose(C.relative(c), [3 / 7, 11 / 17], rtol=1e-6)
    np.testing.assert_allclose(C.system_.terms("=", c, None), [[7.0], [17.0]])
    np.testing.assert_allclose(C.system_.terms("<=", c, None), [[5.0, 3.0], [9.0, 5.0]])
    A, b = C.system_.affine_part("<=")
    np.testing.assert_array_equal(A, [[1, 0], [0, -1]])
    np.testing.assert_array_equal(b, [-4, -1])
    assert C.polyhedral and C.quadratic and C.convex and not law("y1*y2 = 1").polyhedral and law("y1*y2 = 1").quadratic
    assert not law("y1**3 = 1").quadratic
    moved = law("y1 = x1*y2 + x1").at(np.array([[2.0], [3.0]]))
    A, b = moved.system_.affine_part("=", np.array([[2.0], [3.0]]))
    np.testing.assert_array_equal(A, [[[1, -2]], [[1, -3]]])
    np.testing.assert_array_equal(b, [[-2], [-3]])
    assert law("y1 = 2*y2").system_ == law("y1 - y2 - y2 = 0").system_ and law("y1 = y2").system_ != law("y1 = 2*y2").system_
    assert [cone.kind for cone in C.cones()] == ["zero", "nonnegative"]
    np.testing.assert_array_equal(C.cones()[1].offset, [4, 1])


# ---------------------------------------------------------------------- foot points


S = np.array([[0.04, 0.01], [0.01, 0.02]])


def ellipse(c):
    return (c[:, :1] ** 2 / 4 + c[:, 1:] ** 2 - 1), np.stack([c[:, 0] / 2, 2 * c[:, 1]], axis=1)[:, None, :]


def test_foot_points_are_the_nearest_in_the_metric_of_the_noise():
    Y = RIM[5_000::20_000] + rng.multivariate_normal(np.zeros(2), S / 4, 5)
    found, distance, good = feet(ellipse, Y, S)
    assert good.all()
    Q = np.linalg.inv(S)
    for f, d, y in zip(found, distance, Y):
        r = RIM - y
        squares = np.einsum("it,ts,is->i", r, Q, r)
        np.testing.assert_allclose(f, RIM[squares.argmin()], atol=1e-3)
        assert abs(d) == pytest.approx(squares.min() ** 0.5, rel=1e-3)
        assert np.sign(d) == np.sign(y[0] ** 2 / 4 + y[1] ** 2 - 1)
    each, _, _ = feet(ellipse, Y, np.tile(S, (5, 1, 1)))
    np.testing.assert_allclose(each, found)


def test_where_there_is_no_foot_the_label_stands_in():
    """Outside its domain a law has no values."""
    root = lambda c: (np.sqrt(c[:, :1]) - 1, (0.5 / np.sqrt(c[:, :1]))[:, :, None])  # noqa: E731
    found, distance, good = feet(root, np.array([[-2.0], [1.21]]), np.array([[0.04]]))
    assert good.tolist() == [False, True] and found[0, 0] == -2.0 and np.isnan(distance[0])
    assert found[1, 0] == pytest.approx(1.0) and distance[1] == pytest.approx(0.21 / 0.2)


def test_weights_are_inverses_where_there_are_any():
    J = rng.standard_normal((3, 2, 2))
    J[1] = 0.0
    J[2, 0] = np.nan
    W = weights(J, S)
    np.testing.assert_allclose(W[0], np.linalg.inv(J[0] @ S @ J[0].T), rtol=1e-6)
    assert not W[1:].any()
    one = weights(J[:1, :1], S)
    np.testing.assert_allclose(one[0], 1 / (J[0, :1] @ S @ J[0, :1].T))
    twice = weights(np.array([[[1.0, 2.0], [1.0, 2.0]]]), S)
    assert np.isfinite(twice).all()


# ---------------------------------------------------------------------- coefficients


def line_data(n=40, k=0.7, noise=0.1):
    t = rng.uniform(1, 3, n)
    return np.c_[t, k * t] + noise * rng.standard_normal((n, 2))


def open_law(text, names, Y):
    """The pieces that `Equations.fit` uses."""
    C = Equations(text, unknown=names).fit(Y)
    return C, C._estimation.law, C._estimation.data


def test_a_slope_and_its_error_by_the_formulas():
    """y2 = k y1 does not bend: z = y2 - k y1, W = 1 / (J S J'), D = -(the foot's y1)."""
    Y = line_data()
    C, law, data = open_law("y2 = k*y1", ["k"], Y)
    S = np.diag(Y.std(axis=0) ** 2 * (1 + 1e-18))
    np.testing.assert_allclose(data.S, np.tile(S, (40, 1, 1)), rtol=1e-9)
    k = C.unknown_["k"]
    J = np.array([-k, 1.0])
    W = 1 / (J @ S @ J)
    z = Y @ J
    foot = Y - np.outer(z * W, S @ J)
    D = -foot[:, 0]
    assert (D * W * z).sum() == pytest.approx(0, abs=1e-6 * abs(D * W * z).sum())
    A = (D**2 * W).sum()
    q = D * W * z / (1 - W * D**2 / A)
    assert C.unknown_std_["k"] == pytest.approx(np.sqrt((q**2).sum()) / A, rel=1e-6)
    np.testing.assert_allclose(C.unknown_covariance_, [[C.unknown_std_["k"] ** 2]])
    assert C._estimation.found.scale == pytest.approx((W * z**2).sum() / 39, rel=1e-6) and C._estimation.found.converged
    parts = parts_of(law, np.array([k]), data, 0.0)
    sign = np.sign(parts.J[0, 0, 1])  # the equation may be kept as its negative
    np.testing.assert_allclose(sign * parts.z[:, 0], z, atol=1e-9)
    np.testing.assert_allclose(parts.information(), [[A]], rtol=1e-9)
    np.testing.assert_allclose(shares(parts, data)[:, 0], D * W * z, atol=1e-9 * abs(D * W * z).max())


def test_a_radius_is_corrected_for_the_bend():
    """Maximum likelihood has r + s^2 / (2 r): the mean distance; the correction takes s^2 / (2 r) away."""
    t = rng.uniform(0, 2 * np.pi, 4000)
    Y = 2 * np.c_[np.cos(t), np.sin(t)] + 0.2 * rng.standard_normal((4000, 2))
    C = Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, 10)}, noise=0.2).fit(Y)
    mean = np.linalg.norm(Y, axis=1).mean()
    assert mean - C.unknown_["r"] == pytest.approx(0.04 / 4, rel=0.1)
    assert C.unknown_std_["r"] == pytest.approx(0.2 / 4000**0.5, rel=0.1)


@pytest.mark.parametrize(
    ("noise", "expected"),
    [(0.5, np.diag([0.25, 0.25])), ([0.5, 2.0], np.diag([0.25, 4.0])), ([[1.0, 0.2], [0.2, 2.0]], [[1.0, 0.2], [0.2, 2.0]])],
)
def test_noise_that_is_given(noise, expected):
    Y = line_data(12)
    Y[3, 0] = np.nan
    _, law, _ = open_law("y2 = k*y1", ["k"], Y[~np.isnan(Y).any(axis=1)])
    location, spread = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    data = evidence(law, Y, None, noise, location, spread, [0, 1])
    np.testing.assert_allclose(data.S[0], expected + np.diag((1e-9 * spread) ** 2))
    assert data.Y[3, 0] == pytest.approx(location[0]) and data.S[3, 0, 0] == pytest.approx((1e4 * spread[0]) ** 2)
    assert data.S[3, 0, 1] == data.S[3, 1, 0] == 0 and data.S[3, 1, 1] == pytest.approx(np.asarray(expected)[1, 1])
    assert data.blank.tolist() == [i == 3 for i in range(12)] and not data.filled.any() and data.equations == 11 and data.scaled
    part = data.on(np.array([3, 4]))
    assert isinstance(part, Evidence) and part.blank.tolist() == [True, False] and part.Y.shape == (2, 2) and part.X is None
    for wrong in (np.ones(3), [[1.0]], np.nan):
        with pytest.raises(ValueError, match=r"give a number, 2 of them or a \(2, 2\) covariance"):
            evidence(law, Y, None, wrong, location, spread, [0, 1])


def test_unknown_noise_is_in_proportion_to_the_spread():
    Y = line_data(12)
    _, law, _ = open_law("y2 = k*y1", ["k"], Y)
    data = evidence(law, Y, None, None, Y.mean(axis=0), np.array([2.0, 3.0]), [0, 1])
    np.testing.assert_allclose(data.S[5], np.diag([4.0, 9.0]))
    with_inputs = evidence(law, Y, np.arange(12.0)[:, None], None, Y.mean(axis=0), np.ones(2), [0, 1])
    assert not with_inputs.scaled and with_inputs.noise is not None
    few = evidence(law, Y[:7], np.arange(7.0)[:, None], None, Y.mean(axis=0), np.ones(2), [0, 1])
    assert few.noise is None and few.scaled


def test_the_interval_of_a_profile():
    value = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    profile = Profile("k", value, np.array([9.0, 3.0, 0.0, 1.0, 5.0]), {"a": value})
    limit = 3.841458820694124
    low, high = profile.interval()
    assert low == pytest.approx(1 - (limit - 3) / 6) and high == pytest.approx(3 + (limit - 1) / 4)
    low, high = profile.interval(0.5)
    assert low == pytest.approx(2 - 0.454936 / 3, abs=1e-4) and high == pytest.approx(2 + 0.454936, abs=1e-4)
    assert profile.interval(0.9999) == (-np.inf, np.inf)
    assert list(profile.to_frame().columns) == ["k", "statistic", "a"]


def test_a_profile_rises_from_the_estimate():
    Y = line_data()
    C = Equations("y2 = k*y1 + a", unknown=["k", "a"]).fit(Y)
    profile = C.profile("k", points=9)
    k, std = C.unknown_["k"], C.unknown_std_["k"]
    np.testing.assert_allclose(profile.value, k + std * np.linspace(-5, 5, 9))
    assert (
        profile.statistic[4] < 1e-6
        and (np.diff(profile.statistic[4:]) > 0).all()
        and (np.diff(profile.statistic[:5]) < 0).all()
    )
    low, high = profile.interval(0.6827)
    assert (high - low) / 2 == pytest.approx(std, rel=0.3)
    np.testing.assert_allclose(profile.others["a"][4], C.unknown_["a"], rtol=1e-5)
    assert profile.others["a"][0] > profile.others["a"][8], "a smaller slope needs a larger start"
    with pytest.raises(ValueError, match="'b' is not unknown here; choose one of k, a"):
        C.profile("b")


BOX = Unknown(["a", "b", "c"], np.array([-np.inf, 0.0, 2.0]), np.array([np.inf, 1.0, np.inf]), np.full(3, np.nan))


def test_where_the_search_begins():
    starts = np.array(_starts(BOX, np.random.default_rng(0)))
    assert len(starts) == 24 and starts[0].tolist() == [1.0, 0.5, 2.0]
    assert ((starts >= BOX.low) & (starts <= BOX.high)).all()
    assert (starts[:, 0] < 0).any() and (starts[:, 0] > 0).any() and abs(starts[:, 0]).max() > 3
    assert len(np.unique(starts[1:, 1])) == 23 and starts[1:, 1].min() < 0.2 and starts[1:, 1].max() > 0.8
    given = np.array(_starts(BOX._replace(start=np.array([5.0, np.nan, 4.0])), np.random.default_rng(0)))
    assert given[0].tolist() == [5.0, 0.5, 4.0] and (given[:, 0] > 2).all() and (given[:, 0] < 15).all()
    assert 0.2 < np.log(given[1:, 0] / 5).std() < 0.4


def test_steps_stop_at_bounds():
    A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 4.0]])
    theta, free = np.array([0.0, 0.0, 3.0]), np.ones(3, bool)
    step, active = _step(theta, np.array([1.0, 2.0, -8.0]), A, free, BOX)
    assert active.tolist() == [True, False, True], "the second would leave its bounds"
    np.testing.assert_allclose(step, [-0.5, 0.0, 2.0])
    step, active = _step(theta, np.array([1.0, -2.0, -8.0]), A, free, BOX)
    assert active.all()
    np.testing.assert_allclose(step, -np.linalg.solve(A, [1.0, -2.0, -8.0]))
    _, active = _step(np.array([0.0, 1.0, 2.0]), np.array([1.0, -1.0, 1.0]), A, np.array([False, True, True]), BOX)
    assert active.tolist() == [False, False, False]


def test_systems_are_solved_in_their_own_units():
    A, U = np.diag([1e-20, 1e20]) + 0.0, np.array([1e-10, 1e10])
    np.testing.assert_allclose(_solve(A, U), [1e10, 1e-10])
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(_solve(singular, np.array([2.0, 2.0])), [1.0, 1.0])


def test_what_data_cannot_tell_is_named():
    _identified(np.diag([1.0, 1e-20]), ["a", "b"])
    with pytest.raises(ValueError, match="say nothing about b;"):
        _identified(np.diag([1.0, 0.0]), ["a", "b"])
    with pytest.raises(ValueError, match="a and c cannot be told apart"):
        _identified(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), ["a", "b", "c"])


def test_an_estimate_at_a_bound_has_no_error():
    found = Estimate(np.ones(2), np.diag([4.0, -1e-20]), np.array([False, False]), 1.0, True)
    assert found.std.tolist() == [2.0, 0.0]
    assert np.isnan(Estimate(np.ones(1), np.ones((1, 1)), np.array([True]), 1.0, True).std)[0]
    Y = line_data(k=0.7)
    C = Equations("y2 = k*y1", unknown={"k": (0.9, 2.0)}).fit(Y)
    assert C.unknown_["k"] == 0.9 and np.isnan(C.unknown_std_["k"])


def test_scale_counts_equations_and_coefficients(monkeypatch):
    parts = parts_of(OpenLawStub(), np.zeros(1), EVIDENCE, 0.0, geometric=False)
    assert coefficients._scale(parts, EVIDENCE, 1) == pytest.approx(parts.misfit() / 3)
    assert coefficients._scale(parts, EVIDENCE, 4) == pytest.approx(parts.misfit())
    assert coefficients._for_bends(2.0, EVIDENCE) == 2.0 and coefficients._for_bends(0.5, EVIDENCE) == 0.5


class OpenLawStub(OpenLaw):
    """y1 = theta."""

    def __init__(self):
        self.T = 1

    def at(self, theta, X):
        return lambda c: (c - theta, np.ones((len(c), 1, 1)))

    def slopes(self, theta, c, X):
        return -np.ones((len(c), 1, 1))


EVIDENCE = Evidence(
    np.array([[1.0], [2.0], [4.0], [5.0]]), None, np.ones((4, 1, 1)), np.zeros((4, 1), bool), np.zeros(4, bool), 4.0, True, None
)
