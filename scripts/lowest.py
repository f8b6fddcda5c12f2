"""The lowest versions that `pyproject.toml` allows, as a constraints file for pip: `make test-min` tests with these.

python scripts/lowest.py > lowest.txt && pip install -c lowest.txt ".[dev]"
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

# What tests run with, not what users do: the newest of these is as good as any.
TOOLS = {"pytest", "pytest-xdist", "ruff", "mypy", "hypothesis", "array-api-strict", "cvxpy", "sympy"}


def lowest(text: str) -> list[str]:
    """`name==version` for every requirement `name>=version` of the library and of what its command line needs.

    >>> lowest('[project]\\ndependencies = ["numpy>=1.26"]\\n[project.optional-dependencies]\\nframe = ["pandas>=2.1"]')
    ['numpy==1.26', 'pandas==2.1']
    """
    project = tomllib.loads(text)["project"]
    optional = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in ("plot", "frame", "download") for line in optional.get(name, []))]
    found = [re.fullmatch(r"([\w.-]+)>=([\w.]+).*", line) for line in wanted]
    return [f"{match[1]}=={match[2]}" for match in found if match and match[1] not in TOOLS]


if __name__ == "__main__":
    print("\n".join(lowest((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))))
