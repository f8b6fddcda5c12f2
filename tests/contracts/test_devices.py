"""Device in = device out, dtype in = dtype out: the numerical core on the second device of `array_api_strict`.

Its arrays refuse to meet an array of another device, so a creation that names none fails here, without a GPU.
"""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.base import clone

from contracts.test_kernels import ARRAY_API as KERNELS
from contracts.test_newton import COMPOSED
from contracts.test_sets import SETS
from contracts.test_simple_decoders import PAIRS
from contracts.test_surrogates import FACTORS, LAM, ROWS, XNEW, W, X, Z, convert, make_sample
from lawful import Absolute, Equations, Huber, KernelRidge, PointCloud, Posterior, Product, Rankings, Sphere, Wiener
from lawful._array import device_of, put_rows, segment_sum, solve_lower, take_rows, to_numpy
from lawful.decoders import decode
from lawful.kernels import Gaussian, Linear
from lawful.losses.base import separable_objective
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.tasks import Tasks

SECOND = strict.Device("device1")
METHODS = ("contains", "residual", "nearest", "equality", "equality_jacobian", "inequality", "inequality_jacobian")
METHODS += ("curvature", "project", "project_form", "tangent", "retract")
LAWS = (
    SETS | COMPOSED | {"rankings": (Rankings(), 6), "function": (Equations(gamma=lambda c: c[:, 0] ** 2 + c[:, 1] ** 2 - 1), 2)}
)


def second(x, dtype=np.float64):
    return strict.asarray(np.asarray(x, dtype), device=SECOND)


def is_second(x):
    return x.__array_namespace__().__name__ == "array_api_strict" and device_of(x) == SECOND


def arguments(C, T, m=5):
    """For every method of a set that it has, the arrays to call it with."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.2, 2.0, (m, T)), rng.standard_normal((m, T))
    B = rng.standard_normal((m, T, T))
    on = C.sample(m, random_state=0)
    two = {"project": (b, a), "project_form": (B @ B.transpose(0, 2, 1), b), "tangent": (on, b), "retract": (on, 0.1 * b)}
    if hasattr(C, "curvature"):
        rows = sum(getattr(C, kind)(b).shape[1] for kind in ("equality", "inequality") if hasattr(C, kind))
        two["curvature"] = (b, rng.standard_normal((m, rows)))
    return {method: two.get(method, (b,)) for method in METHODS if hasattr(C, method)}


def fitted(C, T):
    return clone(C).fit(np.sign(np.random.default_rng(1).standard_normal((20, T))))  # rankings take nothing but signs


@pytest.mark.parametrize("name", LAWS)
def test_sets(name):
    C, T = LAWS[name]
    C = fitted(C, T)
    for method, args in arguments(C, T).items():
        found = getattr(C, method)(*map(second, args))
        assert is_second(found), method
        np.testing.assert_allclose(to_numpy(found), getattr(C, method)(*args), atol=1e-9, err_msg=method)


@pytest.mark.parametrize("name", LAWS)
def test_sets_keep_single_precision(name):
    C, T = LAWS[name]
    C = fitted(C, T)
    for method, args in arguments(C, T).items():
        args = [x.astype(np.float32) for x in args]
        assert getattr(C, method)(*args).dtype == (np.bool_ if method == "contains" else np.float32), method


def objectives(T, make, m=6):
    rng = np.random.default_rng(2)
    a, w = rng.uniform(0.2, 2.0, (m, T)), rng.standard_normal((m, T))
    B = rng.standard_normal((m, T, T))
    scores, atoms = [rng.uniform(0.05, 1.0, (m, 4)) for _ in range(T)], [rng.standard_normal(4) for _ in range(T)]
    return {
        "quadratic": Quadratic(make(a), make(a * w)),
        "form": QuadraticForm(make(B @ B.transpose(0, 2, 1) + np.eye(T)), make(w)),
        "smooth": separable_objective([Huber()] * T, [make(s) for s in scores], atoms),
        "absolute": separable_objective([Absolute()] * T, [make(s) for s in scores], atoms),
    }


@pytest.mark.parametrize("kind", ["quadratic", "form", "smooth", "absolute"])
def test_objectives(kind):
    F, G = objectives(3, second)[kind], objectives(3, np.asarray)[kind]
    c = np.random.default_rng(3).standard_normal((6, 3))
    for method in ("value", "gradient", "curvature", "hessian", "costs"):
        if hasattr(F, method):
            found = getattr(F, method)(second(c))
            assert is_second(found), method
            np.testing.assert_allclose(to_numpy(found), getattr(G, method)(c), atol=1e-12, err_msg=method)
    for name in ("center", "doubtful", "unit", "mass"):
        assert not hasattr(F, name) or is_second(getattr(F, name)), name
    if hasattr(F, "table"):
        assert is_second(F.table(1, second(c[:, 1])))
    whole = F if kind != "form" else QuadraticForm(second(np.eye(3)[None].repeat(6, 0)), second(c))
    for part in (whole.tasks([2, 0]), F.rows(strict.asarray([4, 1], device=SECOND))):
        assert is_second(part.center) and is_second(part.doubtful) and is_second(part.value(part.center))


def same_decoding(F, G, C, solve=decode):
    d, e = solve(F, C), solve(G, C)
    for field in ("c", "value", "residual", "code", "iterations", "margin"):
        assert is_second(getattr(d, field)), field
    for field in ("c", "value", "residual"):
        np.testing.assert_allclose(to_numpy(getattr(d, field)), getattr(e, field), atol=1e-6, err_msg=field)
    np.testing.assert_array_equal(d.status, e.status)


@pytest.mark.parametrize("C, T", COMPOSED.values(), ids=COMPOSED.keys())
def test_decoding_of_equations_and_compositions(C, T):
    C = fitted(C, T)
    same_decoding(objectives(T, second)["quadratic"], objectives(T, np.asarray)["quadratic"], C)


@pytest.mark.parametrize("name", [name for name in LAWS if name != "function"])  # differences need double precision
def test_decoding_keeps_single_precision(name):
    C, T = LAWS[name]
    C = fitted(C, T)
    for kind in ("quadratic", "form") if name != "rankings" else ("quadratic",):  # orders know no full metric
        d = decode(objectives(T, lambda x: np.asarray(x, np.float32))[kind], C)
        for field in ("c", "value", "residual", "margin"):
            assert getattr(d, field).dtype == np.float32, field


@pytest.mark.parametrize("decoder, make, C, T", PAIRS, ids=lambda p: getattr(p, "__name__", str(p).split(" object")[0]))
def test_simple_decoders(decoder, make, C, T):
    class Second:
        asarray = staticmethod(second)

    C = fitted(C, T)
    same_decoding(make(7, T, xp=Second), make(7, T), C, lambda F, C: decoder.solve(F, C, None))


@pytest.mark.parametrize("kind, law", [("form", "equations"), ("smooth", "equations"), ("absolute", "equations")])
def test_other_losses_on_equations(kind, law):
    C, T = COMPOSED[law]
    C = fitted(C, T)
    same_decoding(objectives(T, second)[kind], objectives(T, np.asarray)[kind], C)


@pytest.mark.parametrize("decoder", [Posterior(), Posterior(project=True), Wiener(), Wiener(project=True)], ids=repr)
def test_posterior(decoder):
    cloud = PointCloud(np.random.default_rng(0).standard_normal((30, 2)))
    for C in (cloud, Product([(Sphere(), [0, 1])]), Equations("y1**2 + y2**2 = 1")):
        C = fitted(C, 2)
        F, G = objectives(2, second)["quadratic"], objectives(2, np.asarray)["quadratic"]
        same_decoding(F, G, C, lambda F, C: decoder.solve(F, C, decode))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    kernel = KERNELS[name]
    rows = strict.asarray([3, 0], device=SECOND)
    for found in (kernel(second(A), second(B)), kernel.diag(second(A)), kernel.gram(second(A), rows)):
        assert is_second(found)
    np.testing.assert_allclose(to_numpy(kernel(second(A), second(B))), kernel(A, B), rtol=1e-12)
    single = A.astype(np.float32), B.astype(np.float32)
    assert kernel(*single).dtype == kernel.diag(single[0]).dtype == np.float32


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name):
    class Second:
        asarray = staticmethod(second)

    sample = make_sample()
    here, there = FACTORS[name](sample, True), FACTORS[name](convert(sample, Second), True)
    for method, of in (("loo", Z), ("scores", XNEW), ("variance", XNEW)):
        found = getattr(there, method)(second(of), LAM)
        assert is_second(found), method
        np.testing.assert_allclose(to_numpy(found), getattr(here, method)(of, LAM), atol=1e-9)
    found = there.predict(second(XNEW), there.solve(second(Z), LAM))
    assert is_second(found)
    np.testing.assert_allclose(to_numpy(found), here.predict(XNEW, here.solve(Z, LAM)), atol=1e-9)


@pytest.mark.parametrize("ridge", [KernelRidge(Gaussian(2.0), lam=0.1), KernelRidge(Linear()), KernelRidge()], ids=repr)
def test_kernel_ridge(ridge):
    """Tuned and fitted on one device as on the other."""

    def fit(make):
        return clone(ridge).fit_tasks(Tasks(make(X), [make(Z[:, 0]), make(Z[4:, 1])], [ROWS, ROWS[4:]], [make(W), make(W[4:])]))

    here, there = fit(np.asarray), fit(second)
    for found, expected in zip(there.predict_tasks(second(XNEW)), here.predict_tasks(XNEW)):
        assert is_second(found)
        np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)
    assert all(map(is_second, there.residuals())) and is_second(there.variance(second(XNEW)))


def test_what_the_standard_lacks():
    x, idx = np.arange(12.0).reshape(4, 3), np.array([2, 0])
    there = strict.asarray(idx, device=SECOND)
    found = put_rows(second(x), there, second(-x[:2]))
    assert is_second(found) and is_second(take_rows(second(x), there))
    np.testing.assert_array_equal(to_numpy(found), put_rows(x, idx, -x[:2]))
    found = segment_sum(second(x), np.array([1, 0, 1, 1]), 2)
    assert is_second(found)
    np.testing.assert_array_equal(to_numpy(found), [x[1], x[[0, 2, 3]].sum(axis=0)])
    L = np.tril(np.ones((3, 3)))
    assert is_second(solve_lower(second(L), second(np.eye(3)), transpose=True))
    with pytest.raises(TypeError, match="nonsense"):
        to_numpy(Refusing())


class Refusing:
    """No array of any library: the reason it gives is the one that is seen."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("nonsense")
