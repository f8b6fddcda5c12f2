"""A fit, or a visit of the doctor, in a process of its own: it can be watched, and stopped for good."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Job"]

LAST = 2000  # characters of what a process said before it died


class Job:
    """Starts at once. `state` is running, done, failed or cancelled; `result` is what the process wrote."""

    def __init__(self, folder: Path, words: dict[str, Any], X: np.ndarray, Y: np.ndarray) -> None:
        self.folder, self.kind = folder, words["kind"]
        self.state, self.message = "running", ""
        self.progress: dict[str, Any] = {"stage": "starting", "done": 0, "total": 1}
        self.result: Any = None
        self._lock, self._start, self._end = threading.Lock(), time.monotonic(), 0.0
        (folder / "job.json").write_text(json.dumps(words), encoding="utf-8")
        np.savez(folder / "data.npz", X=X, Y=Y)
        with (folder / "errors.txt").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lawful.studio.worker", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def describe(self) -> dict[str, Any]:
        """For the page."""
        with self._lock:
            seconds = (self._end or time.monotonic()) - self._start
            known = {"kind": self.kind, "state": self.state, "message": self.message, "seconds": round(seconds, 1)}
            return known | self.progress | {"result": self.result}

    def cancel(self) -> None:
        """Stop the process; what it had written is not used."""
        with self._lock:
            if self.state != "running":
                return
            self.state, self.message, self._end = "cancelled", "Stopped; nothing was kept.", time.monotonic()
        self._process.kill()
        self._watcher.join(10)

    def wait(self, timeout: float | None = None) -> None:
        self._watcher.join(timeout)

    def _watch(self) -> None:
        wrong = ""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library that prints
            wrong = str(said.get("error", wrong))
            if "stage" in said:
                with self._lock:
                    self.progress = said
        code = self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.stdout.close()
        with self._lock:
            if self.state == "running":
                self._finish(code, wrong)

    def _finish(self, code: int, wrong: str) -> None:
        self._end = time.monotonic()
        path = self.folder / "result.json"
        if code == 0 and path.is_file():
            self.state, self.result = "done", json.loads(path.read_text(encoding="utf-8"))
            return
        said = (self.folder / "errors.txt").read_bytes()[-LAST:].decode("utf-8", "replace").strip().splitlines()
        killed = "it was stopped from outside, perhaps for want of memory" if code < 0 else f"it ended with code {code}"
        self.state, self.message = "failed", wrong or (said[-1] if said else killed)
