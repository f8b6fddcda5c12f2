"""A million rows onto a law, on the CPU and on a GPU: seconds, and what is left of the law.

    python benchmarks/decode_gpu.py [--rows 1000000] [--device cuda]

The lemniscate y1^4 = y1^2 - y2^2, and the six equations of a distillation column (products D and B of a feed of two
components, with reflux), around a state that obeys them. torch in, torch out: the arrays never leave the device.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np

if importlib.util.find_spec("array_api_compat") is None:  # scikit-learn brings a copy
    from sklearn.externals import array_api_compat

    sys.modules["array_api_compat"] = array_api_compat
if importlib.util.find_spec("clarabel") is None:  # an interior-point solver that neither law needs
    sys.modules["clarabel"] = ModuleType("clarabel")
if importlib.util.find_spec("lawful") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from lawful.decoders.points import project
from lawful.sets.equations import Equations

COLUMN = [
    "y1 + y2 = 100",
    "y1*y3 + y2*y6 = 35",
    "y1*y4 + y2*y7 = 40",
    "y3 + y4 + y5 = 1",
    "y6 + y7 + y8 = 1",
    "y9 = 1.8*y1",
]
STATE = np.array([60.0, 40.0, 0.55, 0.30, 0.15, 0.05, 0.55, 0.40, 108.0])


def clouds(rows: int) -> dict[str, tuple[list[str] | str, np.ndarray]]:
    rng = np.random.default_rng(0)
    angle = rng.uniform(-np.pi, np.pi, rows)
    curve = np.c_[np.sin(angle), np.sin(2 * angle) / 2] + 0.05 * rng.standard_normal((rows, 2))
    column = STATE * (1 + 0.03 * rng.standard_normal((rows, 9)))
    return {"lemniscate": ("y1**4 = y1**2 - y2**2", curve), "column": (COLUMN, column)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    import torch

    for name, (law, points) in clouds(options.rows).items():
        C = Equations(law).fit(points[:200])
        there = torch.asarray(points, device=options.device)
        project(there[:1000, :], C)  # the first call compiles
        for _ in range(2):
            wait(torch, options.device)
            begin = time.perf_counter()
            d = project(there, C, certificate=True)
            wait(torch, options.device)
            seconds = time.perf_counter() - begin
        share = float((d.code == 0).double().mean())
        off = float(C.relative(d.c).max())
        print(f"{name}: {options.rows} rows on {options.device}: {seconds:.2f} s, ok {share:.6f}, worst violation {off:.1e}")
        some = points[:20_000]
        if importlib.util.find_spec("numba") is None:
            continue
        project(some[:1000], C)
        begin = time.perf_counter()
        project(some, C)
        print(f"    numpy, {len(some)} rows: {(time.perf_counter() - begin) / len(some) * options.rows:.2f} s for as many")


def wait(torch, device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
