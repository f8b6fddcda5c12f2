"""The claims of the paper on the synthetic experiment, decided by paired trials."""

from __future__ import annotations

import numpy as np

from lawful.experiments.synthetic.cells import FROM, NAMES, SELECTIONS, Cell, among
from lawful.report.blocks import Claim

RIVALS, VARIANTS = ("STL", "MTRL"), ("NL-MTL[R]", "NL-MTL[P]")
LISTED = 6  # cells named one by one; more are counted
ENOUGH = 5  # trials a cell: the median of fewer paired ratios is below 1 too easily to decide anything
CLOSE = 1.1  # a variant that is so near to STL has fallen back on it


def claims(cells: list[Cell]) -> list[Claim]:
    large = [c for c in cells if c.n >= FROM]
    found = []
    for selection, how in SELECTIONS.items():
        for law in ("circle", "lemniscate", "lemniscate_tall"):
            text = f"NL-MTL outperforms STL and MTRL for n >= {FROM} on the {NAMES[law]}: {how}"
            found.append(beats(text, among(large, law=law, selection=selection)))
    printed = among(large, law="lemniscate_printed")
    found.append(printed_pair(printed))
    return found + [falls_back(how, among(printed, selection=selection)) for selection, how in SELECTIONS.items()]


def silent(text: str) -> Claim:
    return Claim(text, None, f"No row of this run has n >= {FROM} for it.")


def decided(text: str, holds: bool, numbers: list[str], cells: list[Cell]) -> Claim:
    """Undecided where a cell has too few trials."""
    fewest = min(c.trials for c in cells)
    if fewest >= ENOUGH:
        return Claim(text, holds, " ".join(numbers))
    return Claim(text, None, " ".join([*numbers, f"Undecided: a cell has {fewest} of the {ENOUGH} trials that it needs."]))


def against(cells: list[Cell], rival: str) -> str:
    ratios = np.concatenate([c.ratios("NL-MTL", rival) for c in cells])
    return (
        f"Against {rival}: {int((ratios < 1).sum())} of {len(ratios)} paired trials won, median ratio of MSE "
        f"{np.median(ratios):.2f}, median ratio 1 or more in {len(lost(cells, rival))} of {len(cells)} cells."
    )


def lost(cells: list[Cell], *rivals: str) -> list[Cell]:
    return [c for c in cells if any(c.ratio("NL-MTL", rival) >= 1 for rival in rivals)]


def beats(text: str, cells: list[Cell]) -> Claim:
    """Holds when the median paired ratio is below one in every cell, against both rivals."""
    if not cells:
        return silent(text)
    worse = lost(cells, *RIVALS)
    numbers = [against(cells, rival) for rival in RIVALS]
    if worse:
        named = [
            f"{c.noise}, {c.setting}, n = {c.n} ({c.ratio('NL-MTL', 'STL'):.2f} and {c.ratio('NL-MTL', 'MTRL'):.2f})"
            for c in worse[:LISTED]
        ]
        more = f"; and {len(worse) - LISTED} more" if len(worse) > LISTED else ""
        numbers.append(f"Cells that speak against it, with their median ratios: {'; '.join(named)}{more}.")
    return decided(text, not worse, numbers, cells)


def printed_pair(cells: list[Cell]) -> Claim:
    text = f"NL-MTL outperforms STL and MTRL for n >= {FROM} on the lemniscate exactly as printed: all selections"
    if not cells:
        return silent(text)
    floor = np.median(np.concatenate([c.mse["NL-MTL"] for c in cells]))
    because = f"It cannot: the printed function does not obey the printed equation (E1), which costs an MSE of {floor:.3f}."
    numbers = [against(cells, rival) for rival in RIVALS]
    worse = bool(lost(cells, *RIVALS))
    return decided(text, not worse, [*numbers, because] if worse else numbers, cells)


def falls_back(how: str, cells: list[Cell]) -> Claim:
    """Holds when both variants beat the exact law in every cell and, over all trials, cost at most a tenth more than STL."""
    text = (
        "NL-MTL[R] and NL-MTL[P] are for a law that holds only roughly; with the printed lemniscate and "
        f"n >= {FROM} they beat exact NL-MTL and fall back on STL: {how}"
    )
    if not cells:
        return silent(text)
    numbers, good = [], True
    for variant in VARIANTS:
        exact = np.concatenate([c.ratios(variant, "NL-MTL") for c in cells])
        free = np.concatenate([c.ratios(variant, "STL") for c in cells])
        worse = sum(c.ratio(variant, "STL") > CLOSE for c in cells)
        good = good and bool(np.median(free) <= CLOSE) and all(c.ratio(variant, "NL-MTL") < 1 for c in cells)
        numbers.append(
            f"{variant} beats exact NL-MTL in {int((exact < 1).sum())} of {len(exact)} trials; its MSE is "
            f"{np.median(free):.2f} times that of STL in the median over all trials, and above {CLOSE} times in the median of "
            f"{worse} of {len(cells)} cells."
        )
    return decided(text, good, numbers, cells)
