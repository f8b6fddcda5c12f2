"""Laws learned from data: does `LearnedEquations` find the right ones, and nothing where there is nothing?

    python benchmarks/discover.py [--draws 40] [--controls 200] [--seed 10000] [--data FOLDER] [--parts single controls ...]

FOLDER holds distillation/ and sarcos/; without it a part of `surfaces` and all of `distillation` and `time` are left out.

single        support exactly right, and the error of the coefficients, |th/|th| - th*/|th*||, with the noise given and not
controls      clouds without a law: how often one is found, and how often a degree is refused
regression    the regressor with the learned law beside the one with the true law, the one that is told the terms and estimates
              their coefficients, and the one without. Each of k coefficients that must be estimated costs s^2 / n of squared
              error whoever estimates it: where they are not whole numbers, "told the terms" is the best that data allow
surfaces      `LocalTangent` beside the nearest point of the cloud: held-out distance, on a noisy Swiss roll and on Sarcos
distillation  the column, inputs included: which of the listed laws come out verbatim, and whether the others follow
time          of `discover` on 1600 rows of it as they are
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from lawful import ConstrainedRegressor, Equations, LearnedEquations, LocalTangent, Reals, discover
from lawful.datasets import load_distillation, load_sarcos, make_curve

TILT = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
LISTED = {  # the laws of the column without y5, which is zero, and the reflux ratio
    "x1 + x2 = y1 + y2": {"x1", "x2", "y1", "y2"},
    "0.697616946*x1 = y1*y3 + y2*y6": {"x1", "y1*y3", "y2*y6"},
    "0.302383054*x1 = y1*y4 + y2*y7": {"x1", "y1*y4", "y2*y7"},
    "y3 + y4 = 1": {"y3", "y4", "1"},
    "y6 + y7 + y8 = 1": {"y6", "y7", "y8", "1"},
    "y9 = y1*x3": {"y9", "y1*x3"},
}


def circle(rng, n):
    t = rng.uniform(-np.pi, np.pi, n)
    return np.c_[np.cos(t), np.sin(t)]


def lemniscate(rng, n):
    t = rng.uniform(-np.pi, np.pi, n)
    return np.c_[np.sin(t), np.sin(2 * t) / 2]


def sphere(rng, n):
    v = rng.standard_normal((n, 5))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def ellipse(rng, n):
    return circle(rng, n) * [1.5, 0.7] @ TILT.T + [0.6, -0.4]


def ellipse_law():
    """Coefficients of |diag(1.5, 0.7)^-1 R' (y - c)|^2 = 1, by monomial."""
    A, c = TILT @ np.diag([1.5**-2, 0.7**-2]) @ TILT.T, np.array([0.6, -0.4])
    linear = -2 * A @ c
    return {
        "y1**2": A[0, 0],
        "y1*y2": 2 * A[0, 1],
        "y2**2": A[1, 1],
        "y1": linear[0],
        "y2": linear[1],
        "1": c @ A @ c - 1,
    }


LAWS = {
    circle: {"y1**2": 1.0, "y2**2": 1.0, "1": -1.0},
    lemniscate: {"y1**4": 1.0, "y1**2": -1.0, "y2**2": 1.0},
    sphere: {f"y{t}**2": 1.0 for t in range(1, 6)} | {"1": -1.0},
    ellipse: ellipse_law(),
}
SINGLE = [
    (circle, 100, 0.02),
    (circle, 200, 0.05),
    (lemniscate, 500, 0.02),
    (sphere, 200, 0.05),
    (sphere, 500, 0.02),
    (ellipse, 200, 0.05),
    (ellipse, 100, 0.02),
]
CONTROLS = {  # name: draw, n, noise
    "square": (lambda rng, n: rng.uniform(-1, 1, (n, 2)), 200, 0.05),
    "square, noisier": (lambda rng, n: rng.uniform(-1, 1, (n, 2)), 500, 0.1),
    "Gaussian, 5-D": (lambda rng, n: rng.standard_normal((n, 5)), 200, 0.05),
    "Gaussian, correlated 0.8": (lambda rng, n: rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n), 300, 0.05),
    "two clumps": (lambda rng, n: rng.standard_normal((n, 3)) * 0.3 + rng.choice([-1, 1], (n, 1)), 300, 0.05),
}


def error(law, truth):
    """Angle-like distance between coefficients; of the support as it was found."""
    names = sorted(set(law.terms) | set(truth))
    found = np.array([dict(zip(law.terms, law.coefficients)).get(name, 0.0) for name in names])
    right = np.array([truth.get(name, 0.0) for name in names])
    found, right = found / np.linalg.norm(found), right / np.linalg.norm(right)
    return min(np.linalg.norm(found - right), np.linalg.norm(found + right))


def single(draws, seed):
    print(
        f"single laws, {draws} draws: exact support / error of the coefficients, median [90 %], as fitted; tidy; seconds a fit"
    )
    for shape, n, noise in SINGLE:
        cells = []
        for given in (noise, None):
            exact, raw, tidy, start = 0, [], [], time.perf_counter()
            for k in range(draws):
                rng = np.random.default_rng(seed + k)
                Y = shape(rng, n)
                Y = Y + noise * rng.standard_normal(Y.shape)
                C = LearnedEquations(noise=given).fit(Y)
                plain = LearnedEquations(noise=given, tidy=False).fit(Y)
                exact += len(C.laws_) == 1 and set(C.laws_[0].terms) == set(LAWS[shape])
                raw += [error(plain.laws_[0], LAWS[shape])] if plain.laws_ else []
                tidy += [error(C.laws_[0], LAWS[shape])] if C.laws_ else []
            took = (time.perf_counter() - start) / draws / 2
            a, b = np.quantile(raw, [0.5, 0.9]) if raw else (np.nan, np.nan)
            c, d = np.quantile(tidy, [0.5, 0.9]) if tidy else (np.nan, np.nan)
            cells.append(f"{exact:3d}/{draws}  {a:.4f} [{b:.4f}]  {c:.4f} [{d:.4f}]  {took:.2f} s")
        print(f"  {shape.__name__:<11}{n:>4} {noise:<5} noise given {cells[0]}   not given {cells[1]}", flush=True)


def controls(draws, seed):
    print(f"\nclouds without a law, {draws} draws: laws found (a degree refused), noise given; not given")
    for name, (draw, n, noise) in CONTROLS.items():
        cells = []
        for given in (noise, None):
            false = refused = 0
            for k in range(draws):
                C = LearnedEquations(noise=given).fit(draw(np.random.default_rng(seed + k), n))
                false += bool(C.laws_)
                refused += any("refused" in remark for remark in C.remarks_)
            cells.append(f"{false:3d} ({refused})")
        print(f"  {name:<26}{cells[0]:>12}{cells[1]:>12}", flush=True)


def curve(name, n, noise, seed):
    """X, Y, X_test, Y_test, the law, and the law with its coefficients unknown."""
    if name == "oval":  # no whole numbers
        rng = np.random.default_rng(seed)
        x, x_test = rng.uniform(-np.pi, np.pi, (n, 1)), rng.uniform(-np.pi, np.pi, (1000, 1))
        Y, Y_test = (np.c_[1.37 * np.cos(t), 0.83 * np.sin(t)] for t in (x, x_test))
        law = f"y1**2 + {(1.37 / 0.83) ** 2!r}*y2**2 = {1.37**2!r}"
        return x, Y + noise * rng.standard_normal(Y.shape), x_test, Y_test, law, "y1**2 + a*y2**2 = b"
    data = make_curve(name, n, noise=noise, random_state=seed)
    free = {"circle": "y1**2 + a*y2**2 = b", "lemniscate": "y1**4 = a*y1**2 + b*y2**2"}[name]
    return data.X, data.Y, data.X_test, data.Y_test, data.equation, free


def regression(draws, seed):
    print(
        f"\nmean squared error of the regressor, {draws} draws: median ratio to that with the true law [90 %], ratio of means"
    )
    for name, n, noise in (("circle", 100, 0.02), ("circle", 200, 0.05), ("lemniscate", 500, 0.02), ("oval", 200, 0.05)):
        rows = []
        for k in range(draws):
            X, Y, X_test, Y_test, law, free = curve(name, n, noise, seed + k)
            told = Equations(free, unknown=["a", "b"])
            sets = (Equations(law), LearnedEquations(), LearnedEquations(tidy=False), told, Reals())
            models = [ConstrainedRegressor(C).fit(X, Y) for C in sets]
            rows.append([np.mean((m.predict(X_test) - Y_test) ** 2) for m in models])
        ratio = np.array(rows)[:, 1:] / np.array(rows)[:, :1]
        pooled = np.mean(rows, axis=0)[1:] / np.mean(rows, axis=0)[0]
        cells = [
            f"{what} {m:.3f} [{q:.2f}] {p:.3f}"
            for what, m, q, p in zip(
                ("learned", "learned, not tidy", "told the terms", "no law"),
                np.median(ratio, axis=0),
                np.quantile(ratio, 0.9, axis=0),
                pooled,
            )
        ]
        print(f"  {name:<11}{n:>4} {noise:<5}" + ";  ".join(cells), flush=True)


def implied(C, equation, X, Y):
    """The share of the gradient of a listed law outside the span of the learned ones, on the clean rows, median."""
    law = Equations(equation).fit(Y, X).at(X)
    spread = np.where(Y.std(axis=0) > 1e-12, Y.std(axis=0), 0.0)
    own = law.equality_jacobian(Y)[:, 0] * spread
    J = C.at(X).equality_jacobian(Y) * spread
    J = J / np.linalg.norm(J, axis=2, keepdims=True)
    rest = [g - Ji.T @ np.linalg.lstsq(Ji.T, g, rcond=1e-8)[0] for g, Ji in zip(own, J)]
    return float(np.median(np.linalg.norm(rest, axis=1) / np.linalg.norm(own, axis=1)))


def plain_terms(law):
    return {
        re.sub(r"\b(\w+)\*(\w+)\b", lambda m: "*".join(sorted(m.groups(), key=lambda v: (v[0] == "x", v))), t)
        for t in law.terms
    }


def distillation(data, seed):
    X, Y = np.r_[data.X, data.X_test], np.r_[data.Y, data.Y_test]
    Y[:, 4] = 0.0  # rounding noise of 1e-20
    print(
        f"\ndistillation, inputs included, {len(LISTED)} listed laws: verbatim, implied (largest share of a gradient outside)"
    )
    for n, noise, given in [
        (len(X), 0.0, True),
        (len(X), 1e-4, True),
        (len(X), 1e-3, True),
        (500, 1e-3, True),
        (len(X), 1e-2, True),
        (500, 1e-2, True),
        (1600, 0.0, False),
        (1600, 1e-3, False),
        (1600, 1e-2, False),
    ]:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(X))[:n]
        sigma = noise * Y.std(axis=0)
        start = time.perf_counter()
        noisy = Y[rows] + sigma * rng.standard_normal((n, 9))
        table = discover(X[rows], noisy, noise=sigma if given else None, degree=2)
        took = time.perf_counter() - start
        verbatim = [text for text, terms in LISTED.items() if any(plain_terms(law) == terms for law in table)]
        some = rng.permutation(len(X))[:200]
        off = [implied(table.constraint, text, X[some], Y[some]) for text in LISTED] if len(table) else [np.nan]
        print(
            f"  n {n:<5} noise/sd {noise:<6g} {'given' if given else 'not given':<10}{len(table)} laws, "
            f"{len(verbatim)} verbatim, {sum(np.array(off) <= 0.01)} implied ({max(off):.1e}), {took:.1f} s"
        )
        for law in table:
            print(f"      {law}")


def swiss_roll(rng, n):
    u = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    return np.c_[u * np.cos(u), 21 * rng.uniform(size=n), u * np.sin(u)]


def surface(name, cloud, test):
    """Root mean square distance of held-out points from what they are projected to, in units of the spread."""
    unit = cloud.std(axis=0)
    start = time.perf_counter()
    C = LocalTangent().fit(cloud)
    middle = time.perf_counter()
    off = np.sqrt(np.mean(((C.nearest(test) - test) / unit) ** 2))
    took = time.perf_counter() - middle
    nearest = cloud[cKDTree(cloud / unit).query(test / unit)[1]]
    rival = np.sqrt(np.mean(((nearest - test) / unit) ** 2))
    print(
        f"  {name:<36}dimension {C.dimension_}, {off:.4f} against {rival:.4f}: {off / rival:.2f}"
        f"   (fit {middle - start:.1f} s, {len(test)} rows {took:.1f} s)",
        flush=True,
    )


def surfaces(seed, data):
    print(
        "\nLocalTangent, distance of held-out points (without noise) from their projection; nearest point of the cloud; ratio"
    )
    for n, noise in ((500, 0.5), (1000, 0.3), (2000, 0.5)):
        rng = np.random.default_rng(seed)
        cloud = swiss_roll(rng, n)
        surface(f"Swiss roll, {n} points, noise {noise}", cloud + noise * rng.standard_normal((n, 3)), swiss_roll(rng, 1000))
    if data:
        Y = load_sarcos(data).Y
        rows = np.random.default_rng(seed).permutation(len(Y))
        surface("Sarcos, 2000 torques", Y[rows[:2000]], Y[rows[2000:2500]])


def clock(data, seed):
    rows = np.random.default_rng(seed).permutation(len(data.X))[:1600]
    start = time.perf_counter(), time.process_time()
    table = discover(data.X[rows], data.Y[rows])
    took = time.perf_counter() - start[0], time.process_time() - start[1]
    print(f"\ndiscover on the column, {len(rows)} rows: {took[0]:.1f} s, {took[1]:.1f} s of processors, {len(table)} laws")


PARTS = ("single", "controls", "regression", "surfaces", "distillation", "time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--controls", type=int, default=200)
    parser.add_argument("--seed", type=int, default=10_000)
    parser.add_argument("--data", help="folder that holds distillation/ and sarcos/")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    work = {
        "single": lambda: single(options.draws, options.seed),
        "controls": lambda: controls(options.controls, options.seed),
        "regression": lambda: regression(max(options.draws // 2, 1), options.seed),
        "surfaces": lambda: surfaces(options.seed, options.data),
    }
    if options.data:
        column = load_distillation(Path(options.data) / "distillation")
        work |= {"distillation": lambda: distillation(column, options.seed), "time": lambda: clock(column, options.seed)}
    for part in options.parts:
        if part in work:
            work[part]()


if __name__ == "__main__":
    main()
