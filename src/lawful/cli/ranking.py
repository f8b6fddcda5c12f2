"""`lawful rank`: a consistent order of items for every row of a table of ratings with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lawful import estimators
from lawful.cli.predicting import Output
from lawful.cli.settings import Config, Force, Inputs, Json, Quiet
from lawful.cli.tables import choose, free, numbers, pandas, read, writing
from lawful.cli.words import Trouble, console, speaking, tell, tell_json
from lawful.saving.models import load

__all__ = ["rank"]


def rank(
    data: Annotated[Path, typer.Argument(help="Ratings: a row for each query, a column for each item, empty where unrated.")],
    items: Annotated[str, typer.Option(help="The columns that are items, names or patterns.")] = "*",
    inputs: Inputs = None,
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
    with speaking("rank"):
        free(output, force), free(save, force)
        table = read(data)
        ranker = None if model is None else load(model)
        if ranker is not None and not hasattr(ranker, "n_items_"):
            raise Trouble(f"{model} holds a {type(ranker).__name__}, which ranks nothing; `lawful predict` is for it")
        X, R = _parts(table, data, items, inputs, ranker)
        if ranker is None:
            with console().status(f"learning from {len(R)} rows and {R.shape[1]} items"):
                ranker = estimators.ConstrainedRanker().fit(X, R)
        if save is not None:
            ranker.save(save)
        out = _orders(ranker, X, R, top or ranker.n_items_, unrated)
        if not as_json or output is not None:
            with writing(output) as writer:
                writer.write(out)
        if as_json:
            tell_json(
                {"rows": len(out), "items": list(R.columns), "output": output and str(output), "orders": out.values.tolist()}
            )
        elif output is not None:
            tell(f"{len(out)} rows, {R.shape[1]} items: {output}", quiet)


def _parts(table: Any, path: Path, items: str, inputs: str | None, ranker: Any) -> tuple[Any, Any]:
    if ranker is None:
        given = [] if inputs is None else choose(table.columns, inputs, "--inputs")
        rated = [name for name in choose(table.columns, items, "--items") if name not in given]
    else:
        given = list(getattr(ranker, "feature_names_in_", []))
        rated = list(ranker.item_names_ or choose(table.columns, items, "--items"))
        table = table.assign(**{name: np.nan for name in rated if name not in table.columns})
    if len(rated) < 2:
        raise Trouble(f"{path} has {len(rated)} items, and two are needed to order them; name them with --items")
    X = numbers(table, given, path) if given else None
    return X, numbers(table, rated, path)


def _orders(ranker: Any, X: Any, R: Any, top: int, unrated: bool) -> Any:
    names = [str(name) for name in R.columns]
    best = ranker.recommend(X, top, ratings=R, exclude=R if unrated else None)
    words = np.array([*names, ""], dtype=object)[best]  # -1, where too few are left, is the empty one
    return pandas().DataFrame(words, columns=[f"rank{k + 1}" for k in range(best.shape[1])])
