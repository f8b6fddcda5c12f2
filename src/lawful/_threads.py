"""Work on threads: compiled kernels and LAPACK release the interpreter lock, so threads share arrays and run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

__all__ = ["Threads", "blas_threads", "n_threads", "on_one_thread", "on_threads"]

on_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")  # a function as a whole: see `blas_threads`


def blas_threads(n: int | None) -> threadpool_limits:
    """A context in which BLAS uses so many threads (None: as many as before): matrices of a few hundred rows gain little from
    more, and threads of our own would wait for those of BLAS."""
    return threadpool_limits(n, user_api="blas")


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for; None and -1 mean all cores."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} is no number of threads; give 1, 2, ..., or None for all cores")
    return effective_n_jobs(-1 if n_jobs is None else n_jobs)


class Threads:
    """`map` on so many threads, or in this one. A context manager."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def map(self, function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
        """[function(a) for a in arguments]."""
        return list((map if self.pool is None else self.pool.map)(function, arguments))

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def on_threads(function: Callable[[Any], Any], arguments: Iterable[Any], n_threads: int) -> list[Any]:
    """[function(a) for a in arguments], on so many threads."""
    with Threads(n_threads) as threads:
        return threads.map(function, arguments)
