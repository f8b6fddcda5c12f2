"""Mutation testing of the numerical core: are the tests able to notice a wrong sign, a wrong number, a missing step?

    make coverage                        which tests run which line, and how long each takes
    python scripts/mutants.py --sample 40 --seed 0

Places in the code are drawn at random, an equal number from each part, and one of cosmic-ray's operators is applied at each (a
place first, so that `a + b`, which has eleven mutants, counts as often as `not a`, which has one). A mutant is killed when one
of the tests that run its line fails: the quickest of them, and some of every test file. What is run when a module is loaded,
where no test is, is left to the tests that run what uses it. A mutant that no test runs has survived. Types are no code and are
left out. At a place of each part nothing is changed first: a killing there would be a fault of this script. All is done in a
copy of the tree; each mutant is a process of its own, with a limit on its processor time.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "losses": "losses/*.py",
    "sets": "sets/*.py",
    "decoders/base": "decoders/base.py",
    "surrogates/exact": "surrogates/exact.py",
}
# What tests load, loaded once for all mutants.
HEAVY = ("numpy", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.utils.estimator_checks", "pandas", "numba")
HEAVY += ("hypothesis", "sympy", "cvxpy", "clarabel", "array_api_strict", "array_api_compat.numpy", "rich.progress", "joblib")
PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rfE")
PYTEST += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what is loaded already
QUICK = 60  # of the tests that run a line, the quickest
TESTS, WORTH = 60, 30.0  # and of all test files in turn so many more, or so many seconds of them as `make coverage` timed them
FIRST = QUICK  # are tried first: most mutants fall there, and no other test file is loaded
SECONDS = 90  # of processor time for a mutant: more is a loop that does not end


class Mutant(NamedTuple):
    path: Path  # inside the tree
    line: int
    operator: str
    occurrence: int


Place = tuple[Path, int]


def plain(test: str) -> str:
    """A test's name without the group (`name@group`) that keeps tests together when they are run in parallel."""
    return re.sub(r"@\w+$", "", test)


class Known(NamedTuple):
    """What `make coverage` found: the tests that run a line, and seconds of each test."""

    lines: dict[Path, dict[int, set[str]]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, data: list[Path], times: list[Path]) -> Known:
        lines: dict[Path, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in data:
            found = coverage.CoverageData(str(file))
            found.read()
            for measured in found.measured_files():
                place = Path("src", "lawful", *Path(measured).parts[Path(measured).parts.index("lawful") + 1 :])
                for line, contexts in found.contexts_by_lineno(measured).items():
                    lines[place][line] |= {plain(context[: -len("|run")]) for context in contexts if context.endswith("|run")}
        seconds = {}
        for file in times:
            for case in ElementTree.parse(file).getroot().iter("testcase"):
                if not len(case):  # neither failed nor skipped
                    seconds[plain(f"{case.get('classname')}.{case.get('name')}")] = float(case.get("time", 0))
        return cls(lines, seconds)

    def time(self, test: str) -> float | None:
        name, bracket, rest = test.partition("[")
        return self.seconds.get(name.replace(".py::", ".").replace("::", ".").replace("/", ".") + bracket + rest)

    def running(self, wanted: set[Place]) -> set[str]:
        return set().union(*(self.lines[path].get(line, set()) for path, line in wanted))

    def tests(self, wanted: set[Place], around: set[Place]) -> list[str]:
        """Tests that run these lines, and where there are any those that run something around them too.

        The quickest, and then the quickest of every file in turn: tests of one file are often about one thing.
        """
        found = self.running(wanted)
        found = found & self.running(around) or found
        timed = sorted((seconds, test) for test in found if (seconds := self.time(test)) is not None)
        place: Counter[str] = Counter()
        turns = []
        for seconds, test in timed[QUICK:]:
            file = test.partition("::")[0]
            turns.append((place[file], seconds, test))
            place[file] += 1
        chosen, spent = [test for _, test in timed[:QUICK]], 0.0
        for _, seconds, test in sorted(turns)[:TESTS]:
            spent += seconds
            if spent > WORTH:
                break
            chosen.append(test)
        return chosen


def annotations(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where types stand."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n is not None]


def places(path: Path) -> dict[tuple[int, int], list[Mutant]]:
    """All mutants of a module, by the place that they change."""
    code = path.read_text(encoding="utf-8")
    types, tree = annotations(ast.parse(code)), get_ast(code)
    nodes = list(ast_nodes(tree))
    found: dict[tuple[int, int], list[Mutant]] = defaultdict(list)
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments():  # needs names of variables
            continue
        operator, occurrence = kind(), 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not any(low <= start < high for low, high in types):
                    found[start].append(Mutant(path.relative_to(ROOT), start[0], name, occurrence))
                occurrence += 1
    return found


def lines_of(mutant: Mutant) -> tuple[set[Place], set[Place]]:
    """The statement, and what stands around it.

    For a constant of the module, the statements that use it, here or elsewhere; for an attribute of a class, those that read
    one of that name, the class around it; for a default, the function.
    """
    tree = parsed(mutant.path)
    statements = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)]
    around = [n for n in statements if n.lineno <= mutant.line <= (n.end_lineno or n.lineno) or _decorated(n, mutant.line)]
    inner = max(around, key=lambda n: (n.lineno, -(n.end_lineno or 0)))
    compiled = [
        n.name for n in around if isinstance(n, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in n.decorator_list)
    ]
    if compiled:  # no tracer sees it run: those who call it
        return used(mutant.path, set(compiled)), set()
    if isinstance(inner, ast.FunctionDef | ast.ClassDef):
        return inside(mutant.path, inner), set()
    stored = {n.id for n in ast.walk(inner) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if inner in tree.body:
        return used(mutant.path, stored), set()
    owner = next((n for n in around if isinstance(n, ast.ClassDef) and inner in n.body), None)
    if owner is not None:
        return read_as_attributes(frozenset(stored)), inside(mutant.path, owner)
    return {(mutant.path, inner.lineno)}, set()


def inside(path: Path, node: ast.stmt) -> set[Place]:
    return {(path, n.lineno) for n in ast.walk(node) if isinstance(n, ast.stmt)} - {(path, node.lineno)}


@lru_cache(None)
def read_as_attributes(names: frozenset[str]) -> set[Place]:
    """The statements anywhere that read attributes of these names."""
    paths = [p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.py")]
    found = [
        (path, n.lineno) for path in paths for n in ast.walk(parsed(path)) if isinstance(n, ast.Attribute) and n.attr in names
    ]
    return set().union(
        *(starts(path, {line for place, line in found if place == path}) for path in {path for path, _ in found})
    )


def used(path: Path, names: set[str]) -> set[Place]:
    """The statements that use names of a module, there or where they are imported."""
    here = ".".join(path.with_suffix("").parts[1:])
    importing = [p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.py") if f"from {here} import" in p.read_text()]
    return set().union(*(uses(place, names) for place in (path, *importing)))


@lru_cache(None)
def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def uses(path: Path, names: set[str]) -> set[Place]:
    """Where a module uses names: the first lines of the statements."""
    tree = parsed(path)
    return starts(
        path, {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)}
    )


def starts(path: Path, lines: set[int]) -> set[Place]:
    """The first lines of the statements that hold these lines."""
    tree = parsed(path)
    plain = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not isinstance(s, ast.FunctionDef | ast.ClassDef)]
    return {(path, s.lineno) for s in plain for line in lines if s.lineno <= line <= (s.end_lineno or s.lineno)}


def _decorated(node: ast.stmt, line: int) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and any(d.lineno == line for d in node.decorator_list)


def failed(tests: list[str], log: Path) -> str | None:
    """The first test or test file that fails, in a process of its own; "" where none is named (a limit), None if all pass."""
    child = os.fork()
    if not child:
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1), os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        try:
            code = pytest.main([*PYTEST, *tests])
        except BaseException:
            code = 3
        os._exit(int(code))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        return None
    words = (line.partition(" ") for line in log.read_text(encoding="utf-8", errors="replace").splitlines())
    named = [rest.partition(" - ")[0] for word, _, rest in words if word in ("FAILED", "ERROR")]
    files = {test.partition("::")[0] for test in tests}
    return next((name for name in named if name in tests or name in files), "")


class Copy:
    """The tree, copied, in which one module at a time is another."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        # all of it: tests read docs, benchmarks and examples
        away = shutil.ignore_patterns(".*", "_build", "__pycache__", "out", "dist", "reproduction")
        shutil.copytree(ROOT, self.folder, dirs_exist_ok=True, ignore=away)
        os.chdir(self.folder)
        sys.path[:0] = [str(self.folder / "src"), str(self.folder / "tests")]
        os.environ["PYTHONPATH"] = str(self.folder / "src")
        self.stamp, self.sound = time.time(), set()  # type: float, set[str]

    def write(self, path: Path, text: str) -> None:
        (self.folder / path).write_text(text, encoding="utf-8")
        self.stamp += 10  # no compiled file of an earlier text is taken for this one
        os.utime(self.folder / path, (self.stamp, self.stamp))

    def survives(self, path: Path, before: str, after: str, tests: list[str]) -> bool:
        return all(self._passes(path, before, after, part) for part in (tests[:FIRST], tests[FIRST:]))

    def _passes(self, path: Path, before: str, after: str, tests: list[str]) -> bool:
        """Whether all tests pass with the mutant; one that fails without it too is no witness."""
        while tests:
            self.write(path, after)
            first = failed(tests, self.folder / "log")
            self.write(path, before)
            if first is None:
                return True
            again = [test for test in tests if first in (test, test.partition("::")[0])] or tests
            if first in self.sound or failed(again, self.folder / "log") is None:
                self.sound |= {first} - {""}
                return False
            tests = [test for test in tests if test not in again]
        return True


def difference(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=40, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--data", type=Path, default=ROOT / ".coverage-data", help="the folder that `make coverage` wrote")
    parser.add_argument("--control", type=int, default=1, help="places of each part at which nothing is changed; must survive")
    parser.add_argument("--least", type=float, default=0.85, help="the share that must be killed")
    options = parser.parse_args()
    known = Known.read(sorted(options.data.glob(".coverage*")), sorted(options.data.glob("*.xml")))
    for module in HEAVY:
        import_module(module)
    work = Copy()
    killed, total, controls = defaultdict(int), defaultdict(int), defaultdict(int)
    try:
        for part in options.parts:
            draw = random.Random(f"{options.seed} {part}")
            found = {
                (path, place): mutants
                for path in sorted((ROOT / "src" / "lawful").glob(PARTS[part]))
                for place, mutants in sorted(places(path).items())
            }
            chosen = draw.sample(sorted(found), min(options.sample, len(found)))
            print(f"{part}: {len(chosen)} of {len(found)} places", flush=True)
            for key in [*chosen[: options.control], *chosen]:
                mutant = draw.choice(found[key])
                before = (ROOT / mutant.path).read_text(encoding="utf-8")
                tests = known.tests(*lines_of(mutant))
                controls[part] += 1
                if controls[part] <= options.control:
                    if not work.survives(mutant.path, before, before + "\n", tests):
                        raise SystemExit(f"mutants: {mutant.path}:{mutant.line} was killed though nothing was changed there")
                    continue
                after = mutate_code(before, get_operator(mutant.operator)(), mutant.occurrence)
                survived = work.survives(mutant.path, before, after, tests)
                total[part] += 1
                killed[part] += not survived
                print(f"{total[part]}\r", end="", flush=True)
                if survived:
                    name = mutant.operator.removeprefix("core/")
                    print(
                        f"survived {mutant.path}:{mutant.line} {name} ({len(tests)} tests)",
                        *difference(before, after),
                        sep="\n  ",
                    )
                    sys.stdout.flush()
            print(f"{part}: {killed[part]} of {total[part]} killed, {killed[part] / total[part]:.0%}", flush=True)
    finally:
        os.chdir(ROOT)
        shutil.rmtree(work.folder, ignore_errors=True)
    share = sum(killed.values()) / sum(total.values())
    print(f"all: {sum(killed.values())} of {sum(total.values())} killed, {share:.1%}")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
