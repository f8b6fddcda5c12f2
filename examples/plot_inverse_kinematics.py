"""
Inverse kinematics along a path
===============================

The angles of an arm's joints follow from where its hand is, but not uniquely: the elbow may be up
or down, the wrist turned or not. Training poses are of both kinds alike, so that the regression
cannot tell, and the law, the geometry of the arm, holds on either branch. Row by row the answer
jumps between them; `decode(X, sequence=True)` follows one.
"""

# %%
# Two arms. In the plane, two joints. In space, six: a turning base, shoulder, elbow, and a wrist
# that rolls, bends and rolls; the hand points along (AX, AY, AZ). Outputs are angles, inputs say
# where the hand is, and the law says how both belong together.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, DecodingWarning, Equations, KernelRidge
from lawful.plots import OKABE_ITO

plt.style.use("lawful.plots.clear")
PLANAR = ["cos(y1) + 0.8*cos(y1 + y2) = x1", "sin(y1) + 0.8*sin(y1 + y2) = x2"]
AX = "(cos(y2 + y3)*cos(y5) + sin(y2 + y3)*cos(y4)*sin(y5))"
AY = "(sin(y4)*sin(y5))"
AZ = "(sin(y2 + y3)*cos(y5) - cos(y2 + y3)*cos(y4)*sin(y5))"
REACH = f"(cos(y2) + 0.9*cos(y2 + y3) + 0.2*{AX})"
ROLL = "(sin(y4)*cos(y6) + cos(y4)*cos(y5)*sin(y6))"
SIX = [
    f"cos(y1)*{REACH} - 0.2*sin(y1)*{AY} = x1",
    f"sin(y1)*{REACH} + 0.2*cos(y1)*{AY} = x2",
    f"sin(y2) + 0.9*sin(y2 + y3) + 0.2*{AZ} = x3",
    f"sin(y1)*{AX} + cos(y1)*{AY} = x4",
    f"{AZ} = x5",
    f"sin(y2 + y3)*sin(y5)*sin(y6) + cos(y2 + y3)*{ROLL} = x6",
]


def hand(law, q):
    """Where the hand is for angles q: what the law says x is."""
    zero = np.zeros((len(q), len(law)))
    return Equations(law).fit(q, zero).at(zero).equality(q)


# %%
# Poses of both branches alike, away from those in which branches meet (a straight elbow or wrist),
# and smooth paths of the joints between them.


def elbow_up_or_down(rng, low, high, n):
    q1, q2 = rng.uniform(low, high, (n, 2)).T
    turn = 2 * np.arctan2(0.8 * np.sin(q2), 1 + 0.8 * np.cos(q2))
    return np.where(rng.random((n, 1)) < 0.5, np.c_[q1, q2], np.c_[q1 + turn, -q2])


def wrist_turned_or_not(rng, low, high, n):
    q = rng.uniform(low, high, (n, 6))
    turned = q * [1, 1, 1, 1, -1, 1] + [0, 0, 0, np.pi, 0, np.pi]
    return np.where(rng.random((n, 1)) < 0.5, q, turned)


ARMS = {  # law, poses, from where to where, how many to learn from
    "two joints": (PLANAR, elbow_up_or_down, np.array([[-0.6, 0.7], [0.6, 2.2]]), 300),
    "six joints": (
        SIX,
        wrist_turned_or_not,
        np.array([[-0.4, 0.9, -0.9, -0.4, 0.5, -0.4], [0.4, 1.3, -0.4, 0.4, 1.1, 0.4]]),
        500,
    ),
}


def model_of(arm, seed=0):
    law, poses, box, n = ARMS[arm]
    rng = np.random.default_rng(seed)
    q = poses(rng, *box, n)
    model = ConstrainedRegressor(Equations(law), surrogate=KernelRidge(lam=1e-3, tune="loo"))
    return model.fit(hand(law, q), q + 0.02 * rng.standard_normal(q.shape))


def smooth_path(rng, box, rows):
    """A random smooth curve of the joints inside a box, well away from its border."""
    low, high = box
    s = np.linspace(0, 1, rows)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (2, len(low)))
    speed = rng.uniform(2, 5, (2, len(low)))
    wave = (np.sin(speed[0] * s + phase[0]) + np.sin(speed[1] * s + phase[1])) / 2
    return (low + high) / 2 + 0.4 * (high - low) * wave


def jumps(c):
    """Steps that are more than ten times as long as usual."""
    step = np.linalg.norm(np.diff(c, axis=0), axis=1)
    return int(np.sum(step > 10 * np.median(step)))


# %%
# A path of the hand for each arm, decoded row by row and as a sequence.
found = {}
for arm, (law, _, box, _) in ARMS.items():
    model, rows = model_of(arm), 60 if arm == "two joints" else 20
    x = hand(law, smooth_path(np.random.default_rng([0, 1]), box, rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        found[arm] = x, model.decode(x), model.decode(x, sequence=True)
    _, alone, together = found[arm]
    off = np.abs(hand(law, together.c) - x).max()
    print(f"{arm}: {jumps(alone.c)} jumps row by row, {jumps(together.c)} as a sequence", end="; ")
    print(f"hand off by {off:.0e}, {np.mean(together.status == 'ok'):.0%} certified")

# %%
# The arm of two joints at every third row (dark first), and its angles.
x, alone, together = found["two joints"]
figure, axes = plt.subplots(2, 2, figsize=(7.5, 6), height_ratios=[1.7, 1], sharey="row")
for column, (d, title) in enumerate(((alone, "row by row"), (together, "as a sequence"))):
    arm, angles = axes[:, column]
    elbow = np.c_[np.cos(d.c[:, 0]), np.sin(d.c[:, 0])]
    for i in range(0, len(x), 3):
        colour = plt.cm.cividis(i / len(x))
        arm.plot(*np.c_[[0, 0], elbow[i], x[i]], "o-", ms=3, lw=1.2, color=colour)
    arm.plot(*x.T, color=OKABE_ITO[1], lw=2.5, zorder=3, label="path of the hand")
    arm.set(title=title, aspect="equal", xlabel="place in the plane")
    for t in range(2):
        angles.plot(d.c[:, t], ".-", ms=4, lw=1, color=OKABE_ITO[t + 2], label=f"joint {t + 1}")
    angles.set(xlabel="row", ylim=(-2.8, 2.8))
axes[0, 0].legend(loc="lower left")
axes[1, 0].set_ylabel("angle, radians")
axes[1, 1].legend(loc="lower left", ncols=2)
