"""The functions of a law, whatever kind of set it is: values, derivatives and names, at given outputs and inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from lawful.sets import Equations


@dataclass(frozen=True)
class Functions:
    """P equalities and R inequalities (g <= 0) of a fitted set, equalities first."""

    C: Any
    X: np.ndarray
    names: list[str]
    n_equal: int
    outputs: list[str] | None = None
    inputs: list[str] | None = None

    @classmethod
    def of(cls, C: Any, X: np.ndarray, outputs: list[str] | None, inputs: list[str] | None) -> Functions | None:
        """None for a set that is not given by functions (a cloud of points, say)."""
        bound = C.at(X)
        if not (hasattr(bound, "equality") or hasattr(bound, "inequality")):
            return None
        probe = np.broadcast_to(C.location_, (len(X), C.n_tasks_)).astype(float)
        n_equal = bound.equality(probe).shape[1] if hasattr(bound, "equality") else 0
        n_other = bound.inequality(probe).shape[1] if hasattr(bound, "inequality") else 0
        return cls(C, X, _names(C, n_equal, n_other), n_equal, outputs, inputs)

    def __len__(self) -> int:
        return len(self.names)

    def values(self, c: np.ndarray) -> np.ndarray:
        """(n, P + R)."""
        bound = self.C.at(self.X)
        with np.errstate(all="ignore"):
            parts = [getattr(bound, name)(c) for name in ("equality", "inequality") if hasattr(bound, name)]
        return np.concatenate(parts, axis=1)

    def jacobian(self, c: np.ndarray) -> np.ndarray:
        """(n, P + R, T)."""
        bound = self.C.at(self.X)
        with np.errstate(all="ignore"):
            parts = [getattr(bound, f"{name}_jacobian")(c) for name in ("equality", "inequality") if hasattr(bound, name)]
        return np.concatenate(parts, axis=1)

    def hessian(self, c: np.ndarray, p: int) -> np.ndarray:
        """(n, T, T) of function p; zeros where the set does not know it."""
        bound = self.C.at(self.X)
        if not hasattr(bound, "curvature"):
            return np.zeros((*c.shape, c.shape[1]))
        nu = np.zeros((len(c), len(self)))
        nu[:, p] = 1.0
        with np.errstate(all="ignore"):
            return np.asarray(bound.curvature(c, nu))

    def on(self, rows: np.ndarray) -> Functions:
        return replace(self, X=self.X[rows])

    def reworded(self, p: int, text: str) -> Functions:
        """One function alone, in other words."""
        new = clone(self.C).set_params(equations=text)
        new.fit(self.C.starts_, self.X, outputs=self.outputs, inputs=self.inputs)
        return Functions(new, self.X, [text], int(p < self.n_equal), self.outputs, self.inputs)


def _names(C: Any, n_equal: int, n_other: int) -> list[str]:
    texts = C.equations if isinstance(C, Equations) else None
    texts = [texts] if isinstance(texts, str) else list(texts or [])
    if texts and all(isinstance(text, str) for text in texts):
        lines = [line.strip() for text in texts for line in text.replace(";", "\n").splitlines() if line.strip()]
        equal = [line for line in lines if "<" not in line and ">" not in line]
        other = [line for line in lines if line not in equal]
        if len(equal) == n_equal and len(other) == n_other:
            return equal + other
    kind = type(C).__name__
    if n_equal + n_other == 1:
        return [kind]
    return [f"{kind}, equation {p + 1}" for p in range(n_equal)] + [f"{kind}, inequality {p + 1}" for p in range(n_other)]
