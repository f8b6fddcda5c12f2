"""Look at a built wheel and sdist as a user gets them: `python scripts/check_dist.py dist`.

The wheel must hold the package alone, with `py.typed` and the stubs; installed into an empty environment it must fit, save,
load and run the command. The sdist must hold everything that its tests read.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

SMOKE = """
import numpy as np, lawful
X = np.linspace(0, 3, 20)[:, None]
model = lawful.ConstrainedRegressor(lawful.Equations("y1**2 + y2**2 = 1")).fit(X, np.c_[np.cos(X), np.sin(X)])
model.save("m.lawful")
c = lawful.load("m.lawful").predict(X)
assert abs((c**2).sum(axis=1) - 1).max() < 1e-8 and "site-packages" in lawful.__file__
print("smoke test passed:", lawful.__version__)
"""
IN_WHEEL = (
    "lawful/py.typed",
    "lawful/__init__.pyi",
    "lawful/report/style.css",
    "lawful/studio/page/index.html",
    "lawful/cli/main.py",
)
IN_SDIST = ("tests/test_saving.py", "tests/models/README.md", "docs/design.md", "README.md", "examples/demo.py")


def one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} holds {len(found)} files {pattern}; build into an empty folder")
    return found[0]


def check_contents(wheel: Path, sdist: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    foreign = [name for name in names if name.split("/")[0] not in ("lawful", f"{wheel.name.rsplit('-', 3)[0]}.dist-info")]
    lacking = [name for name in IN_WHEEL if name not in names]
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    lacking += [name for name in IN_SDIST if name not in inside]
    if foreign or lacking:
        sys.exit(f"the wheel holds {foreign[:5]}, which is not the package; lacking: {lacking}")
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size // 1024} kB; {sdist.name}: {len(inside)} files")


def check_install(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        scripts = Path(folder) / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(scripts / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel.resolve())], check=True)
        subprocess.run([python, "-c", SMOKE], check=True, cwd=folder)
        subprocess.run([str(scripts / "lawful"), "--version"], check=True, cwd=folder)


if __name__ == "__main__":
    built = Path(sys.argv[1])
    check_contents(one(built, "*.whl"), one(built, "*.tar.gz"))
    check_install(one(built, "*.whl"))
