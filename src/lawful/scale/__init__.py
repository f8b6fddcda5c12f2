"""Tables larger than memory, on one machine or on a cluster: `fit`, `predict` and `decode` of dask arrays, dask DataFrames and
Parquet folders. Needs dask (`pip install "lawful[dask]"`).
"""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
