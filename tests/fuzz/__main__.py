"""python -m tests.fuzz: see the package's docstring."""

from __future__ import annotations

import argparse
import os
import sys

for name in ("OMP", "OPENBLAS", "MKL"):  # before numpy is loaded: small arrays, and one worker for each processor
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")

from .run import run, show_case, work  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Attack the certificates of lawful.")
    parser.add_argument("--n", type=int, default=100_000, help="number of calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of processor time for one call")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--case", type=int, help="run one case, and print it as Python")
    parser.add_argument("--call", type=int, help="of that case, only this call")
    parser.add_argument("--examples", type=str, help="a file for all the examples of failures")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        for line in work(given.seed, given.start, given.step, sys.maxsize // max(given.step, 1), given.limit):
            print(line, flush=True)
        return 0
    if given.case is not None:
        return int(any(v.failures for v in show_case(given.seed, given.case, given.call)))
    report = run(given.n, given.seed, given.jobs, given.limit, given.seconds, progress=True)
    print(f"seed {given.seed}: {report}")
    if given.examples:
        with open(given.examples, "w", encoding="utf-8") as file:
            file.writelines(f"{kind}\t{text}\n" for kind, texts in report.examples.items() for text in texts)
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
