"""Convex sets in the language of conic solvers: {c : offset - matrix c in K}, for a list of cones K.

zero           {0}
nonnegative    {s : s >= 0}
second_order   {s : s_0 >= |s_1:|}
semidefinite   symmetric positive semidefinite matrices, the upper triangle column by column, off-diagonal entries
               times sqrt 2 (so that the inner product of the vectors is that of the matrices)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Cone(NamedTuple):
    kind: str
    matrix: np.ndarray  # (k, T)
    offset: np.ndarray  # (k,)

    def of_columns(self, columns: list[int], n_tasks: int) -> Cone:
        """The same condition on some of n_tasks outputs."""
        matrix = np.zeros((self.matrix.shape[0], n_tasks))
        matrix[:, columns] = self.matrix
        return Cone(self.kind, matrix, self.offset)
