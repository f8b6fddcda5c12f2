"""What is asked of dask: that it is there, that a node is computed, that many nodes become one.

Every task is a pure function of its partition and of what was broadcast, so dask may run it twice, elsewhere, or again after a
worker was lost. Nodes are combined in an order that their number alone decides: the same partitions give the same sums to the
last bit, whatever the cluster is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lawful._threads import blas_threads

__all__ = ["computed", "dask", "shared", "tree"]

FAN = 4  # nodes that are combined at once: so many sums a worker holds beside their total
RETRIES = 2  # of a task that raised: a file system may fail for a moment
LITERAL = "1GB"  # what is broadcast travels in the graph, where a lost worker cannot lose it; dask need not warn of it


def dask() -> ModuleType:
    """The package, its arrays, tables and cluster loaded."""
    try:
        import dask.array
        import dask.dataframe
        import dask.distributed
    except ImportError as error:
        raise ImportError(f'lawful.scale needs dask, which is not all there ({error}); pip install "lawful[dask]"') from error
    return dask


def shared(value: Any) -> Any:
    """One node for a value that many tasks take: it is sent to each worker once."""
    return dask().delayed(value, traverse=False)


def tree(nodes: list[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """One node out of many."""
    delayed = dask().delayed
    while len(nodes) > 1:
        nodes = [delayed(combine)(nodes[i : i + FAN]) for i in range(0, len(nodes), FAN)]
    return nodes[0]


def computed(node: Any) -> Any:
    """The value of a node, from the cluster of the current client, or from threads of this process."""
    try:
        with dask().config.set({"distributed.admin.large-graph-warning-threshold": LITERAL}), blas_threads(1):
            return dask().compute(node, retries=RETRIES)[0]
    except Exception as error:
        if not (isinstance(error, KeyError) or type(error).__module__.startswith("pyarrow")):
            raise
        raise ValueError(
            f"lawful.scale: a partition could not be read ({error}); Parquet files must be whole and have the same columns"
        ) from error
