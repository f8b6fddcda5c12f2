"""From finished runs to a report: what was asked, what holds, the experiments' own pages, time, memory and versions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lawful.experiments._runner import Run
from lawful.experiments._store import flat, replace
from lawful.experiments.paper import ERRATA
from lawful.report import html, markdown
from lawful.report.blocks import Bullets, Claim, Figure, Grid, Section, Table, Text
from lawful.report.pictures import png

PAPER = 'Ciliberto, Rudi, Rosasco, Pontil, "Consistent Multitask Learning with Nonlinear Output Relations" (NeurIPS 2017)'


def write_report(runs: list[Run], folder: Path) -> Path:
    """report.html, report.md and figures/ in `folder`; the path of the page."""
    title = "Reproduction: " + (runs[0].experiment.title if len(runs) == 1 else "the paper's experiments")
    pages = [(run, run.experiment.pages(run.rows, run.seconds(), run.options, run.asked["data"])) for run in runs]
    several = len(runs) > 1
    sections = [
        Section(f"{run.experiment.name.capitalize()}: {s.title}", s.blocks) if several else s
        for run, found in pages
        for s in found
    ]
    summary = [*asked(runs), *headline(pages)]
    sections += [Section("Errata of the paper", [Bullets([f"**{e}** {text}" for e, text in ERRATA.items()])]), made(runs)]
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for figure in figures(sections):
        (folder / "figures" / f"{figure.name}.png").write_bytes(png(figure))
    replace(folder / "report.md", markdown.document(title, summary, sections))
    replace(folder / "report.html", html.document(title, summary, sections))
    return folder / "report.html"


def write_table(run: Run, folder: Path) -> None:
    """results.csv, the rows for a spreadsheet; summary.json, what they cost."""
    rows = flat(run.rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace(folder / "results.csv", text.getvalue())
    cost = {"rows": len(rows), "wall_s": round(run.wall(), 1), "core_s": round(run.work(), 1), "peak_mb": run.peak()}
    means = {label: round(sum(seconds) / len(seconds), 3) for label, seconds in sorted(run.seconds().items())}
    replace(folder / "summary.json", json.dumps({**cost, "mean_seconds": means}, indent=2) + "\n")


def blocks(items: list[Any]) -> Iterator[Any]:
    for item in items:
        yield item
        if isinstance(item, Section):
            yield from blocks(item.blocks)
        elif isinstance(item, Grid):
            yield from item.figures


def figures(sections: list[Section]) -> list[Figure]:
    found = [b for b in blocks(sections) if isinstance(b, Figure)]
    repeated = {f.name for f in found if sum(g.name == f.name for g in found) > 1}
    if repeated:
        raise ValueError(f"figures of one report need different names; repeated: {', '.join(sorted(repeated))}")
    return found


def asked(runs: list[Run]) -> list[Any]:
    """What was asked, in a few lines."""
    quick = any(run.options.quick for run in runs)
    lines = [f"`{run.sessions[-1]['command']}`" for run in runs]
    lines += [f"{run.experiment.name}: {line}" for run in runs for line in run.asked["data"]]
    found: list[Any] = [Text(f"A reproduction by `lawful` of {PAPER}. What was asked:"), Bullets(lines)]
    if quick:
        found.append(
            Text("**This is a quick run**: few trials and small sizes. It shows that everything works, not what is true.")
        )
    return found


def headline(pages: list[tuple[Run, list[Section]]]) -> list[Any]:
    """How many claims hold, and which do not."""
    rows = []
    for run, sections in pages:
        claims = [b for b in blocks(list(sections)) if isinstance(b, Claim)]
        if claims:
            count = [sum(c.holds is verdict for c in claims) for verdict in (True, False, None)]
            rows.append([run.experiment.name, *map(str, count)])
    if not rows:
        return []
    columns = ["experiment", "claims that hold", "that do not", "undecided"]
    return [Table(columns, rows, "Claims of the paper, as tested in this run; the numbers stand with each claim below.")]


def minutes(seconds: float) -> str:
    """
    >>> minutes(75)
    '1 min 15 s'
    """
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest} s" if whole else f"{seconds:.1f} s"


def made(runs: list[Run]) -> Section:
    """Time, memory, seeds, versions."""
    rows = []
    for run in runs:
        last = run.options.seed + run.options.trials - 1
        jobs = ", ".join(dict.fromkeys(str(s["n_jobs"]) for s in run.sessions))
        rows.append([run.experiment.name, str(len(run.rows)), f"{run.options.seed} to {last}", minutes(run.wall())])
        rows[-1] += [minutes(run.work()), jobs, f"{run.peak():.0f} MB" if run.peak() else "not measured"]
    columns = ["experiment", "rows", "seeds", "wall time", "core time", "workers", "memory of a worker"]
    found: list[Any] = [
        Table(columns, rows, "Wall time is from start to last row, added over sessions if the run was resumed.")
    ]
    lines = []
    for session in dict.fromkeys((s["machine"], *s["versions"].items()) for run in runs for s in run.sessions):
        machine, *versions = session
        lines.append(f"{machine}; " + ", ".join(f"{name} {number}" for name, number in versions))
    found += [Text("Machines and versions:"), Bullets(lines)]
    kept = "rows (`rows.jsonl`, `results.csv`), times (`times.jsonl`) and settings (`run.json`) are beside this report"
    found.append(Text(f"All {kept}. The same command gives the same rows, byte for byte, on the same machine and versions."))
    return Section("Time, memory, versions", found)
