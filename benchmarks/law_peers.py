"""What else projects points on laws: scipy's SLSQP, convex QP solvers, and the layers of ENFORCE and KKT-HardNet.

Each peer gets what suits it best: exact derivatives in plain arrays, whole batches where it takes them, one factorisation kept
for all rows where it can. A peer is a function of (points, X) that returns (m, T) answers; None where it does not apply or is
not installed.

ENFORCE (`enforce-nn`) iterates c <- c - J'(JJ')^{-1} g(c) (AdaNP, its weighting option 1, tolerance 1e-6 as by default): a
point of the law near the prediction, not the nearest one. KKT-HardNet (`kkt-hardnet`) solves the KKT equations by damped
Gauss-Newton, default settings.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from law_cases import Array, Law  # benchmarks/law_cases.py, beside this script
from scipy import sparse
from scipy.optimize import minimize

Peer = Callable[[Array, "Array | None"], Array]


def module(name: str) -> Any:
    """A package that may not be installed, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def slsqp(law: Law) -> Callable[..., Array]:
    """SLSQP row by row, from `starts` (m, T): the points themselves unless told otherwise."""
    g, slope = law.functions(np)
    bounds = None if law.bounds is None else [law.bounds] * len(law.center)

    def one(w: Array, x: Array | None, start: Array) -> Array:
        return minimize(
            lambda c: np.sum((c - w) ** 2),
            start,
            jac=lambda c: 2 * (c - w),
            constraints=[{"type": "eq", "fun": lambda c: g(c, x), "jac": lambda c: slope(c, x)}],
            bounds=bounds,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 200},
        ).x

    def solve(points: Array, X: Array | None, starts: Array | None = None) -> Array:
        begin = points if starts is None else starts
        return np.array([one(w, None if X is None else X[i], begin[i]) for i, w in enumerate(points)])

    return solve


def enforce(law: Law) -> Peer | None:
    torch, core, config = map(module, ("torch", "enforce.core.model", "enforce.core.config"))
    if torch is None or core is None or law.bounds is not None:
        return None
    torch.set_num_threads(1)
    T = len(law.center)
    g, slope = law.functions(torch)
    state: dict[str, Any] = {}
    model = core.ENFORCE(
        (torch.zeros(1), torch.ones(1)),
        (torch.zeros(T), torch.ones(T)),
        lambda x, y: g(y, x),
        config=config.ENFORCEConfig(output_neurons=T),
        weighting_option=1,
        jac=lambda y: (lambda J: J if J.ndim == 3 else J.expand(len(y), -1, -1))(slope(y, state["x"])),
    )

    def solve(points: Array, X: Array | None) -> Array:
        y = torch.as_tensor(points)
        x = torch.zeros((len(y), 1), dtype=y.dtype) if X is None else torch.as_tensor(X)
        state["x"] = x
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            model.compute_dc_dy(x, y)
            y = model.project(x, y)
            y, _ = model.ada_np(x, y, tolerance_mode="max", tolerance_value=model.cfg.inference_tolerance)
        return y.numpy()

    return solve


def hardnet(law: Law) -> Peer | None:
    jax, jaxmodel, projection = map(module, ("jax", "jaxmodel", "kkthn.projection"))
    if jax is None or projection is None:
        return None
    jnp = jax.numpy
    T, d = len(law.center), 1 if law.inputs is None else law.inputs(1, np.random.default_rng(0)).shape[1]
    g, _ = law.functions(jnp)
    builder = (
        jaxmodel.HighLevelNLPBuilder(dtype=jnp.float64)
        .add_parameter("x", d)
        .add_variable("y", T)
        .set_objective(lambda params, variables: jnp.sum(variables["y"] ** 2))
        .add_nonlinear_equality(lambda params, variables: g(variables["y"], params["x"]), name="law")
    )
    if law.bounds is not None:
        low, high = law.bounds
        builder = builder.add_nonlinear_inequality(
            lambda params, variables: jnp.concatenate([low - variables["y"], variables["y"] - high]), name="bounds"
        )
    model = builder.build(example_params={"x": jnp.zeros((d,))}, jit_compile=True)
    layer = projection.make_projection_layer(model)

    def solve(points: Array, X: Array | None) -> Array:
        x = jnp.zeros((len(points), d)) if X is None else jnp.asarray(X)
        return np.asarray(layer.project(x, jnp.asarray(points)))

    return solve


# ------------------------------------------------------------------ convex quadratic programmes, row by row


def clarabel(law: Law) -> Peer | None:
    library = module("clarabel")
    if library is None or law.matrix is None or law.bounds is None:
        return None
    A, b = law.matrix
    P, T = A.shape
    low, high = law.bounds
    rows = sparse.csc_matrix(np.concatenate([A, -np.eye(T), np.eye(T)]))
    right = np.concatenate([b, np.full(T, -low), np.full(T, high)])
    cones = [library.ZeroConeT(P), library.NonnegativeConeT(2 * T)]
    settings = library.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False  # else the data may not be updated
    solver = library.DefaultSolver(sparse.identity(T, format="csc"), np.zeros(T), rows, right, cones, settings)

    def solve(points: Array, X: Array | None) -> Array:
        found = []
        for w in points:
            solver.update(q=-w)
            found.append(solver.solve().x)
        return np.array(found)

    return solve


def piqp(law: Law) -> Peer | None:
    library = module("piqp")
    if library is None or law.matrix is None or law.bounds is None:
        return None
    A, b = law.matrix
    T = A.shape[1]
    low, high = (np.full(T, bound) for bound in law.bounds)
    solver = library.DenseSolver() if T <= 40 else library.SparseSolver()
    solver.settings.verbose = False
    as_given = np.asarray if T <= 40 else sparse.csc_matrix
    solver.setup(as_given(np.eye(T)), np.zeros(T), as_given(A), b, None, None, None, low, high)

    def solve(points: Array, X: Array | None) -> Array:
        found = []
        for w in points:
            solver.update(c=-w)
            solver.solve()
            found.append(np.array(solver.result.x))
        return np.array(found)

    return solve


def proxqp(law: Law) -> Peer | None:
    library = module("proxsuite")
    if library is None or law.matrix is None or law.bounds is None:
        return None
    A, b = law.matrix
    P, T = A.shape
    low, high = (np.full(T, bound) for bound in law.bounds)
    qp = library.proxqp.dense.QP(T, P, 0, True)
    qp.settings.eps_abs = 1e-9
    qp.init(np.eye(T), np.zeros(T), A, b, None, None, None, low, high)

    def solve(points: Array, X: Array | None) -> Array:
        found = []
        for w in points:
            qp.update(g=-w)
            qp.solve()
            found.append(np.array(qp.results.x))
        return np.array(found)

    return solve


PEERS: dict[str, Callable[[Law], Peer | None]] = {
    "ENFORCE": enforce,
    "KKT-HN": hardnet,
    "clarabel": clarabel,
    "piqp": piqp,
    "proxqp": proxqp,
}
