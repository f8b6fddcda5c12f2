"""Inverse dynamics of a planar arm, generated: what Sarcos is about, with the law of motion known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

__all__ = ["arm_torques", "make_arm"]


def arm_torques(
    q: Any, qd: Any, qdd: Any, lengths: Any, masses: Any, gravity: float = 9.81, friction: float = 0.0
) -> np.ndarray:
    """Torques that move a planar arm of n uniform rods as told: the equations of Lagrange, exactly.

    With theta_i = q_1 + ... + q_i the angle of rod i to the horizontal, c_ki the lever of theta_i on the centre of rod k
    (l_i for i < k, l_k/2 for i = k, else 0), A_ij = sum_k m_k c_ki c_kj + [i = j] m_i l_i^2 / 12 and b_i = sum_k m_k c_ki,

        Q_i   = sum_j A_ij (cos(theta_i - theta_j) theta_j'' + sin(theta_i - theta_j) theta_j'^2) + g b_i cos theta_i
        tau_i = Q_i + ... + Q_n + friction q_i'

    q, qd, qdd (m, n): angles, velocities and accelerations of the joints; lengths, masses (n,). Returns (m, n).

    >>> import numpy as np
    >>> from lawful.datasets import arm_torques
    >>> rest = np.zeros((1, 1))
    >>> arm_torques(rest, rest, rest, lengths=[1.0], masses=[2.0])  # m g l / 2 holds a level rod
    array([[9.81]])
    """
    lengths, masses = np.asarray(lengths, dtype=float), np.asarray(masses, dtype=float)
    theta, speed, pull = (np.cumsum(np.asarray(v, dtype=float), axis=-1) for v in (q, qd, qdd))
    n = len(lengths)
    lever = np.tril(np.broadcast_to(lengths, (n, n)), -1) + np.diag(lengths / 2)  # [k, i]
    A = lever.T @ (masses[:, None] * lever) + np.diag(masses * lengths**2 / 12)
    apart = theta[:, :, None] - theta[:, None, :]
    Q = (A * (np.cos(apart) * pull[:, None, :] + np.sin(apart) * speed[:, None, :] ** 2)).sum(axis=2)
    Q += gravity * (masses @ lever) * np.cos(theta)
    return np.cumsum(Q[:, ::-1], axis=1)[:, ::-1] + friction * np.asarray(qd, dtype=float)


def make_arm(
    n_samples: int = 1000,
    n_joints: int = 7,
    *,
    lengths: Any = None,
    masses: Any = None,
    gravity: float = 9.81,
    friction: float = 0.0,
    spread: tuple[float, float, float] = (0.3, 0.8, 6.0),
    noise: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Random states of a planar arm under gravity and the torques that belong to them (`arm_torques`).

    States are normal around a pose with the first rod up and every joint bent a little further; the columns of X are ordered as
    in Sarcos, all positions, then velocities, then accelerations.

    Parameters
    ----------
    n_samples, n_joints : at least 1
    lengths, masses : of the rods (n_joints,); None: rods that become shorter and lighter towards the hand
    gravity, friction : acceleration; torque per velocity of a joint
    spread : standard deviations of positions, velocities and accelerations
    noise : standard deviation of the noise, as a share of that of each torque

    Returns
    -------
    Bunch with X (n, 3 n_joints), Y (n, n_joints), lengths, masses, DESCR

    Examples
    --------
    >>> data = make_arm(5, 3, random_state=0)
    >>> data.X.shape, data.Y.shape
    ((5, 9), (5, 3))
    """
    for name, value in (("n_samples", n_samples), ("n_joints", n_joints)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"make_arm({name}={value!r}) will not do; give a whole number from 1")
    position = np.arange(n_joints)
    lengths = _rods("lengths", lengths, 0.5 * 0.85**position)
    masses = _rods("masses", masses, 4.0 * 0.7**position)
    scales = np.asarray(spread, dtype=float)
    if scales.shape != (3,) or not (np.isfinite(scales) & (scales >= 0)).all():
        raise ValueError(
            f"make_arm(spread={spread!r}) will not do; give three numbers from 0: positions, velocities, accelerations"
        )
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"make_arm(noise={noise!r}) will not do; give a number from 0")
    rng = check_random_state(random_state)
    state = rng.standard_normal((3, n_samples, n_joints)) * scales[:, None, None]
    pose = np.full(n_joints, -0.3)
    pose[0] = np.pi / 2
    state[0] += pose
    Y = arm_torques(state[0], state[1], state[2], lengths, masses, gravity, friction)
    if noise > 0:
        Y = Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)
    about = f"Generated: {n_samples} random states of a planar arm with {n_joints} joints and the torques that belong to them."
    return Bunch(X=np.concatenate(list(state), axis=1), Y=Y, lengths=lengths, masses=masses, DESCR=about)


def _rods(name: str, given: Any, default: np.ndarray) -> np.ndarray:
    values = default if given is None else np.asarray(given, dtype=float)
    if values.shape != default.shape or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"make_arm: {name} is {given!r}; give {len(default)} numbers above zero, one for each joint")
    return values.copy()
