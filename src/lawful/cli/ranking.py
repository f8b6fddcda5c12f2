"""`lawful rank`: a consistent order of items for every row of a table of ratings with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lawful import estimators
from lawful.cli import tools
from lawful.cli.predicting import Output
from lawful.cli.settings import Config, Force, Given, Json, Quiet
from lawful.cli.words import Trouble, console, speaking, tell, tell_json

__all__ = ["rank"]


def rank(
    data: Annotated[Path, typer.Argument(help="Ratings: a row for each query, a column for each item, empty where unrated.")],
    items: Annotated[str, typer.Option(help="The columns that are items, names or patterns.")] = "*",
    inputs: Given = None,
    model: Annotated[
        Path | None, typer.Option(help="Rank with a saved ranker instead of learning one.", show_default=False)
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Where to write the ranker.", show_default=False)] = None,
    top: Annotated[int | None, typer.Option(min=1, help="So many items per query (default: all).", show_default=False)] = None,
    unrated: Annotated[bool, typer.Option("--unrated", help="Leave out what a query has rated already.")] = False,
    output: Output = None,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Order all items for every row, from ratings with gaps.

    [bold]lawful rank ratings.csv --items "film*" --inputs "age,city" --top 10 --unrated -o best.csv[/]

    Columns rank1, rank2, ... of the result name the items, best first.
    """
    with speaking("rank", as_json):
        tools.free(output, force, tools.SUFFIXES), tools.free(save, force)
        tools.apart(data=data, model=model, save=save, output=output)
        table = tools.read(data)
        ranker = None if model is None else tools.load(model)
        if ranker is not None and not hasattr(ranker, "n_items_"):
            raise Trouble(f"{model} holds a {type(ranker).__name__}, which ranks nothing; `lawful predict` is for it")
        X, R = tools.ratings(table, data, items, inputs, ranker)
        if ranker is None:
            with console().status(f"learning from {len(R)} rows and {R.shape[1]} items"):
                ranker = estimators.ConstrainedRanker().fit(X, R)
        if save is not None:
            ranker.save(save)
        out = tools.orders(ranker, X, R, min(top or ranker.n_items_, ranker.n_items_), unrated)
        if not as_json or output is not None:
            with tools.writing(output) as writer:
                writer.write(out)
        if as_json:
            tell_json(
                {"rows": len(out), "items": list(R.columns), "output": output and str(output), "orders": out.values.tolist()}
            )
        elif output is not None:
            tell(f"{len(out)} rows, {R.shape[1]} items: {output}", quiet)
