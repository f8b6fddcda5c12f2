"""`lawful.discover`: which laws do these data obey? A table of candidates, each with its evidence and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.sets.learned.equations import LearnedEquations
from lawful.sets.learned.words import LearnedLaw

COLUMNS = {
    "law": "equation",
    "simple": "simple",
    "degree": "degree",
    "residual": "distance",
    "noise": "noise",
    "misfit": "misfit",
    "held_out": "held_out",
    "shuffled": "shuffled",
    "z": "z",
}


@dataclass(frozen=True)
class LawTable:
    """Candidate laws: `str` is the text, `to_frame()` the table, `constraint` the set of all of them, ready for a regressor.

    >>> import numpy as np
    >>> from lawful import discover
    >>> rng = np.random.default_rng(0)
    >>> flow = rng.uniform(1, 2, (100, 2))
    >>> table = discover(None, np.c_[flow, flow.sum(axis=1)] + 0.01 * rng.standard_normal((100, 3)), noise=0.01)
    >>> len(table), [law.simple for law in table]
    (1, ['y1 + y2 - y3 = 0'])
    """

    laws: list[LearnedLaw]
    remarks: list[str]
    noise: np.ndarray | None
    constant: list[str]
    constraint: LearnedEquations

    def __len__(self) -> int:
        return len(self.laws)

    def __iter__(self) -> Any:
        return iter(self.laws)

    def __str__(self) -> str:
        lines = [f"{len(self.laws)} law{'s' * (len(self.laws) != 1)} found" + ":" * bool(self.laws)]
        lines += [f"{k}. {law.sentence}." for k, law in enumerate(self.laws, 1)]
        if self.constant:
            lines.append(f"constant within their noise, and left out: {', '.join(self.constant)}")
        return "\n".join(lines + self.remarks)

    def to_frame(self) -> Any:
        """A DataFrame with a row for each law. Needs pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("LawTable.to_frame needs pandas: pip install 'lawful[frame]'") from error
        rows = [
            {name: getattr(law, what) for name, what in COLUMNS.items()}
            | {"terms": len(law.terms), "support": ", ".join(law.terms), "sentence": law.sentence}
            for law in self.laws
        ]
        return pd.DataFrame(rows, columns=[*COLUMNS, "terms", "support", "sentence"])


def discover(
    X: Any,
    Y: Any,
    *,
    x_dependent: bool | None = None,
    degree: Any = "auto",
    noise: Any = None,
    terms: Any = (),
    max_terms: int = 4,
    tidy: bool = True,
    extra: Any = None,
) -> LawTable:
    """Laws that the outputs Y obey to within their noise, alone or, with x_dependent, together with the inputs X.

    Parameters
    ----------
    X : (n, d) array or DataFrame, or None
    Y : (n, T) array or DataFrame; rows with gaps are left out
    x_dependent : bool, default None
        Whether inputs may take part in a law; None: if there are any. Inputs count as exact.
    degree, noise, terms, max_terms, tidy, extra : see `LearnedEquations`

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> flow = rng.uniform(1, 2, (100, 2))
    >>> Y = np.c_[flow, flow.sum(axis=1)] + 0.01 * rng.standard_normal((100, 3))
    >>> table = discover(None, Y, noise=0.01)
    >>> table.laws[0].simple
    'y1 + y2 - y3 = 0'
    """
    outputs, inputs = ([str(c) for c in A.columns] if hasattr(A, "columns") else None for A in (Y, X))
    y = np.asarray(np.ma.filled(np.ma.asarray(Y, dtype=np.float64), np.nan), np.float64)
    if y.ndim != 2 or y.shape[1] < 2 - (X is not None):
        raise ValueError(f"discover: Y has shape {y.shape}; give a column for each output, and X for laws with inputs")
    x = None if X is None else np.asarray(X, np.float64)
    if x is not None and (x.ndim != 2 or len(x) != len(y)):
        raise ValueError(f"discover: X has shape {x.shape}, but Y has {len(y)} rows; give one row of inputs for each")
    with_inputs = x is not None if x_dependent is None else x_dependent
    C = LearnedEquations(degree, with_inputs, noise, terms=terms, max_terms=max_terms, tidy=tidy, extra=extra)
    C.fit(y, x, outputs=outputs, inputs=inputs)
    names = outputs or [f"y{t + 1}" for t in range(y.shape[1])]
    return LawTable(C.laws_, C.remarks_, C.noise_, [names[t] for t in C.constant_], C)
