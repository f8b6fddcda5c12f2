"""Inverse kinematics along trajectories: how often the answer jumps between branches, row by row and as a sequence.

    python benchmarks/sequence.py [--trajectories 100] [--seed 7000] [--rows 60]

A planar arm of two joints and an arm of six. Training poses are of two branches alike (elbow up and down; wrist turned or not),
so that the regression of the angles on the place of the hand cannot tell them apart. The law is the arm's geometry.
A trajectory jumps where a step of the answer is more than ten times as long as its median step.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from lawful import ConstrainedRegressor, Equations, KernelRidge

PLANAR = ["cos(y1) + 0.8*cos(y1 + y2) = x1", "sin(y1) + 0.8*sin(y1 + y2) = x2"]
# Six joints: a turning base, shoulder, elbow, and a wrist that rolls, bends and rolls. The hand points along (AX, AY, AZ).
AX = "(cos(y2 + y3)*cos(y5) + sin(y2 + y3)*cos(y4)*sin(y5))"
AY = "(sin(y4)*sin(y5))"
AZ = "(sin(y2 + y3)*cos(y5) - cos(y2 + y3)*cos(y4)*sin(y5))"
REACH = f"(cos(y2) + 0.9*cos(y2 + y3) + 0.2*{AX})"
SIX = [
    f"cos(y1)*{REACH} - 0.2*sin(y1)*{AY} = x1",
    f"sin(y1)*{REACH} + 0.2*cos(y1)*{AY} = x2",
    f"sin(y2) + 0.9*sin(y2 + y3) + 0.2*{AZ} = x3",
    f"sin(y1)*{AX} + cos(y1)*{AY} = x4",
    f"{AZ} = x5",
    "sin(y2 + y3)*sin(y5)*sin(y6) + cos(y2 + y3)*(sin(y4)*cos(y6) + cos(y4)*cos(y5)*sin(y6)) = x6",
]
# Poses away from those in which branches meet: a straight elbow or wrist.
PLANAR_RANGE = np.array([[-0.6, 0.7], [0.6, 2.2]])
SIX_RANGE = np.array([[-0.4, 0.9, -0.9, -0.4, 0.5, -0.4], [0.4, 1.3, -0.4, 0.4, 1.1, 0.4]])


def hand(law: list[str], q: np.ndarray) -> np.ndarray:
    """Where the hand is for angles q: what the law says x is."""
    d = len(law)
    zero = np.zeros((len(q), d))
    return Equations(law).fit(q, zero).at(zero).equality(q)


def planar_pose(rng: np.random.Generator, n: int) -> np.ndarray:
    """The same places of the hand with the elbow up and down."""
    up = rng.uniform(*PLANAR_RANGE, (n, 2))
    q1, q2 = up.T
    turn = 2 * np.arctan2(0.8 * np.sin(q2), 1 + 0.8 * np.cos(q2))
    down = np.c_[q1 + turn, -q2]
    return np.where(rng.random((n, 1)) < 0.5, up, down)


def six_pose(rng: np.random.Generator, n: int) -> np.ndarray:
    """Angles around one pose, with the wrist turned (y4 + pi, -y5, y6 + pi) or not."""
    q = rng.uniform(*SIX_RANGE, (n, 6))
    turned = q * [1, 1, 1, 1, -1, 1] + [0, 0, 0, np.pi, 0, np.pi]
    return np.where(rng.random((n, 1)) < 0.5, q, turned)


def smooth_path(rng: np.random.Generator, low: np.ndarray, high: np.ndarray, rows: int) -> np.ndarray:
    """A random smooth curve inside a box, well away from its border."""
    s = np.linspace(0, 1, rows)[:, None]
    phase, speed = rng.uniform(0, 2 * np.pi, (2, len(low))), rng.uniform(2, 5, (2, len(low)))
    wave = (np.sin(speed[0] * s + phase[0]) + np.sin(speed[1] * s + phase[1])) / 2
    return (low + high) / 2 + 0.4 * (high - low) * wave


ARMS = {
    "planar, two joints": (PLANAR, planar_pose, *PLANAR_RANGE, 300),
    "six joints": (SIX, six_pose, *SIX_RANGE, 500),
}


def jumps(c: np.ndarray) -> int:
    step = np.linalg.norm(np.diff(c, axis=0), axis=1)
    return int(np.sum(step > 10 * np.median(step)))


def model_of(arm: str, seed: int = 0) -> ConstrainedRegressor:
    """An arm's geometry, and a regression of its angles on the place of the hand."""
    law, pose, _, _, n = ARMS[arm]
    rng = np.random.default_rng(seed)
    q = pose(rng, n)
    return ConstrainedRegressor(Equations(law), surrogate=KernelRidge(lam=1e-3, tune="loo")).fit(
        hand(law, q), q + 0.02 * rng.standard_normal(q.shape)
    )


def compare(arm: str, trajectories: int, rows: int, seed: int) -> dict[str, float]:
    law, _, low, high, _ = ARMS[arm]
    model = model_of(arm, seed)
    found = {"alone": 0, "sequence": 0, "ok": 0.0, "seconds alone": 0.0, "seconds": 0.0}
    for k in range(trajectories):
        x = hand(law, smooth_path(np.random.default_rng([seed, k]), low, high, rows))
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
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7000)
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
