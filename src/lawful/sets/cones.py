"""Convex sets in the language of conic solvers: {c : offset - matrix c in K}, for a list of cones K.

zero           {0}
nonnegative    {s : s >= 0}
second_order   {s : s_0 >= |s_1:|}
semidefinite   symmetric positive semidefinite matrices, the upper triangle column by column, off-diagonal entries
               times sqrt 2 (so that the inner product of the vectors is that of the matrices)

Matrix and offset may depend on the inputs: they then have a leading axis, one entry for each row of a bound set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import like, to_numpy


class Cone(NamedTuple):
    kind: str
    matrix: Any  # (k, T) or (m, k, T)
    offset: Any  # (k,) or (m, k)

    def of_columns(self, columns: list[int], n_tasks: int) -> Cone:
        """The same condition on some of n_tasks outputs."""
        place = np.zeros((len(columns), n_tasks))
        place[np.arange(len(columns)), columns] = 1.0
        return Cone(self.kind, self.matrix @ like(place, self.matrix), self.offset)

    def row(self, i: int) -> Cone:
        """That of row i, in numpy."""
        matrix, offset = to_numpy(self.matrix), to_numpy(self.offset)
        return Cone(self.kind, matrix[i] if matrix.ndim == 3 else matrix, offset[i] if offset.ndim == 2 else offset)
