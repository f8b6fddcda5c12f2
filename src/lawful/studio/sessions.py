"""What belongs to one tab: its table, its job and a folder; tabs share nothing."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from lawful.studio.jobs import Job
from lawful.studio.tables import Refused, Table

__all__ = ["Session", "Sessions"]

MOST = 16  # tabs


class Session:
    def __init__(self) -> None:
        self.name = secrets.token_urlsafe(18)
        self.folder = Path(tempfile.mkdtemp(prefix="lawful-studio-"))
        self.lock = threading.Lock()
        self.used = time.monotonic()
        self._table: Table | None = None
        self.jobs: dict[str, Job] = {}  # the last of each kind

    @property
    def table(self) -> Table:
        if self._table is None:
            raise Refused("There is no table yet; drop a CSV file first.")
        return self._table

    @property
    def running(self) -> bool:
        return any(job.state == "running" for job in self.jobs.values())

    def take(self, table: Table) -> None:
        """A new table: what was learned from the one before is dropped."""
        with self.lock:
            self._stop()
            self._table, self.jobs = table, {}

    def start(self, words: dict[str, Any], X: Any, Y: Any) -> Job:
        """A job of this kind; one runs at a time."""
        with self.lock:
            if self.running:
                raise Refused("Something is running already; stop it first, or wait.", 409)
            kind = words["kind"]
            folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self.folder))
            if kind in self.jobs:
                shutil.rmtree(self.jobs[kind].folder, ignore_errors=True)
            self.jobs[kind] = Job(folder, words, X, Y)
            return self.jobs[kind]

    def result(self, file: str) -> Path:
        """A file of the last fit."""
        job = self.jobs.get("fit")
        if job is None or job.state != "done" or not (job.folder / file).is_file():
            raise Refused("There is no finished fit to take this from; fit first.", 404)
        return job.folder / file

    def cancel(self) -> None:
        with self.lock:
            self._stop()

    def _stop(self) -> None:
        for job in self.jobs.values():
            job.cancel()

    def close(self) -> None:
        self.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sessions:
    """All tabs; when there are too many, the one that was idle longest makes room."""

    def __init__(self) -> None:
        self._known: dict[str, Session] = {}
        self._lock = threading.Lock()

    def new(self) -> Session:
        with self._lock:
            if len(self._known) >= MOST:
                idle = sorted((s for s in self._known.values() if not s.running), key=lambda s: s.used)
                if not idle:
                    raise Refused(f"{MOST} tabs are at work; close one of them.", 503)
                self._known.pop(idle[0].name).close()
            session = Session()
            self._known[session.name] = session
            return session

    def get(self, name: str) -> Session:
        with self._lock:
            session = self._known.get(name)
        if session is None:
            raise Refused("This tab is not known any more; load the page again, and the file.", 404)
        session.used = time.monotonic()
        return session

    def drop(self, name: str) -> None:
        with self._lock:
            session = self._known.pop(name, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        for name in list(self._known):
            self.drop(name)
