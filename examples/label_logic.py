"""Handwritten digits with labels that are tied together: even, prime, above four, with a loop, and which digit it is.

    python examples/label_logic.py

Fourteen classifiers that know nothing of each other contradict themselves in a third of the images. Under the logic none does,
more images are right as a whole, and the probabilities add up: those of the even digits to that of "even".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from lawful import ConstrainedClassifier, Logic

KINDS = {"even": [0, 2, 4, 6, 8], "prime": [2, 3, 5, 7], "loop": [0, 6, 8, 9], "above_four": [5, 6, 7, 8, 9]}
DIGITS = [f"d{k}" for k in range(10)]
LAW = [f"exactly_one({', '.join(DIGITS)})"]
LAW += [f"{kind} <-> any({', '.join(f'd{k}' for k in which)})" for kind, which in KINDS.items()]


def labels() -> tuple[np.ndarray, np.ndarray]:
    """Pixels, and the fourteen labels as 0 and 1."""
    data = load_digits()
    kinds = [np.isin(data.target, which)[:, None] for which in KINDS.values()]
    return data.data, np.hstack([np.eye(10)[data.target], *kinds])


def run(seed: int = 0) -> dict[str, Any]:
    X, Y = labels()
    X, X_new, Y, Y_new = train_test_split(X, Y, train_size=400, random_state=seed)
    gaps = np.random.default_rng(seed).uniform(size=Y.shape) < 0.2
    Y = np.where(gaps, np.nan, Y)  # a fifth of the labels is not known
    law = Logic(LAW, labels=[*DIGITS, *KINDS])
    models = {"free": ConstrainedClassifier().fit(X, Y), "lawful": ConstrainedClassifier(law).fit(X, Y)}
    out: dict[str, Any] = {}
    for name, model in models.items():
        found = model.predict(X_new)
        out[f"{name} rows right"] = model.score(X_new, Y_new)
        out[f"{name} F1"] = f1_score(Y_new, found, average="macro")
        out[f"{name} violations"] = float((~models["lawful"].constraint_.contains(found)).mean())
    p = models["lawful"].predict_proba(X_new)
    out["even"] = float(np.abs(p[:, KINDS["even"]].sum(axis=1) - p[:, 10]).max())
    out["status"] = set(models["lawful"].decode(X_new).status)
    return out


if __name__ == "__main__":
    for key, value in run().items():
        print(f"{key:20} {value}")
