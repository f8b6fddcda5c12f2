"""The house rules, read from the source with `ast`: who may import whom, no cycles, no hidden imports, small modules."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "lawful").rglob("*.py"))
}


def source(path: Path) -> str:
    """The text of a module; a package that loads its names on first use lists them in a stub, which counts as part of it."""
    stub = path.with_suffix(".pyi")
    return path.read_text(encoding="utf-8") + ("\n" + stub.read_text(encoding="utf-8") if stub.exists() else "")


TREES = {name: ast.parse(source(path), str(path)) for name, path in MODULES.items()}
MAX_LINES = 500
OPTIONAL = {"dask", "matplotlib", "mpl_toolkits", "pandas", "pooch", "pyarrow", "torch"}  # may be imported inside a function
COMPILER = "numba"  # takes time to load: modules that are compiled by it may be imported inside a function
FORBIDDEN = {"eval", "exec", "compile", "sympify", "__import__"}  # a user's string is never run
REQUIRED = {"numpy", "scipy", "sklearn", "array_api_compat", "joblib", "threadpoolctl", "numba", "tqdm"}
REQUIRED |= {"clarabel"}  # convex problems row by row
REQUIRED |= {"rich", "typer"}  # the command line

# Who may import whom: room -> the rooms it may look into, besides itself. `lawful` is the package's own __init__.
# Helpers, `lawful/_*.py`, are for every room; what a helper itself looks into is listed.
ALLOWED: dict[str, set[str]] = {
    "_array": set(),
    "_checks": set(),
    "_correlations": set(),
    "_files": set(),
    "_html": set(),
    "_kernel_bases": set(),
    "_lazy": set(),
    "_memory": set(),
    "_ranker": {"metrics", "ratings", "tasks"},  # what rankers share, be they estimators or baselines
    "_small": set(),
    "_smooth": set(),
    "_lapack": set(),
    "_threads": set(),
    "folds": set(),
    "kernels": set(),
    "metrics": {"ratings", "tasks"},
    "plots": {"metrics"},
    "ratings": {"tasks"},  # tables of ratings: data sets, surrogates and baselines read them alike
    "report": {"saving"},
    "saving": set(),  # it looks classes up by name, so that they can offer to be saved
    "tasks": set(),
    "datasets": {"ratings"},
    "losses": set(),
    "sets": {"losses.quadratic"},  # the unconstrained minimum of a quadratic is defined once
    "surrogates": {"kernels", "ratings", "tasks", "folds", "saving"},
    "decoders": {"sets", "losses.quadratic"},
    "uncertainty": {"sets", "losses.quadratic"},  # draws on a law, and prediction sets inside it
    "estimators": {"decoders", "surrogates", "losses", "sets", "kernels", "tasks", "metrics", "folds", "saving", "uncertainty"},
    "baselines": {"surrogates", "kernels", "tasks", "metrics", "ratings", "folds"},
    "diagnosis": {"decoders", "sets", "tasks", "report"},  # is this law right for these data
    "scale": {"estimators", "surrogates", "decoders", "tasks"},  # tables larger than memory, on a cluster
    "rankings": {"decoders"},  # orders for anyone with a weight matrix
    "theory": {"decoders", "losses", "sets"},
    "studio": {"sets", "plots", "report", "estimators", "diagnosis"},  # one page; nothing but the command line starts it
    "cli": {"studio", "experiments", "lawful", "diagnosis", "estimators", "decoders", "sets", "saving", "report"},
    "__main__": {"cli"},
}
# Experiments use whatever a user can, and only the command line and nobody else uses them.
ALLOWED["lawful"] = set(ALLOWED) - {"cli", "__main__", "report", "studio"}
ALLOWED["experiments"] = ALLOWED["lawful"] | {"report"}


def imports(node: ast.AST) -> list[str]:
    """Full names of the modules that one import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute in this project"
        base = node.module or ""
        # `from lawful import datasets` names a module, `from lawful.tasks import Tasks` a thing inside one.
        return [f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names]
    return []


def all_imports(tree: ast.AST) -> list[str]:
    return [name for node in ast.walk(tree) for name in imports(node)]


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def permitted(module: str, target: str) -> bool:
    """Whether `module` may import `target`, both names inside lawful."""
    here, there = room(module), room(target)
    inside = target.removeprefix("lawful.")
    if here == there or (there.startswith("_") and there != "__main__"):
        return True
    return any(inside == name or inside.startswith(name + ".") for name in ALLOWED[here])


COMPILED = {module for module, tree in TREES.items() if COMPILER in all_imports(tree)}


def test_every_room_is_listed():
    assert {room(module) for module in MODULES} == set(ALLOWED)
    users = {room(module) for module, tree in TREES.items() if any(room(name) == "experiments" for name in all_imports(tree))}
    assert users == {"experiments", "cli"}


def test_the_drawing_shows_the_house():
    """`docs/design.md` draws every room, and no arrow that the rules forbid."""
    text = (ROOT.parent / "docs" / "design.md").read_text(encoding="utf-8")
    drawing = re.search(r"```mermaid\nflowchart TD\n(.*?)```", text, re.S)
    assert drawing
    lines = [re.sub(r"\[.*?\]", "", line).strip() for line in drawing[1].splitlines() if "subgraph" not in line]
    arrows = [re.fullmatch(r"(\w+) (?:--( \w+ --)?>) (.+)", line) for line in lines]
    drawn = {(a[1], to.strip(), "quadratic" in (a[2] or "")) for a in arrows if a for to in a[3].split("&")}
    rooms = {room for room in ALLOWED if not room.startswith("_")} - {"lawful"}
    assert {name for line in lines for name in re.findall(r"\w+", line)} - {"end", "quadratic"} == rooms
    for here, there, partly in drawn:
        assert f"{there}.quadratic" in ALLOWED[here] if partly else there in ALLOWED[here], f"{here} --> {there}"
    plain = {(here, there.split(".")[0]) for here in rooms - {"experiments"} for there in ALLOWED[here]} - {("cli", "lawful")}
    assert plain <= {(here, there) for here, there, _ in drawn}, "an arrow is missing"


@pytest.mark.parametrize("module", MODULES)
def test_layers(module):
    ours = [name for name in all_imports(TREES[module]) if name.split(".")[0] == "lawful"]
    trespassing = sorted({name for name in ours if not permitted(module, name)})
    assert not trespassing, f"{module} may not import {trespassing}; {room(module)} may import {sorted(ALLOWED[room(module)])}"


@pytest.mark.parametrize("module", MODULES)
def test_private_modules_stay_in_their_folder(module):
    """An underscore means: for this folder and the folders inside it."""
    for target in all_imports(TREES[module]):
        folder, _, name = target.rpartition(".")
        if target in MODULES and name.startswith("_") and name != "__init__":
            assert f"{module}.".startswith(f"{folder}."), f"{module} imports {target}, which is private to {folder}"


@pytest.mark.parametrize("module", MODULES)
def test_only_declared_packages(module):
    outside = {name.split(".")[0] for name in all_imports(TREES[module])} - {"lawful"} - set(sys.stdlib_module_names)
    assert outside <= REQUIRED | OPTIONAL


def test_no_import_cycles():
    graph = {
        module: {name for name in all_imports(tree) if name in MODULES and name != module} for module, tree in TREES.items()
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, "import cycle: " + " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for target in sorted(graph[module]):
            visit(target, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("module", MODULES)
def test_no_hidden_imports(module):
    functions = [n for n in ast.walk(TREES[module]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    hidden = {name for function in functions for name in all_imports(function) if name.split(".")[0] not in OPTIONAL}
    assert hidden <= COMPILED, f"{module} hides imports of {sorted(hidden - COMPILED)} inside functions"


@pytest.mark.parametrize("module", MODULES)
def test_optional_packages_stay_optional(module):
    """Only functions may import them: `import lawful` must work without."""
    at_import = [name for node in TREES[module].body for name in imports(node)]
    assert not {name.split(".")[0] for name in at_import} & OPTIONAL


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_small(module):
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{module} has {lines} lines; split it (at most {MAX_LINES})"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_evaluated(module):
    for node in ast.walk(TREES[module]):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name):
            assert function.id not in FORBIDDEN, f"{module}:{node.lineno} calls {function.id}"
        elif isinstance(function, ast.Attribute):
            owner = function.value.id if isinstance(function.value, ast.Name) else ""
            assert function.attr != "sympify", f"{module}:{node.lineno} calls sympify"
            assert (owner, function.attr) not in {("pickle", "load"), ("pickle", "loads"), ("builtins", "eval")}, (
                f"{module}:{node.lineno} calls {owner}.{function.attr}"
            )


CREATE = {"arange", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros"}  # the `_like` ones follow their model


@pytest.mark.parametrize("module", MODULES)
def test_new_arrays_name_their_device(module):
    """`xp.zeros(n)` is born on the default device, wherever the caller's arrays are."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CREATE:
            owner = node.func.value
            generic = isinstance(owner, ast.Name) and owner.id == "xp"
            generic |= isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "array_namespace"
            named = {keyword.arg for keyword in node.keywords} & {"device", "copy"}  # a copy stays where it is
            assert named or not generic, f"{module}:{node.lineno} creates an array without device="


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module):
    assert ast.get_docstring(TREES[module]), f"{module} has no docstring"


def test_public_names_exist():
    """`__all__` of every module lists names that the module binds."""
    for module, tree in TREES.items():
        listed = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        bound = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        bound |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        bound |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        for names in listed:
            assert set(names) <= bound, f"{module}.__all__ lists unknown {sorted(set(names) - bound)}"
            assert len(set(names)) == len(names), f"{module}.__all__ repeats a name"
