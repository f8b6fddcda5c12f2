"""The curves of the paper with default settings: today's defaults beside those of version 0.1.

    python benchmarks/curves.py [--trials 10] [--seed 200] [--sizes 10 20 50 100 200 500 1000]

For every curve, noise, setting and size of `lawful reproduce synthetic`: the median test error over the trials of
`ConstrainedRegressor(C)` / that of `ConstrainedRegressor(C, loss=Square("residual"), surrogate=KernelRidge(tune="loo"))`, the
defaults of version 0.1, on the same draws; and the same for the fits without the law. Ratios below 1: today's are better.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lawful import ConstrainedRegressor, Square
from lawful.experiments.synthetic.draw import LAWS, NOISE, draw
from lawful.experiments.synthetic.work import SETTINGS, SIZES, load
from lawful.metrics import mean_squared_error
from lawful.surrogates import KernelRidge

MODELS = {"today": {}, "0.1": {"loss": Square("residual"), "surrogate": KernelRidge(tune="loo")}}


def errors(curve: str, laws: dict, n: int, noise: str, setting: str, seed: int) -> dict[str, dict[str, float]]:
    """{model: {law or "no law": test error, "seconds": CPU seconds of fits and predictions}}."""
    trial = draw(curve, n, noise, setting, seed)
    out = {}
    for name, settings in MODELS.items():
        found: dict[str, float] = {}
        begin = time.process_time()
        for law in LAWS[curve]:
            model = ConstrainedRegressor(laws[law], **settings).fit(trial.X, trial.Y)
            found[law] = mean_squared_error(trial.Y_test, model.predict(trial.X_test))
        found["seconds"] = time.process_time() - begin
        found["no law"] = mean_squared_error(trial.Y_test, model.surrogate_.predict(trial.X_test))
        out[name] = found
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options = parser.parse_args()
    laws = load(None)  # type: ignore[arg-type]
    ratios: dict[str, list[float]] = {"law": [], "no law": []}
    seconds = dict.fromkeys(MODELS, 0.0)
    print(f"{'law':20} {'noise':9} {'setting':14} {'n':>5} {'0.1':>10} {'today':>10} {'ratio':>7} {'no law':>7}")
    for curve in LAWS:
        for noise in NOISE:
            for setting in SETTINGS:
                for n in options.sizes:
                    seeds = range(options.seed, options.seed + options.trials)
                    found = [errors(curve, laws, n, noise, setting, seed) for seed in seeds]
                    for name in MODELS:
                        seconds[name] += sum(one[name]["seconds"] for one in found)
                    plain = _ratio(found, "no law")
                    ratios["no law"].append(plain)
                    for law in LAWS[curve]:
                        ratio = _ratio(found, law)
                        ratios["law"].append(ratio)
                        print(
                            f"{law:20} {noise:9} {setting:14} {n:>5} {_median(found, '0.1', law):>10.3g} "
                            f"{_median(found, 'today', law):>10.3g} {ratio:>7.3f} {plain:>7.3f}",
                            flush=True,
                        )
    for name, values in ratios.items():
        print(
            f"{name}: geometric mean {np.exp(np.mean(np.log(values))):.3f}, worst {max(values):.3f}, "
            f"above 1.02 in {sum(v > 1.02 for v in values)} of {len(values)} cells"
        )
    print(f"CPU seconds: today {seconds['today']:.0f}, 0.1 {seconds['0.1']:.0f}")


def _median(found: list[dict], name: str, law: str) -> float:
    return float(np.median([one[name][law] for one in found]))


def _ratio(found: list[dict], law: str) -> float:
    return _median(found, "today", law) / _median(found, "0.1", law)


if __name__ == "__main__":
    main()
