"""Inverse kinematics: the angles of an arm from the place of its hand, along a path.

    python examples/arms.py [--out FOLDER]

Training poses are of two branches alike (elbow up and down; wrist turned or not), and the law is the arm's geometry. Row by row
either branch fits about as well, and the answer jumps between them; as a sequence, one is followed.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lawful import ConstrainedRegressor, DecodingWarning, Equations, KernelRidge

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


def run(arm: str = "planar, two joints", rows: int = 60, seed: int = 0, out: Any = None) -> dict[str, Any]:
    law, _, low, high, _ = ARMS[arm]
    model = model_of(arm, seed)
    path = smooth_path(np.random.default_rng([seed, 1]), low, high, rows)
    x = hand(law, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        alone, together = model.decode(x), model.decode(x, sequence=True)
    print(f"{arm}: {jumps(alone.c)} jumps row by row, {jumps(together.c)} as a sequence, of {rows} rows")
    print(f"hand off by at most {np.abs(hand(law, together.c) - x).max():.1e}; all rows ok: {(together.status == 'ok').all()}")
    if out is not None:
        print("picture:", picture(alone.c, together.c, Path(out), f"arm_{len(low)}.png"))
    return {
        "alone": jumps(alone.c),
        "sequence": jumps(together.c),
        "ok": float(np.mean(together.status == "ok")),
        "off": float(np.abs(hand(law, together.c) - x).max()),
    }


def picture(alone: np.ndarray, together: np.ndarray, folder: Path, name: str) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, c, title in zip(axes, (alone, together), ("row by row", "as a sequence")):
        for t in range(c.shape[1]):
            axis.plot(c[:, t], ".-", ms=4, lw=1.2, label=f"$y_{t + 1}$")
        axis.set(xlabel="row", title=title)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("angle")
    axes[1].legend(frameon=False, ncols=2)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the pictures")
    options = parser.parse_args()
    for arm in ARMS:
        run(arm, out=options.out)


if __name__ == "__main__":
    main()
