"""Label logic beside independent classifiers and beside repairs afterwards: F1, rows right as a whole, violations, time.

    python benchmarks/logic.py [--seeds 5] [--first 1000] [--only digits "deep tree" ...]

Every system has the same features and the same classifier a label (logistic regression on standardised inputs).

    independent   scikit-learn's MultiOutputClassifier: each label on its own, which may violate the logic
    upward        a label that is true makes its parents true (hierarchies only)
    downward      a label with a parent that is false is false (hierarchies only)
    nearest       the assignment that obeys and differs in the fewest labels
    lawful ...    ConstrainedClassifier: the default (which was chosen on seeds 0 to 23) and by loss; "separate": the default
                  loss with the very classifiers of the first line

Five generated hierarchies, and scikit-learn's digits with fourteen labels: which digit it is, and whether that is even,
prime, above four or has a loop. Yeast (real, 14 labels) where `river`, which ships it, is installed. Labels under a logic
that is no hierarchy and binds little: correlated labels, frequent and rare, and labels of which some must be true. Then
10,000 rows with 200 labels, random formulas against all assignments, and, where formulas tie too many labels together for
exact sums, the probabilities that are means over random walks: their error against the exact ones, for formulas that have
both.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lawful import ConstrainedClassifier, Logic
from lawful.sets.logic import compiled, junction

Parents = dict[str, list[str]]
Problem = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Logic, Parents]


def random_tree(rng: np.random.Generator, T: int, width: int, second: float = 0.0) -> Parents:
    """T labels; each but the first few has a parent among the last `width` before it, or, with some chance, two."""
    parents: Parents = {}
    for t in range(T):
        above = list(range(max(0, t - width), t)) if t >= 3 else []
        chosen = rng.choice(above, size=min(len(above), 1 + (rng.random() < second)), replace=False) if above else []
        parents[f"l{t}"] = [f"l{p}" for p in chosen]
    return parents


def hierarchy(rng: np.random.Generator, T: int, width: int, kind: str) -> Problem:
    """Rows that obey a hierarchy; features are sums of directions of the labels that are true, and noise."""
    parents = random_tree(rng, T, width, second=0.3 if kind == "two parents" else 0.0)
    exclusive, complete = kind in ("one path", "one leaf"), kind == "one leaf"
    law = Logic.from_hierarchy(parents, exclusive=exclusive, complete=complete, labels=list(parents))
    names = list(parents)
    children = {name: [c for c in names if name in parents[c]] for name in names}
    tops = [name for name in names if not parents[name]]
    n = 1200
    Y = np.zeros((n, T))
    for row in Y:
        for _ in range(1 if exclusive else rng.integers(1, 4)):
            at = rng.choice(tops)
            while True:
                waiting = [at]
                while waiting:  # the label and everything above it
                    label = waiting.pop()
                    row[names.index(label)] = 1
                    waiting += parents[label]
                if not children[at] or (not complete and rng.random() < 0.2):
                    break
                at = rng.choice(children[at])
    X = Y @ rng.standard_normal((T, 40)) + 3.0 * rng.standard_normal((n, 40))
    return X[:400], Y[:400], X[400:], Y[400:], law, parents


HIERARCHIES = {
    "tree, several paths": (40, 6, "several"),
    "tree, one path": (40, 6, "one path"),
    "tree, one leaf": (60, 12, "one leaf"),
    "two parents": (40, 8, "two parents"),
    "deep tree": (30, 2, "several"),
}


def digits(rng: np.random.Generator) -> Problem:
    """Real data, real logic."""
    data = load_digits()
    kinds = {"even": [0, 2, 4, 6, 8], "prime": [2, 3, 5, 7], "loop": [0, 6, 8, 9], "above_four": [5, 6, 7, 8, 9]}
    Y = np.hstack([np.eye(10)[data.target], *(np.isin(data.target, which)[:, None] for which in kinds.values())])
    each = [f"d{k}" for k in range(10)]
    formulas = [f"exactly_one({', '.join(each)})"]
    formulas += [f"{name} <-> any({', '.join(f'd{k}' for k in which)})" for name, which in kinds.items()]
    Xa, Xb, Ya, Yb = train_test_split(data.data, Y, train_size=400, random_state=int(rng.integers(2**31)))
    return Xa, Ya, Xb, Yb, Logic(formulas, labels=[*each, *kinds]), {}


def yeast(rng: np.random.Generator) -> Problem:
    """Functions of 2417 genes, 14 labels, from the package `river`. The logic is read off the training rows alone.

    Kept are formulas that no training row contradicts: a gene has some function, a function implies another one, or one of
    its two neighbours in the list (which comes from a tree of functions), each where it was put to the test 30 times.
    """
    import pandas as pd
    import river

    data = pd.read_csv(Path(river.__file__).parent / "datasets" / "yeast.csv.gz")
    labels = [name for name in data.columns if name.startswith("Class")]
    X, Y = data.drop(columns=labels).to_numpy(float), data[labels].to_numpy(float)
    Xa, Xb, Ya, Yb = train_test_split(X, Y, train_size=600, random_state=int(rng.integers(2**31)))
    seen, T = Ya.sum(axis=0) >= 30, len(labels)
    formulas = [f"any({', '.join(labels)})"] if Ya.any(axis=1).all() else []
    implied = [(a, b) for a in range(T) for b in range(T) if a != b and seen[a] and (Ya[:, a] <= Ya[:, b]).all()]
    formulas += [f"{labels[a]} -> {labels[b]}" for a, b in implied]
    for t in range(1, T - 1):
        if seen[t] and (Ya[:, t] <= np.maximum(Ya[:, t - 1], Ya[:, t + 1])).all():
            formulas.append(f"{labels[t]} -> {labels[t - 1]} or {labels[t + 1]}")
    return Xa, Ya, Xb, Yb, Logic(formulas, labels=labels), {}


def correlated(rng: np.random.Generator, level: float) -> Problem:
    """Twenty noisy labels that share causes, ten implications and a count; the higher the level, the rarer the labels."""
    T, d, n = 20, 40, 1600
    X = rng.standard_normal((n, d))
    score = X[:, :4] @ rng.standard_normal((4, T)) / 2 + X @ rng.standard_normal((d, T)) / np.sqrt(4 * d)
    score += rng.standard_normal((n, 3)) @ rng.standard_normal((3, T)) + rng.logistic(size=(n, T)) - level
    names = [f"l{t}" for t in range(T)]
    formulas = [f"{a} -> {b}" for a, b in zip(names[::2], names[1::2])] + [f"at_most(3, {', '.join(names[1::4])})"]
    law = Logic(formulas, labels=names)
    Y = law.fit(np.zeros((1, T))).nearest(0.5 + score / 4)
    return X[:400], Y[:400], X[400:], Y[400:], law, {}


def some_label(rng: np.random.Generator) -> Problem:
    """scikit-learn's generated multi-label data; that some label is true is all that is known."""
    T, n = 12, 1600
    X, Y = make_multilabel_classification(n, 30, n_classes=T, n_labels=3, random_state=int(rng.integers(2**31)))
    Y = Y.astype(float)
    Y[~Y.any(axis=1), 0] = 1
    names = [f"l{t}" for t in range(T)]
    return X[:400], Y[:400], X[400:], Y[400:], Logic(f"any({', '.join(names)})", labels=names), {}


MADE: dict[str, Callable[[np.random.Generator], Problem]] = {
    "correlated": lambda rng: correlated(rng, 0.8),
    "rare": lambda rng: correlated(rng, 2.5),
    "some label": some_label,
}


def closed(Y: np.ndarray, parents: Parents, upward: bool) -> np.ndarray:
    """Labels repaired along a hierarchy; children come after their parents."""
    Y, names = Y.copy(), list(parents)
    for t in reversed(range(len(names))) if upward else range(len(names)):
        for p in (names.index(name) for name in parents[names[t]]):
            if upward:
                Y[:, p] = np.maximum(Y[:, p], Y[:, t])
            else:
                Y[:, t] = np.minimum(Y[:, t], Y[:, p])
    return Y


def systems(problem: Problem) -> dict[str, np.ndarray]:
    Xa, Ya, Xb, _, law, parents = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        varying = np.flatnonzero(Ya.min(axis=0) != Ya.max(axis=0))
        free = np.tile(Ya[0], (len(Xb), 1))
        one = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        free[:, varying] = MultiOutputClassifier(one).fit(Xa, Ya[:, varying]).predict(Xb)
    out = {"independent": free}
    if parents:
        out |= {"upward": closed(free, parents, True), "downward": closed(free, parents, False)}
    models = {"default": ConstrainedClassifier(law).fit(Xa, Ya)}
    models |= {loss: ConstrainedClassifier(law, loss=loss).fit(Xa, Ya) for loss in ("subset", "hamming", "hinge")}
    models["separate"] = ConstrainedClassifier(law, surrogate=one).fit(Xa, Ya)
    out["nearest"] = models["subset"].constraint_.nearest(free)
    return out | {f"lawful {loss}": model.predict(Xb) for loss, model in models.items()}


def figures(problem: Problem) -> dict[str, tuple[float, ...]]:
    Y = problem[3]
    law = problem[4].fit(problem[1])
    seen = Y.any(axis=0)  # the F1 of a label that never occurs is no number
    return {
        name: (
            float(f1_score(Y, P, average="micro")),
            float(f1_score(Y[:, seen], P[:, seen], average="macro", zero_division=0)),
            float(accuracy_score(Y, P)),
            float((~law.contains(P)).mean()),
        )
        for name, P in systems(problem).items()
    }


def compare(name: str, make: Callable[[np.random.Generator], Problem], seeds: list[int]) -> None:
    runs = [figures(make(np.random.default_rng(seed))) for seed in seeds]
    print(f"\n{name} ({len(seeds)} seeds)\n{'':18}micro F1  macro F1  rows right  rows that violate")
    for system in runs[0]:
        micro, macro, subset, bad = np.mean([run[system] for run in runs], axis=0)
        print(f"{system:18}{micro:8.4f}{macro:10.4f}{subset:12.4f}{bad:19.4f}")
    rivals = [system for system in runs[0] if not system.startswith("lawful")]
    for loss, rival in itertools.product(("default", "subset"), rivals):
        gain = np.array([run[f"lawful {loss}"] for run in runs])[:, :3] - np.array([run[rival] for run in runs])[:, :3]
        parts = [f"{what} {g.mean():+.4f} ({(g >= 0).sum()})" for what, g in zip(("micro", "macro", "rows"), gain.T)]
        print(f"  {loss} - {rival:12} {', '.join(parts)}  (seeds of {len(seeds)} on which it is no worse)")


def general(rng: np.random.Generator, T: int) -> Logic:
    """As many random clauses as labels, each over three of them, and counts over ten: no tree."""
    formulas = []
    for _ in range(T):
        a, b, c = rng.choice(T, 3, replace=False)
        formulas.append(
            f"y{a + 1} and y{b + 1} -> y{c + 1}" if rng.random() < 0.5 else f"not (y{a + 1} and y{b + 1} and y{c + 1})"
        )
    for _ in range(T // 20):
        formulas.append(f"at_most(4, {', '.join(f'y{t + 1}' for t in rng.choice(T, 10, replace=False))})")
    return Logic(formulas)


def speed(seed: int, n: int = 10_000, T: int = 200) -> None:
    print(f"\ntime of {n} rows with {T} labels, features included; seconds of the processor")
    rng = np.random.default_rng(seed)
    parents = random_tree(rng, T, 20)
    laws = {
        "tree": Logic.from_hierarchy(parents, labels=list(parents)),
        "tree, one path": Logic.from_hierarchy(parents, exclusive=True, labels=list(parents)),
        "general": general(rng, T),
    }
    for name, law in laws.items():
        X = rng.standard_normal((1000 + n, 30))
        scores = X @ rng.standard_normal((30, T)) / 3 - 1.0 + rng.standard_normal((1000 + n, T))
        Y = law.fit(np.zeros((1, T))).nearest(scores[:1000])
        start = time.process_time()
        model = ConstrainedClassifier(law).fit(X[:1000], Y)
        fit = time.process_time() - start
        start = time.process_time()
        d = model.decode(X[1000:])
        decode = time.process_time() - start
        rows = slice(1000, None) if model.constraint_.exact_ else slice(1000, 2000)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict_proba(X[rows])
        proba = time.process_time() - start
        violations = int((~model.constraint_.contains(d.c)).sum())
        print(
            f"{name:16} fit {fit:5.1f} s, predict {decode:5.2f} s, {violations} violations, "
            f"{(d.status == 'ok').mean():.2%} proven; predict_proba of {len(X[rows])} rows {proba:5.2f} s"
            f"{'' if model.constraint_.exact_ else ', approximate'}"
        )


def random_formula(rng: np.random.Generator, T: int) -> str:
    names = [f"y{t + 1}" for t in rng.permutation(T)]
    k = int(rng.integers(0, 4))
    shapes = (
        "{0} -> {1}",
        "not ({0} and {1} and {2})",
        "({0} or {1}) <-> ({2} xor {3})",
        f"at_most({k}, {{0}}, {{1}}, {{2}}, {{3}}, {{4}})",
        f"{{5}} -> exactly({k}, {{0}}, {{1}}, {{2}}, {{3}})",
        "exactly_one({0}, {1}, {2}) or {3}",
        f"at_least({k}, {{0}}, not {{1}}, {{2}} and {{3}}, {{4}})",
    )
    return shapes[rng.integers(len(shapes))].format(*names)


def exact(seed: int, repeats: int = 200) -> None:
    rng = np.random.default_rng(seed)
    worst_value = worst_marginal = 0.0
    possible = 0
    for _ in range(repeats):
        T = int(rng.integers(6, 13))
        formulas = [random_formula(rng, T) for _ in range(rng.integers(1, 8))]
        points = np.array(list(itertools.product([0.0, 1.0], repeat=T)))
        try:
            law = Logic(formulas).fit(points)
        except ValueError:
            continue
        possible += 1
        points = points[law.contains(points)]
        logits = rng.standard_normal((20, T))
        weights = np.exp(logits @ points.T)
        found = law.best(-logits)[0]
        worst_value = max(worst_value, float(np.abs((logits * found).sum(axis=1) - (logits @ points.T).max(axis=1)).max()))
        truth = weights @ points / weights.sum(axis=1, keepdims=True)
        worst_marginal = max(worst_marginal, float(np.abs(law.marginals(logits) - truth).max()))
    print(
        f"\n{possible} random logics of 6 to 12 labels against all assignments: largest difference of the optimum "
        f"{worst_value:.1e}, of marginals {worst_marginal:.1e}"
    )


def approximate(seed: int, repeats: int = 60) -> None:
    """Means over random walks against exact probabilities: formulas are taken for such that tie too much together."""
    rng = np.random.default_rng(seed)
    kinds: dict[str, list[tuple[np.ndarray, float]]] = {}
    for number in range(repeats):
        T, scale = int(rng.integers(8, 17)), float(rng.choice([0.5, 1.0, 2.0, 4.0]))
        if number % 3:
            kind, formulas = "random formulas, 8 to 16 labels", [random_formula(rng, T) for _ in range(rng.integers(3, 10))]
        else:
            T, kind = 40, "one path in a tree of 40 labels"
            formulas = list(Logic.from_hierarchy(random_tree(rng, T, 6), exclusive=True).formulas)
        names, row = [f"{'l' if T == 40 else 'y'}{t + (T < 40)}" for t in range(T)], np.zeros((1, T))
        logits = scale * rng.standard_normal((100, T))
        try:
            truth = Logic(formulas, labels=names).fit(row).marginals(logits)
        except ValueError:  # they contradict each other
            continue
        limits = compiled.FEW, compiled.MANY, junction.CLIQUE
        try:
            compiled.FEW = compiled.MANY = junction.CLIQUE = 0
            law = Logic(formulas, labels=names).fit(row)
        finally:
            compiled.FEW, compiled.MANY, junction.CLIQUE = limits
        if not law.exact_:
            law.marginals(logits[:1])  # compiled
            start = time.process_time()
            found = law.marginals(logits)
            kinds.setdefault(kind, []).append((found - truth, time.process_time() - start))
    print("\nprobabilities by random walks against exact ones")
    for kind, runs in kinds.items():
        off, took = np.concatenate([e.ravel() for e, _ in runs]), sum(t for _, t in runs)
        print(
            f"{kind}: {len(runs)} logics, mean error {off.mean():+.4f}, root mean square {np.sqrt((off**2).mean()):.4f}, 95 % "
            f"below {np.quantile(np.abs(off), 0.95):.3f}, largest {np.abs(off).max():.2f}; {took / len(runs) * 10:.2f} ms a row"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000)
    names = ["exact", "walks", "speed", "digits", "yeast", *HIERARCHIES, *MADE]
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    chosen = parser.parse_args()
    seeds = list(range(chosen.first, chosen.first + chosen.seeds))
    if "exact" in chosen.only:
        exact(chosen.first)
    if "walks" in chosen.only:
        approximate(chosen.first)
    if "speed" in chosen.only:
        speed(chosen.first)
    if "digits" in chosen.only:
        compare("digits", digits, seeds)
    if "yeast" in chosen.only and find_spec("river") is not None:
        compare("yeast", yeast, seeds)
    for name, (T, width, kind) in HIERARCHIES.items():
        if name in chosen.only:
            compare(name, lambda rng, T=T, width=width, kind=kind: hierarchy(rng, T, width, kind), seeds)  # type: ignore[misc]
    for name, make in MADE.items():
        if name in chosen.only:
            compare(name, make, seeds)


if __name__ == "__main__":
    main()
