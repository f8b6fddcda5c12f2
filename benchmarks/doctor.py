"""`lawful.doctor` on planted defects, on sound data, and how often it cries wolf.

    python benchmarks/doctor.py [--seed 0] [--draws 400] [--data FOLDER] [--parts defects sound calm power time]

defects   20 data sets, each with one thing wrong: is it named?
sound     20 data sets with nothing wrong: is there no alarm?
calm      share of sound draws with an alarm at nominal 5 %, for several sizes and kinds of noise
power     share of draws in which a coefficient that is 5 % wrong is found (circle, n = 200, noise 0.05)
time      on the distillation column (1600 rows, 9 outputs, six equations), if FOLDER/distillation is there
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lawful import Affine, Box, Equations, Intersection, Simplex, Sphere, doctor
from lawful.datasets import load_distillation

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


class Case(NamedTuple):
    """kind: the words of `Finding.kind` that name the defect, none for a sound case; subject: part of what it must speak of."""

    name: str
    draw: Draw
    law: Any
    kinds: tuple[str, ...] = ()
    subject: str = ""


def circle(n: int = 200, noise: float = 0.05, how: str = "") -> Draw:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(0, 1, (n, 1))
        Y = np.c_[np.cos(6 * x), np.sin(6 * x)]
        e = rng.standard_t(3, Y.shape) / np.sqrt(3) if how == "t3" else rng.standard_normal(Y.shape)
        e = e * np.where(x < 0.5, 0.65, 1.3) if how == "uneven" else e
        Y = Y + noise * e
        if how == "gaps":
            Y = np.where(rng.random(Y.shape) < 0.15, np.nan, Y)
        return x, Y

    return draw


def mixer(n: int = 200, noise: float = 0.02) -> Draw:
    """Three streams, one of them the sum of the others, and a product: y3 = y1 + y2, y4 = y1 y2."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(-1, 1, (n, 2))
        y1, y2 = 2 + np.sin(2 * x[:, 0]), 1.5 + 0.5 * x[:, 1] ** 2 + 0.3 * x[:, 0]
        Y = np.c_[y1, y2, y1 + y2, y1 * y2]
        return x, Y + noise * rng.standard_normal(Y.shape)

    return draw


def changed(draw: Draw, change: Callable[[np.random.Generator, np.ndarray, np.ndarray], None]) -> Draw:
    def new(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, Y = draw(rng)
        change(rng, X, Y)
        return X, Y

    return new


def column(t: int, factor: float = 1.0, offset: float = 0.0) -> Callable:
    def change(rng: np.random.Generator, X: np.ndarray, Y: np.ndarray) -> None:
        Y[:, t] = factor * Y[:, t] + offset

    return change


def swap(t: int, s: int) -> Callable:
    def change(rng: np.random.Generator, X: np.ndarray, Y: np.ndarray) -> None:
        Y[:, [t, s]] = Y[:, [s, t]]

    return change


def spoil(count: int, by: float) -> Callable:
    def change(rng: np.random.Generator, X: np.ndarray, Y: np.ndarray) -> None:
        rows = rng.choice(len(Y), count, replace=False)
        Y[rows, 0] += by * rng.choice([-1, 1], count)

    return change


def half(rng: np.random.Generator, X: np.ndarray, Y: np.ndarray) -> None:
    Y[:, 2] += np.where(X[:, 0] > 0, 0.4, 0.0)


def lemniscate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0, 1, (200, 1))
    t = 2 * np.pi * x[:, 0]
    Y = np.c_[np.cos(t), np.sin(t) * np.cos(t)]
    return x, Y + 0.01 * rng.standard_normal(Y.shape)


SUM, PRODUCT, ROUND = "y3 = y1 + y2", "y4 = y1*y2", "y1**2 + y2**2 = 1"
DEFECTS = [
    Case("wrong right side", circle(), Equations("y1**2 + y2**2 = 1.1"), ("equation",), "1.1"),
    Case("wrong coefficient, circle", circle(), Equations("1.15*y1**2 + y2**2 = 1"), ("equation",), "1.15"),
    Case("wrong coefficient, sum", mixer(), Equations([SUM, "y4 = 0.97*y1*y2"]), ("equation",), "0.97"),
    Case("wrong coefficient, one of two", mixer(), Equations(["y3 = y1 + 1.03*y2", PRODUCT]), ("equation",), "1.03"),
    Case("wrong sign in the equation", mixer(), Equations(["y3 = y1 - y2", PRODUCT]), ("sign",), "y1 - y2"),
    Case("wrong sign of an output", changed(mixer(), column(2, -1.0)), Equations([SUM, PRODUCT]), ("sign",), "y1 + y2"),
    Case("redundant, a multiple", mixer(), Equations([SUM, PRODUCT, "2*y3 = 2*y1 + 2*y2"]), ("redundant",), "2*y3"),
    Case("redundant, a combination", mixer(), Equations([SUM, PRODUCT, "y3 + y4 = y1 + y2 + y1*y2"]), ("redundant",), "y3"),
    Case("contradictory", mixer(), Equations([SUM, "y3 = y1 + y2 + 0.5"]), ("contradiction",), "0.5"),
    Case("unit, 1000", changed(mixer(), column(3, 1000.0)), Equations([SUM, PRODUCT]), ("unit",), "y1*y2"),
    Case("unit, 60", changed(mixer(), column(2, 1 / 60)), Equations([SUM, PRODUCT]), ("unit",), "y1 + y2"),
    Case("percent", changed(mixer(), column(2, 100.0)), Equations([SUM, PRODUCT]), ("unit",), "y1 + y2"),
    Case("unused output", mixer(), Equations(SUM), ("unused",), "y4"),
    Case("singular crossing", lemniscate, Equations("y1**4 = y1**2 - y2**2"), ("singular",)),
    Case("columns exchanged", changed(mixer(), swap(2, 3)), Equations([SUM, PRODUCT]), ("swap",)),
    Case("three outliers", changed(mixer(), spoil(3, 2.0)), Equations([SUM, PRODUCT]), ("outliers",)),
    Case("one outlier on a circle", changed(circle(), spoil(1, 1.0)), Equations(ROUND), ("outliers",)),
    Case("biased sensor", changed(circle(), column(0, 1.0, 0.1)), Equations(ROUND), ("bias",)),
    Case("holds on half of the data", changed(mixer(), half), Equations([SUM, PRODUCT]), ("part",), "y1 + y2"),
    Case(
        "bound that labels break",
        mixer(),
        Intersection([Equations([SUM, PRODUCT]), Box(-np.inf, [2.5, 9, 9, 9])]),
        ("inequality",),
    ),
]


def simplex(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1, 1, (150, 2))
    e = np.exp(np.c_[x[:, 0], x[:, 1], 0 * x[:, 0]])
    p = e / e.sum(axis=1, keepdims=True)
    z = 0.02 * rng.standard_normal(p.shape)
    return x, p + z - z.mean(axis=1, keepdims=True)


def sphere(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1, 1, (250, 2))
    u = np.c_[np.cos(2 * x[:, 0]) * np.cos(x[:, 1]), np.sin(2 * x[:, 0]) * np.cos(x[:, 1]), np.sin(x[:, 1])]
    return x, u + 0.03 * rng.standard_normal(u.shape)


SOUND = [
    *(Case(f"circle, {n} rows, noise {s}", circle(n, s), Equations(ROUND)) for n in (40, 100, 300, 1000) for s in (0.02, 0.05)),
    *(Case(f"circle, {how}", circle(200, 0.05, how), Equations(ROUND)) for how in ("t3", "uneven", "gaps")),
    *(Case(f"mixer, noise {s}", mixer(200, s), Equations([SUM, PRODUCT])) for s in (0.005, 0.02, 0.1)),
    Case("mixer, 60 rows", mixer(60), Equations([SUM, PRODUCT])),
    Case("mixer, a bound far away", mixer(), Intersection([Equations([SUM, PRODUCT]), Box(0, 20)])),
    Case("sum alone, as a matrix", mixer(), Affine(np.array([[1.0, 1.0, -1.0, 0.0]]), np.zeros(1))),
    Case("composition", simplex, Simplex()),
    Case("sphere", sphere, Sphere()),
    Case("lemniscate", lemniscate, Equations("y1**4 = y1**2 - y2**2")),
]


def named(case: Case, found: Any) -> bool:
    """Whether a finding of the right kind speaks of the right thing."""
    return any(f.kind in case.kinds and case.subject in f.subject for f in found.findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--data", type=str, help="a folder with distillation/")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for part, run in PARTS.items():
        if part in options.parts:
            run(options)


def defects(options: argparse.Namespace) -> None:
    hits = 0
    for k, case in enumerate(DEFECTS):
        X, Y = case.draw(np.random.default_rng([options.seed, k]))
        found = doctor(X, Y, case.law)
        hits += (good := named(case, found))
        print(f"{'named' if good else 'MISSED':<8}{case.name:<32}{'; '.join(str(f) for f in found.alarms)[:150]}", flush=True)
    print(f"{hits} of {len(DEFECTS)} defects named\n")


def sound(options: argparse.Namespace) -> None:
    calm = 0
    for k, case in enumerate(SOUND):
        X, Y = case.draw(np.random.default_rng([options.seed, 100 + k]))
        found = doctor(X, Y, case.law)
        calm += found.sound
        if not found.sound:
            print(f"ALARM   {case.name:<32}{'; '.join(str(f) for f in found.alarms)[:150]}", flush=True)
    print(f"{calm} of {len(SOUND)} sound cases without an alarm\n")


def alarms(options: argparse.Namespace) -> None:
    kinds = {
        "n = 40": circle(40),
        "n = 200": circle(),
        "unequal noise, 2:1": circle(200, 0.05, "uneven"),
    }
    kinds |= {"t noise, 3 degrees": circle(200, 0.05, "t3"), "gaps": circle(200, 0.05, "gaps"), "noise 0.02": circle(100, 0.02)}
    kinds["n = 1000"] = circle(1000)
    print("share of draws with an alarm, nominal 5 %")
    for k, (name, draw) in enumerate(kinds.items()):
        draws = options.draws
        print(
            f"  {name:<24}{_share(draw, Equations(ROUND), [options.seed, 200 + k], draws):>7.1%}   ({draws} draws)", flush=True
        )


def power(options: argparse.Namespace) -> None:
    share = _share(circle(), Equations("1.05*y1**2 + y2**2 = 1"), [options.seed, 300], options.draws)
    print(f"a coefficient of the circle that is 5 % wrong (n = 200, noise 0.05) is found in {share:.1%} of the draws")
    share = _share(circle(), Equations("(1.05*y1)**2 + (1.05*y2)**2 = 1"), [options.seed, 301], options.draws)
    print(f"a radius that is 5 % wrong in {share:.1%}\n", flush=True)


def column_time(options: argparse.Namespace) -> None:
    if options.data:
        data = load_distillation(Path(options.data) / "distillation")
        rows = np.random.default_rng(options.seed).permutation(len(data.X))[:1600]
        begin = time.process_time()
        found = doctor(data.X[rows], data.Y[rows], Equations(data.equations))
        print(f"\ndistillation, 1600 rows: {time.process_time() - begin:.1f} s\n{found}")


PARTS = {"defects": defects, "sound": sound, "calm": alarms, "power": power, "time": column_time}


def _share(draw: Draw, law: Any, seed: list[int], draws: int) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([not doctor(*draw(rng), law, held_out=False).sound for _ in range(draws)]))


if __name__ == "__main__":
    main()
