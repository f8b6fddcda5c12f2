"""
Quantiles that do not cross
===========================

The progression of diabetes at nine levels (scikit-learn's data, 60 patients to learn from). Nine quantile regressions of
their own cross for some patients, and sorting each row is the usual repair. ``Monotone`` is the law of such outputs: here all
levels are learned together, each with its own pinball loss, and decoded in order.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from quantiles import LEVELS, one_by_one, patients, run

from lawful import ConstrainedRegressor, KernelRidge, Mixed, Monotone, Pinball
from lawful.kernels import Linear

# %%
# The label is given nine times, once for each level. One ridge learns the weights with which the labels speak at x, and the
# decoder finds the nine values of least pinball loss in order, exactly (``lawful.decoders.Chain``).

X, y, new, labels = patients(seed=0)
loss = Mixed([Pinball(float(level)) for level in LEVELS])
model = ConstrainedRegressor(Monotone(), loss=loss, surrogate=KernelRidge(Linear(), tune="loo"))
together = model.fit(X, np.repeat(y[:, None], 9, axis=1)).predict(new)
apart = one_by_one(X, y, new)

# %%
# Pinball losses on the other 382 patients, and the largest crossing. Sorting beats projecting what was learned apart: of two
# quantiles that cross, the pair in order has the smaller loss whatever the label, and pooling loses their spread. Learning
# together beats both.

show("pinball loss of nine quantiles", run(seed=0))

# %%
# Twelve patients, in the order of their medians; quantiles in orange cross.

some = np.argsort(together[:, 4])[:: len(new) // 12][:12]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for axis, q, title in zip(axes, (apart, together), ("one by one", "together, in order")):
    for place, row in enumerate(some):
        crossed = (np.diff(q[row]) < 0).any()
        axis.plot(place + 0.7 * (LEVELS - 0.5), q[row], "-o", ms=2.5, color="#d1603d" if crossed else "#1f6f8b")
        axis.plot(place, labels[row], "kx", ms=5)
    axis.set(title=title, xlabel="patient", xticks=[])
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("progression: nine quantiles, and the label (x)")
