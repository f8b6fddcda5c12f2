r"""Two public power grids, their power-flow equations as strings, and a Newton solver that makes data.

The IEEE 14-bus and 30-bus test cases (University of Washington, Power Systems Test Case Archive). With the admittance matrix
G + jB, voltage magnitudes v and angles a, the power that bus i sends into the grid is

    p_i = v_i sum_j v_j (G_ij cos(a_i - a_j) + B_ij sin(a_i - a_j))
    q_i = v_i sum_j v_j (G_ij sin(a_i - a_j) - B_ij cos(a_i - a_j))

Everything is in units of 100 MVA and radians. Bus 1 is the slack: its angle is 0, and its generator closes the balance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["PowerGrid", "load_power_grid"]

# from, to, r, x, b (line charging), tap ratio (0: a line)
BRANCHES_14 = """
1 2 .01938 .05917 .0528 0    1 5 .05403 .22304 .0492 0    2 3 .04699 .19797 .0438 0    2 4 .05811 .17632 .034 0
2 5 .05695 .17388 .0346 0    3 4 .06701 .17103 .0128 0    4 5 .01335 .04211 0 0        4 7 0 .20912 0 .978
4 9 0 .55618 0 .969          5 6 0 .25202 0 .932          6 11 .09498 .1989 0 0        6 12 .12291 .25581 0 0
6 13 .06615 .13027 0 0       7 8 0 .17615 0 0             7 9 0 .11001 0 0             9 10 .03181 .0845 0 0
9 14 .12711 .27038 0 0       10 11 .08205 .19207 0 0      12 13 .22092 .19988 0 0      13 14 .17093 .34802 0 0
"""
BRANCHES_30 = """
1 2 .0192 .0575 .0528 0      1 3 .0452 .1652 .0408 0      2 4 .057 .1737 .0368 0       3 4 .0132 .0379 .0084 0
2 5 .0472 .1983 .0418 0      2 6 .0581 .1763 .0374 0      4 6 .0119 .0414 .009 0       5 7 .046 .116 .0204 0
6 7 .0267 .082 .017 0        6 8 .012 .042 .009 0         6 9 0 .208 0 .978            6 10 0 .556 0 .969
9 11 0 .208 0 0              9 10 0 .11 0 0               4 12 0 .256 0 .932           12 13 0 .14 0 0
12 14 .1231 .2559 0 0        12 15 .0662 .1304 0 0        12 16 .0945 .1987 0 0        14 15 .221 .1997 0 0
16 17 .0524 .1923 0 0        15 18 .1073 .2185 0 0        18 19 .0639 .1292 0 0        19 20 .034 .068 0 0
10 20 .0936 .209 0 0         10 17 .0324 .0845 0 0        10 21 .0348 .0749 0 0        10 22 .0727 .1499 0 0
21 22 .0116 .0236 0 0        15 23 .1 .202 0 0            22 24 .115 .179 0 0          23 24 .132 .27 0 0
24 25 .1885 .3292 0 0        25 26 .2544 .38 0 0          25 27 .1093 .2087 0 0        28 27 0 .396 0 .968
27 29 .2198 .4153 0 0        27 30 .3202 .6027 0 0        29 30 .2399 .4533 0 0        8 28 .0636 .2 .0428 0
6 28 .0169 .0599 .013 0
"""
# bus, active and reactive load in MW and MVAr
LOADS_14 = """
2 21.7 12.7  3 94.2 19  4 47.8 -3.9  5 7.6 1.6  6 11.2 7.5  9 29.5 16.6
10 9 5.8  11 3.5 1.8  12 6.1 1.6  13 13.5 5.8  14 14.9 5
"""
LOADS_30 = """
2 21.7 12.7  3 2.4 1.2  4 7.6 1.6  5 94.2 19  7 22.8 10.9  8 30 30  10 5.8 2  12 11.2 7.5  14 6.2 1.6  15 8.2 2.5  16 3.5 1.8
17 9 5.8  18 3.2 .9  19 9.5 3.4  20 2.2 .7  21 17.5 11.2  23 3.2 1.6  24 8.7 6.7  26 3.5 2.3  29 2.4 .9  30 10.6 1.9
"""
# bus, generated MW, voltage that the generator holds
GENERATORS_14 = "1 232.4 1.06  2 40 1.045  3 0 1.01  6 0 1.07  8 0 1.09"
GENERATORS_30 = "1 260.2 1.06  2 40 1.045  5 0 1.01  8 0 1.01  11 0 1.082  13 0 1.071"


class PowerGrid(NamedTuple):
    """An electric grid: its admittances, loads and generators, and what the laws of Kirchhoff say; see `load_power_grid`.

    Attributes
    ----------
    admittance : (n, n), complex
    load, generation : (n,), complex, in units of 100 MVA
    held : buses with generators, bus 0 first
    voltage : what these generators hold

    Examples
    --------
    >>> from lawful.datasets import load_power_grid
    >>> grid = load_power_grid(14)
    >>> len(grid.equations), grid.states(grid.load[None]).shape
    (31, (1, 56))
    """

    admittance: np.ndarray
    load: np.ndarray
    generation: np.ndarray
    held: np.ndarray
    voltage: np.ndarray

    @property
    def size(self) -> int:
        return len(self.load)

    @property
    def free(self) -> np.ndarray:
        """Buses without a generator: their power is known, their voltage is not."""
        return np.setdiff1d(np.arange(self.size), self.held)

    @property
    def equations(self) -> list[str]:
        """The law of the 4n outputs of `states`: both powers of each bus, none at a mere junction, and the angle of bus 1."""
        n = self.size
        v, a, p, q = ([f"y{k * n + i + 1}" for i in range(n)] for k in range(4))
        idle = np.flatnonzero((self.load == 0) & ~np.isin(np.arange(n), self.held)).tolist()
        return [
            *self.flow_equations(v, a, dict(enumerate(p)), dict(enumerate(q))),
            *(f"{power[i]} = 0" for i in idle for power in (p, q)),
            f"{a[0]} = 0",
        ]

    def flow_equations(self, v: list[str], a: list[str], p: dict[int, str], q: dict[int, str]) -> list[str]:
        """The power flow as strings. v, a: names of magnitudes and angles; p, q: what the power of a bus is called."""
        texts = []
        for names, active in ((p, True), (q, False)):
            for i, name in names.items():
                terms = []
                for j in np.flatnonzero(self.admittance[i]).tolist():
                    G, B = float(self.admittance[i, j].real), float(self.admittance[i, j].imag)
                    if j == i:
                        terms.append(f"{v[i]}**2*({G if active else -B!r})")
                        continue
                    cos, sin = (G, B) if active else (-B, G)
                    angle = f"({a[i]} - {a[j]})"
                    terms.append(f"{v[i]}*{v[j]}*({cos!r}*cos{angle} + {sin!r}*sin{angle})")
                texts.append(f"{name} = {' + '.join(terms)}")
        return texts

    def power(self, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Complex power (m, n) that the buses send into the grid, for magnitudes v (m, n) and angles a (m, n)."""
        V = v * np.exp(1j * a)
        return V * np.conj(V @ self.admittance.T)

    def states(self, load: Any) -> np.ndarray:
        """(m, 4n): magnitudes, angles, active and reactive powers of all buses, for complex loads (m, n)."""
        v, a = self.solve(load)
        S = self.power(v, a)
        return np.concatenate([v, a, S.real, S.imag], axis=1)

    def solve(self, load: Any, max_iter: int = 20) -> tuple[np.ndarray, np.ndarray]:
        """Magnitudes and angles (m, n) for complex loads (m, n), by Newton's method from a flat start."""
        load = np.asarray(load)
        m, n = load.shape
        v, a = np.ones((m, n)), np.zeros((m, n))
        v[:, self.held] = self.voltage
        wanted = self.generation - load
        for _ in range(max_iter):
            off = self.power(v, a) - wanted
            left = np.concatenate([off.real[:, 1:], off.imag[:, self.free]], axis=1)
            if np.abs(left).max() < 1e-12:
                return v, a
            by_angle, by_size = self.sensitivities(v, a)
            J = np.concatenate(
                [
                    np.concatenate([by_angle.real[:, 1:, 1:], by_size.real[:, 1:][..., self.free]], axis=2),
                    np.concatenate([by_angle.imag[:, self.free, 1:], by_size.imag[:, self.free][..., self.free]], axis=2),
                ],
                axis=1,
            )
            step = np.linalg.solve(J, left[..., None])[..., 0]
            a[:, 1:] -= step[:, : n - 1]
            v[:, self.free] -= step[:, n - 1 :]
        raise ValueError("PowerGrid: no power flow was found for some of these loads; they may be more than the grid can carry")

    def sensitivities(self, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the complex power (m, n, n): by angles, by magnitudes."""
        V, unit = v * np.exp(1j * a), np.exp(1j * a)
        flow = V[:, :, None] * np.conj(self.admittance * V[:, None, :])
        own = np.eye(self.size) * np.conj(V @ self.admittance.T)[:, None, :]
        return 1j * (own * V[:, None, :] - flow), own * unit[:, None, :] + flow / v[:, None, :]


def load_power_grid(buses: int = 14) -> PowerGrid:
    """The IEEE test case with 14 or 30 buses.

    Parameters
    ----------
    buses : 14 or 30

    Returns
    -------
    PowerGrid : its `equations`, and `states(load)`, which obey them

    Examples
    --------
    >>> from lawful.datasets import load_power_grid
    >>> grid = load_power_grid(14)
    >>> v, a = grid.solve(grid.load[None])
    >>> round(float(v[0, -1]), 3)  # the published voltage of the last bus
    1.036
    """
    if buses not in (14, 30):
        raise ValueError(f"load_power_grid: there is no case with {buses} buses here; choose 14 or 30")
    branches = _table(BRANCHES_14 if buses == 14 else BRANCHES_30, 6)
    Y = np.zeros((buses, buses), dtype=complex)
    for begin, end, r, x, b, tap in branches:
        i, j, t, y = int(begin) - 1, int(end) - 1, tap or 1.0, 1 / complex(r, x)
        Y[i, i] += (y + 0.5j * b) / t**2
        Y[j, j] += y + 0.5j * b
        Y[i, j] -= y / t
        Y[j, i] -= y / t
    for bus, shunt in {14: {9: 0.19}, 30: {10: 0.19, 24: 0.043}}[buses].items():
        Y[bus - 1, bus - 1] += 1j * shunt
    load, generation = np.zeros((2, buses), dtype=complex)
    for bus, p, q in _table(LOADS_14 if buses == 14 else LOADS_30, 3):
        load[int(bus) - 1] = complex(p, q) / 100
    generators = _table(GENERATORS_14 if buses == 14 else GENERATORS_30, 3)
    held = generators[:, 0].astype(int) - 1
    generation[held] = generators[:, 1] / 100
    return PowerGrid(Y, load, generation, held, generators[:, 2])


def _table(text: str, width: int) -> np.ndarray:
    return np.array(text.split(), dtype=float).reshape(-1, width)
