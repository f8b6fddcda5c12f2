"""Real labels under rules, and real orders of labels, by the defaults beside a random forest.

    python benchmarks/labels.py --data FOLDER [--only emotions yeast iris wine glass housing stock vowel] [--seed 0]

FOLDER holds labels/ (emotions, yeast: the files of CCN, Giunchiglia & Lukasiewicz 2021) and ranks/ (the sets of scikit-lr).

Labels, train and test as given: average precision over all cells of the table (micro), over labels (macro) and over rows, mean
log loss, and rows that violate the rules; rules that a training row breaks are left out. The peers see no rules: a forest of
500 trees for all labels, and logistic regression on standardised inputs label by label.

Orders, ten folds: Kendall's tau of the default ranker, of one with the kernel Gaussian(1.0) and no prior, and of a forest on
the ranks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau
from sklearn.datasets import load_svmlight_file
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lawful import ConstrainedClassifier, ConstrainedRanker, Logic
from lawful.kernels import Gaussian

SIZES = {"emotions": 6, "yeast": 14}
ORDERS = ("iris", "wine", "glass", "housing", "stock", "vowel")


def table(path: Path, T: int) -> tuple[np.ndarray, np.ndarray]:
    X, which = load_svmlight_file(str(path), multilabel=True)
    Y = np.zeros((X.shape[0], T))
    for row, labels in zip(Y, which):
        row[[int(t) for t in labels]] = 1
    return X.toarray(), Y


def rules(path: Path, Y: np.ndarray) -> list[str]:
    """Lines "weight head :- body", "n" for not, as formulas; without those that a row of Y breaks."""
    found = []
    for line in path.read_text().splitlines():
        head, body = (part.split() for part in line.split(":-"))
        true = {word: Y[:, int(word.lstrip("n"))] == (not word.startswith("n")) for word in [head[-1], *body]}
        if not (np.all([true[word] for word in body], axis=0) & ~true[head[-1]]).any():
            name = {word: f"{'not ' * word.startswith('n')}l{word.lstrip('n')}" for word in true}
            found.append(f"{' and '.join(name[word] for word in body)} -> {name[head[-1]]}")
    return found


def forest(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    model = RandomForestClassifier(500, random_state=0).fit(X, Y)
    return np.stack([p[:, 1] for p in model.predict_proba(new)], axis=1)


def logistic(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    one = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return np.stack([p[:, 1] for p in MultiOutputClassifier(one).fit(X, Y).predict_proba(new)], axis=1)


def labels(folder: Path, name: str) -> None:
    (X, Y), (new, truth) = (table(folder / name / f"{name}_{part}", SIZES[name]) for part in ("train", "test"))
    law = Logic(rules(folder / name / f"{name}_constraints.txt", Y), labels=[f"l{t}" for t in range(Y.shape[1])])
    print(f"\n{name}: {len(X)} rows, {X.shape[1]} inputs, {len(Y.T)} labels, {len(law.formulas)} rules; {len(new)} to predict")
    print(f"{'':10}   micro   macro    rows  log loss  violations  seconds")
    for system, predict in {"lawful": None, "forest": forest, "logistic": logistic}.items():
        start, broken = time.process_time(), "-"
        if predict is None:
            model = ConstrainedClassifier(law).fit(X, Y)
            P = model.predict_proba(new)
            broken = str((~model.constraint_.contains(model.predict(new))).sum())
        else:
            P = predict(X, Y, new)
        took = time.process_time() - start
        figures = [average_precision_score(truth, P, average=kind) for kind in ("micro", "macro", "samples")]
        loss = np.mean([log_loss(t, np.clip(p, 1e-6, 1 - 1e-6)) for t, p in zip(truth.T, P.T)])
        print(f"{system:10}" + "".join(f"{f:8.4f}" for f in figures) + f"{loss:10.4f}{broken:>12}{took:9.1f}")


RANKERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "lawful": lambda X, R, new: ConstrainedRanker().fit(X, R).predict(new),
    "Gaussian(1.0)": lambda X, R, new: ConstrainedRanker(prior=None, kernel=Gaussian(1.0), similarity=0).fit(X, R).predict(new),
    "forest": lambda X, R, new: RandomForestRegressor(500, random_state=0).fit(X, -R).predict(new),
}


def orders(folder: Path, name: str, seed: int) -> None:
    columns = np.genfromtxt(folder / f"{name}.csv", delimiter=",", names=True)
    X, L = (np.stack([columns[c] for c in columns.dtype.names if c[0] == kind], axis=1) for kind in "AL")
    figures = []
    for system, predict in RANKERS.items():
        start, tau = time.process_time(), []
        for train, test in KFold(10, shuffle=True, random_state=seed).split(X):
            tau += [kendalltau(*pair)[0] for pair in zip(predict(X[train], -L[train], X[test]), L[test])]
        figures.append(f"{system} {np.mean(tau):.4f} ({(time.process_time() - start) / 10:.1f} s)")
    print(f"{name:9}{X.shape[0]:5d} rows, {X.shape[1]:2d} inputs, {L.shape[1]:2d} labels: {', '.join(figures)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds labels/ and ranks/")
    parser.add_argument("--only", nargs="*", default=[*SIZES, *ORDERS], choices=[*SIZES, *ORDERS])
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    options = parser.parse_args()
    for name in options.only:
        if name in SIZES:
            labels(options.data / "labels", name)
    if set(options.only) & set(ORDERS):
        print("\nKendall's tau over ten folds (seconds of the processor for each)")
    for name in options.only:
        if name in ORDERS:
            orders(options.data / "ranks", name, options.seed)


if __name__ == "__main__":
    main()
