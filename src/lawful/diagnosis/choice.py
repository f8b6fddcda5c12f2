r"""Which law should be learned from these outputs, if any? By held-out rows.

Each candidate is fitted without the rows of a fold, and predictions for these rows are projected onto it; what counts is how
far the projections are from the labels of the rows. With inputs, the predictions are those of a smooth regression that has not
seen the rows either. Without, they are the labels with noise added: a law that holds takes the noise across it away, one that
does not adds an error of its own, and no law leaves the noise as it is. Outputs are measured in units of their spread.

Candidates are asked in their order, no law first; one is chosen over those before it only where its error is lower on most
folds and on average.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._html import card, table
from lawful._smooth import noise_of
from lawful.decoders import project
from lawful.sets import KernelSet, LearnedEquations, LocalTangent, Reals
from lawful.sets.restore import restore
from lawful.sets.typeset import law_html

NONE = "no law"
DISTURBED = 0.1  # of the spread of each output, where there are no inputs
ROWS = 600  # held-out rows that are looked at


@dataclass(frozen=True)
class LawChoice:
    """Held-out errors of the candidates, {name: (folds,)}; `name` is the best one, `constraint` that law, not fitted yet.

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import LearnedEquations, choose_law
    >>> noisy = Y + 0.01 * np.random.default_rng(0).standard_normal(Y.shape)
    >>> choice = choose_law(noisy, X, candidates={"equations": LearnedEquations()}, folds=2)
    >>> sorted(choice.errors)
    ['equations', 'no law']
    """

    name: str
    constraint: Any
    errors: dict[str, np.ndarray]
    remarks: list[str]

    def __str__(self) -> str:
        width = max(map(len, self.errors))
        lines = [f"{name:<{width}}  {np.mean(e):.4g}" + "  <-" * (name == self.name) for name, e in self.errors.items()]
        return "\n".join(["held-out error, in spreads of the outputs", *lines, *self.remarks])

    def _repr_html_(self) -> str:
        """For notebooks: the candidates, the best first, and the law that was chosen."""
        order = sorted(self.errors, key=lambda name: float(np.mean(self.errors[name])))
        rows = [[name, f"{np.mean(self.errors[name]):.4g}", "chosen" if name == self.name else ""] for name in order]
        remarks = "".join(f"<div>{escape(remark)}</div>" for remark in self.remarks)
        shown = table(["law", "held-out error, in spreads of the outputs", ""], rows) + remarks
        return card(f"Choice of a law: {self.name}", shown + law_html(self.constraint))

    def to_frame(self) -> Any:
        """A DataFrame with a row for each candidate. Needs pandas."""
        import pandas as pd

        rows = [{"law": n, "error": e.mean(), "folds": len(e), "chosen": n == self.name} for n, e in self.errors.items()]
        return pd.DataFrame(rows)


def choose_law(
    Y: Any,
    X: Any = None,
    *,
    candidates: dict[str, Any] | None = None,
    folds: int = 5,
    extra: Any = None,
    random_state: int = 0,
) -> LawChoice:
    """The learned law that helps most on rows left out: equations, a surface, a region, or none.

    Parameters
    ----------
    Y : (n, T) outputs; rows with gaps are left out.
    X : (n, d) inputs, optional.
    candidates : {name: set}, default `LearnedEquations`, `LocalTangent`, `KernelSet`; "no law" is always one.
        The plainest first: a later one must be better.
    folds, random_state : how the rows are dealt.
    extra : (m, T) more outputs, for which there are no inputs; every candidate that takes `extra` learns from them as well.

    Returns
    -------
    LawChoice
        `constraint` goes to `ConstrainedRegressor`, which fits it; the search fits it anew by fold.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 6.28, 200)
    >>> Y = np.c_[2 * np.cos(t), np.sin(t)] + 0.02 * rng.standard_normal((200, 2))
    >>> choose_law(Y).name
    'equations'
    >>> choose_law(rng.standard_normal((200, 2))).name != "equations"
    True
    """
    y = np.asarray(np.ma.filled(np.ma.asarray(Y, dtype=np.float64), np.nan), np.float64)
    x = None if X is None else np.asarray(X, np.float64)
    if y.ndim != 2 or (x is not None and (x.ndim != 2 or len(x) != len(y))):
        raise ValueError(f"choose_law: Y has shape {y.shape}; give a row for each sample and a column for each output, X alike")
    whole = np.isfinite(y).all(axis=1) & (True if x is None else np.isfinite(x).all(axis=1))
    y, x = y[whole], None if x is None else x[whole]
    if len(y) < 4 * folds:
        raise ValueError(f"choose_law: {len(y)} complete rows are too few for {folds} folds; give at least {4 * folds}")
    if candidates is None:
        candidates = {"equations": LearnedEquations(), "surface": LocalTangent(), "region": KernelSet()}
    if extra is not None:
        candidates = {n: clone(C).set_params(extra=extra) if "extra" in C.get_params() else C for n, C in candidates.items()}
    laws = {NONE: Reals(), **candidates}
    rng = np.random.default_rng(random_state)
    fold = rng.permutation(len(y)) % folds
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    disturbed = y + DISTURBED * spread * rng.standard_normal(y.shape)
    errors: dict[str, list[float]] = {name: [] for name in laws}
    remarks: dict[str, str] = {}
    for k in range(folds):
        train, test = fold != k, np.flatnonzero(fold == k)[: -(-ROWS // folds)]
        guess = disturbed[test] if x is None else noise_of(x, np.where(train[:, None], y, np.nan)).smooth[test]
        for name, law in laws.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    C = clone(law).fit(y[train], None if x is None else x[train])
                    c = _onto(C, guess, None if x is None else x[test])
            except (ValueError, np.linalg.LinAlgError) as error:
                remarks[name], c = f"{name}: {error}", np.full_like(guess, np.inf)
            errors[name].append(float(np.sqrt(np.mean(((c - y[test]) / spread) ** 2))))
    held_out = {name: np.array(e) for name, e in errors.items()}
    best = NONE
    for name, e in held_out.items():
        if e.mean() < held_out[best].mean() and np.mean(e < held_out[best]) > 0.5:
            best = name
    return LawChoice(best, clone(laws[best]), held_out, list(remarks.values()))


def _onto(C: Any, points: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    """Points of C near these: the nearest ones, but for a region (no equality), whose border one step at a time will do."""
    if not hasattr(C, "equality") and hasattr(C, "inequality"):
        return restore(C if X is None else C.at(X), points, C.spread_)[0]
    return np.asarray(project(points, C, X=X))
