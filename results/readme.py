"""The tables of docs/reproduction.md, from the rows in this folder.

    python results/readme.py            write it
    python results/readme.py --check    fail if the page says anything else (a test runs this)

Each folder here holds run.json (what was asked, versions, machine), rows.jsonl (what was measured) and summary.json (what it
cost), as `lawful reproduce` left them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lawful.experiments import EXPERIMENTS, Options
from lawful.experiments._document import blocks, minutes
from lawful.experiments._paired import spread
from lawful.experiments.paper import RANKING as PAPER_RANKING
from lawful.experiments.ranking.pages import HIDDEN, SYSTEMS
from lawful.experiments.ranking.summary import OURS, collect, paired, values
from lawful.experiments.synthetic.cells import FROM, NAMES, SELECTIONS, among, gather
from lawful.report.blocks import Claim, Table
from lawful.report.markdown import VERDICT, write

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "reproduction.md"
BEGIN, END = "<!-- made by results/readme.py -->", "<!-- end of what results/readme.py made -->"


class Result:
    """One folder."""

    def __init__(self, name: str) -> None:
        folder = HERE / name
        self.name = name
        self.run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.cost = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        self.rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
        asked = self.run["asked"]
        self.options = Options(quick=asked["quick"], trials=asked["trials"], seed=asked["seed"])
        self.sections = EXPERIMENTS[name].pages(self.rows, {}, self.options, asked["data"])

    @property
    def session(self) -> dict[str, Any]:
        """How it was made; a run in several sessions must have made all of them alike to be committed."""
        first, *others = self.run["sessions"]
        if any(s["versions"] != first["versions"] or s["command"] != first["command"] for s in others):
            raise ValueError(f"{self.name}: its sessions differ in command or versions; run it anew")
        return first

    @property
    def claims(self) -> list[Claim]:
        return [b for b in blocks(list(self.sections)) if isinstance(b, Claim)]

    def table(self, title: str) -> Table:
        section = next(s for s in self.sections if s.title == title)
        return next(b for b in section.blocks if isinstance(b, Table))


def overview(results: list[Result]) -> str:
    rows = []
    for r in results:
        count = [str(sum(c.holds is verdict for c in r.claims)) for verdict in (True, False, None)]
        seeds = f"{r.options.seed} to {r.options.seed + r.options.trials - 1}"
        rows.append([f"`{r.session['command']}`", seeds, str(len(r.rows)), minutes(r.cost["wall_s"]), *count])
    columns = ["command", "seeds", "rows", "wall time", "claims that hold", "do not", "undecided"]
    return write(Table(columns, rows))


def synthetic(result: Result) -> str:
    large = [c for c in gather(result.rows) if c.n >= FROM]
    short = {"paper": "after projection", "ridge": "before projection", "default": "ours, by default"}
    rows = []
    for law, name in NAMES.items():
        for selection in SELECTIONS:
            cells = among(large, law=law, selection=selection)
            line = [name, short[selection]]
            for rival in ("STL", "MTRL"):
                ratios = np.concatenate([c.ratios("NL-MTL", rival) for c in cells])
                lost = sum(c.ratio("NL-MTL", rival) >= 1 for c in cells)
                line += [f"{np.median(ratios):.2f}", f"{int((ratios < 1).sum())} of {len(ratios)}", f"{lost} of {len(cells)}"]
            rows.append(line)
    columns = [
        "curve",
        "sigma, lambda by the error",
        "MSE / STL",
        "trials won",
        "cells lost",
        "MSE / MTRL",
        "trials won",
        "cells lost",
    ]
    return write(Table(columns, rows))


def sarcos(result: Result) -> str:
    table = result.table("The table")
    return write(Table(table.columns, table.rows, "", table.bold))


def ranking(result: Result) -> str:
    every = {protocol: collect(result.rows, protocol) for protocol in ("A", "B")}
    rows = []
    for label, name, paper in SYSTEMS:
        if name in HIDDEN and name != "factor prior alone":
            continue
        line = [label, f"{PAPER_RANKING[paper][0]:.3f}" if paper else ""]
        for found in every.values():
            d = paired(found, name, OURS)
            line += [spread(values(found, name), 4) if name in found else "-", "" if name == OURS or d is None else str(d)]
        rows.append(line)
    return write(Table(["system", "paper", "A: N1", "less our defaults", "B: N1", "less our defaults"], rows))


def claims(results: list[Result], verdict: bool | None) -> str:
    found = [f"* {r.name}: {c.claim}." for r in results for c in r.claims if c.holds is verdict]
    return "\n".join(found) or "* none"


def section() -> str:
    results = {name: Result(name) for name in EXPERIMENTS}
    every = list(results.values())
    machines = {r.session["machine"] for r in every}
    shown = ("lawful", "python", "numpy", "scipy", "scikit-learn", "numba")
    versions = {", ".join(f"{k} {r.session['versions'][k]}" for k in shown) for r in every}
    made = "; ".join(sorted(versions))
    parts: list[Any] = [
        overview(every),
        f"Made on {'; '.join(sorted(machines))} with {made}; rows, settings and versions are in `results/`.",
        f"**Curves.** Two outputs on a curve, all trials with n >= {FROM} (noise 0.05 as standard deviation and as "
        "variance, shared "
        "inputs and separate ones): median of the paired ratio of test MSE. The paper does not say whether its "
        "hold-out error is "
        "taken before or after the projection; a cell (curve, noise, setting, n) is lost when the median ratio is 1 or more.",
        synthetic(results["synthetic"]),
        f"**Sarcos.** {results['sarcos'].table('The table').caption}",
        sarcos(results["sarcos"]),
        "**MovieLens 100k.** Rank loss N1, mean ± standard deviation; paired difference to `ConstrainedRanker()` (our "
        "defaults), mean ± "
        "standard error, above 0 where the system is worse. The paper does not state its scale. A: half of a test "
        "user's ratings are "
        "known; B: demographics only.",
        ranking(results["ranking"]),
        f"**Claims of the paper that {VERDICT[False].replace('does', 'do')}** in these runs (numbers in the reports):",
        claims(every, False),
        "**Undecided** (the difference is within two standard errors):",
        claims(every, None),
    ]
    return "\n\n".join([BEGIN, *parts, END])


def main(words: list[str]) -> int:
    text = PAGE.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"{PAGE} must hold the lines {BEGIN!r} and {END!r} once each", file=sys.stderr)
        return 2
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    made = before + section() + after
    if "--check" in words:
        if made != text:
            print("docs/reproduction.md is not what the rows say; run: python results/readme.py", file=sys.stderr)
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
