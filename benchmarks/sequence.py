"""Inverse kinematics along trajectories: how often the answer jumps between branches, row by row and as a sequence.

    python benchmarks/sequence.py [--trajectories 100] [--seed 8000] [--rows 40]

A planar arm of two joints and an arm of six. Training poses are of two branches alike (elbow up and down; wrist turned or not),
so that the regression of the angles on the place of the hand cannot tell them apart. The law is the arm's geometry.
A trajectory jumps where a step of the answer is more than ten times as long as its median step.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
from plot_inverse_kinematics import ARMS, hand, jumps, model_of, smooth_path  # a page of the gallery, which it runs


def compare(arm: str, trajectories: int, rows: int, seed: int) -> dict[str, float]:
    law, _, box, _ = ARMS[arm]
    model = model_of(arm, seed)
    found = {"alone": 0, "sequence": 0, "ok": 0.0, "seconds alone": 0.0, "seconds": 0.0}
    for k in range(trajectories):
        x = hand(law, smooth_path(np.random.default_rng([seed, k]), box, rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = time.perf_counter()
            alone = model.decode(x)
            middle = time.perf_counter()
            together = model.decode(x, sequence=True)
            found["seconds alone"] += (middle - begin) / trajectories
            found["seconds"] += (time.perf_counter() - middle) / trajectories
        found["alone"] += jumps(alone.c) > 0
        found["sequence"] += jumps(together.c) > 0
        found["ok"] += float(np.mean(together.status == "ok")) / trajectories
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=100)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seed", type=int, default=8000)
    options = parser.parse_args()
    print(f"{options.trajectories} trajectories of {options.rows} rows: how many have a jump, row by row and as a sequence")
    for arm in ARMS:
        r = compare(arm, options.trajectories, options.rows, options.seed)
        print(
            f"  {arm:<20}{r['alone']:>5.0f}{r['sequence']:>5.0f}   rows ok {r['ok']:.1%}"
            f"   {1000 * r['seconds alone']:.0f} ms and {1000 * r['seconds']:.0f} ms a trajectory",
            flush=True,
        )


if __name__ == "__main__":
    main()
