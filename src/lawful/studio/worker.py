"""The process that learns: `python -m lawful.studio.worker FOLDER`.

The folder holds job.json and data.npz; it gets result.json, and of a fit model.lawful, report.html and pictures. Each line of
standard output is a JSON object with the stage and how much of it is done. Fits run here and not in the server, so that
stopping one stops it for good; when the server ends, standard input ends, and so does this process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, ShuffleSplit

from lawful._array import to_numpy
from lawful.diagnosis import doctor
from lawful.estimators import ConstrainedRegressor
from lawful.plots import PredictionDisplay, ResidualDisplay
from lawful.report.fits import page, summarise
from lawful.sets.named import law_in_words
from lawful.studio.laws import DRAWN, THEMES, drawn, size_of

__all__ = ["main"]

FOLDS, MANY = 5, 2000  # beyond so many rows, one part of a fifth is held out and no more


def main(folder: Path) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    with np.load(folder / "data.npz", allow_pickle=False) as arrays:
        X, Y = arrays["X"], arrays["Y"]
    import pandas as pd

    tables = pd.DataFrame(X, columns=job["inputs"]), pd.DataFrame(Y, columns=job["outputs"])
    law = law_in_words(job["law"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _fit(folder, job, *tables, law) if job["kind"] == "fit" else _examine(*tables, law)
    unfinished = folder / "result.part"
    unfinished.write_text(json.dumps(_plain(result)), encoding="utf-8")
    unfinished.replace(folder / "result.json")


def _end_with_parent() -> None:
    while os.read(0, 4096):  # not sys.stdin, whose lock would still be held when this process ends by itself
        pass
    os._exit(1)


def say(stage: str, done: int, total: int) -> None:
    print(json.dumps({"stage": stage, "done": done, "total": total}), flush=True)


# ---------------------------------------------------------------------- fit and compare


def _fit(folder: Path, job: dict[str, Any], X: Any, Y: Any, law: Any) -> dict[str, Any]:
    splitter = KFold(FOLDS, shuffle=True, random_state=0) if len(X) <= MANY else ShuffleSplit(1, test_size=0.2, random_state=0)
    folds = list(splitter.split(X))
    steps = len(folds) + 3
    compared = _compare(folds, steps, X, Y, law)
    say("learning from all rows", len(folds), steps)
    start = time.perf_counter()
    model = ConstrainedRegressor(law).fit(X, Y)
    seconds = time.perf_counter() - start
    say("writing the model and the report", len(folds) + 1, steps)
    summary = summarise(model, X, Y, job["name"], seconds)
    model.save(folder / "model.lawful")
    (folder / "report.html").write_text(page(model, X, Y, summary), encoding="utf-8")
    say("drawing", len(folds) + 2, steps)
    _draw(folder, model, X, Y, law)
    return {"compare": compared, "summary": summary, "seconds": seconds, "command": _command(job)}


def _compare(folds: list[Any], steps: int, X: Any, Y: Any, law: Any) -> dict[str, Any]:
    """Held-out errors with the law and without it, of the same regressions on the same rows."""
    y = Y.to_numpy()
    errors = {name: np.full(y.shape, np.nan) for name in ("without", "with")}
    violation = dict.fromkeys(errors, 0.0)
    status: dict[str, int] = {}
    for k, (train, test) in enumerate(folds):
        say(f"comparing on held-out rows, part {k + 1} of {len(folds)}", k, steps)
        model = ConstrainedRegressor(law).fit(X.iloc[train], Y.iloc[train])
        d = model.decode(X.iloc[test])
        C = model.constraint_.at(X.iloc[test].to_numpy())
        found = {"without": to_numpy(model.objective(X.iloc[test]).center).reshape(len(test), -1), "with": to_numpy(d.c)}
        for name, c in found.items():
            errors[name][test] = (c - y[test]) ** 2
            violation[name] = max(violation[name], float(np.nanmax(to_numpy(C.residual(c)), initial=0.0)))
        for name in d.status:
            status[str(name)] = status.get(str(name), 0) + 1
    spread = np.nanvar(y, axis=0)
    held = np.asarray(~np.isnan(errors["with"]).all(axis=0))
    rows = [
        {"output": name} | {how: float(np.sqrt(np.nanmean(errors[how][:, t]))) if held[t] else None for how in errors}
        for t, name in enumerate(Y.columns)
    ]
    use = held & (spread > 0)
    share = {how: float(np.mean(np.nanmean(e[:, use], axis=0) / spread[use])) for how, e in errors.items() if use.any()}
    tested = int(sum(len(test) for _, test in folds))
    return {"outputs": rows, "error": share, "violation": violation, "rows": tested, "status": status, "law": law is not None}


def _draw(folder: Path, model: Any, X: Any, Y: Any, law: Any) -> None:
    rows = np.unique(np.linspace(0, len(X) - 1, min(DRAWN, len(X))).astype(int))
    some, labels = X.iloc[rows], Y.iloc[rows].to_numpy()
    c, before = to_numpy(model.decode(some).c), to_numpy(model.objective(some).center).reshape(len(rows), -1)
    C = None if law is None else model.constraint_
    names = list(Y.columns)
    parts = {"unconstrained": None if law is None else before, "labels": labels, "X": some.to_numpy(), "names": names}
    for theme in THEMES:
        picture = drawn(theme, lambda: PredictionDisplay(c, C, **parts), size_of(len(names)))
        (folder / f"predictions-{theme}.svg").write_bytes(picture)
        if C is not None:
            bound = C.at(some.to_numpy())
            off = {"before the law": to_numpy(bound.residual(before)), "prediction": to_numpy(bound.residual(c))}
            (folder / f"residuals-{theme}.svg").write_bytes(drawn(theme, lambda off=off: ResidualDisplay(off)))


def _command(job: dict[str, Any]) -> str:
    """The same fit for the command line."""
    laws = "".join(f" --law {_quoted(one)}" for one in job["law"])
    return f"lawful fit {_quoted(job['name'])} --outputs {_quoted(','.join(job['outputs']))}{laws} --save model.lawful"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


# ---------------------------------------------------------------------- the doctor


def _examine(X: Any, Y: Any, law: Any) -> dict[str, Any]:
    say("examining the law", 0, 1)
    found = doctor(X, Y, law, held_out=False)
    equations = [
        {"name": e.name, "rows": e.n, "mean": e.mean, "noise": e.noise, "sigma": e.sigma, "p": e.p} for e in found.equations
    ]
    return {
        "alarms": [str(f) for f in found.alarms],
        "notes": [str(f) for f in found.notes],
        "untested": [what for what in found.untested if "held_out" not in what],  # that is what the comparison is for
        "equations": equations,
    }


def _plain(value: Any) -> Any:
    """For JSON: what is no finite number is null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except (ValueError, TypeError, MemoryError, ImportError, OSError) as error:
        print(json.dumps({"error": str(error) or type(error).__name__}), flush=True)
        sys.exit(2)
