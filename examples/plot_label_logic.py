"""
Labels that obey a logic
========================

Handwritten digits (scikit-learn's data) with fourteen labels: which digit it is, and whether that is even, prime, above four
or has a loop. Fourteen classifiers that know nothing of each other contradict themselves; ``ConstrainedClassifier`` with a
``Logic`` does not, and its probabilities add up.
"""

import matplotlib.pyplot as plt
import numpy as np
from label_logic import DIGITS, KINDS, LAW, labels, run  # examples/label_logic.py, beside this script
from sklearn.model_selection import train_test_split

from lawful import ConstrainedClassifier, Logic

# %%
# The formulas, and 400 images of which a fifth of the labels is not known (NaN).

print("\n".join(LAW))
X, Y = labels()
X, X_new, Y, Y_new = train_test_split(X, Y, train_size=400, random_state=0)
Y = np.where(np.random.default_rng(0).uniform(size=Y.shape) < 0.2, np.nan, Y)
model = ConstrainedClassifier(Logic(LAW, labels=[*DIGITS, *KINDS])).fit(X, Y)
free = ConstrainedClassifier().fit(X, Y)

# %%
# Rows right as a whole, F1 and rows that contradict themselves, without and with the logic; the last but one is how far the
# probabilities of the even digits are from adding up to that of "even".

for key, value in run(seed=0).items():
    print(f"{key:20} {value if isinstance(value, set) else round(value, 4)}")

# %%
# Three images on which the classifiers contradict each other most: fourteen probabilities, each on its own and under the logic.

alone, together = free.predict_proba(X_new), model.predict_proba(X_new)
worst = np.argsort(-np.abs(alone - together).sum(axis=1))[:3]
figure, axes = plt.subplots(3, 2, figsize=(8, 5.4), width_ratios=[1, 5], layout="constrained")
for (picture, axis), row in zip(axes, worst):
    picture.imshow(X_new[row].reshape(8, 8), cmap="Greys")
    picture.set(xticks=[], yticks=[])
    place = np.arange(14)
    axis.bar(place - 0.2, alone[row], 0.4, color="#d1603d", label="each on its own")
    axis.bar(place + 0.2, together[row], 0.4, color="#1f6f8b", label="under the logic")
    axis.plot(place[Y_new[row] == 1], np.full(int(Y_new[row].sum()), 1.08), "kv", ms=4, label="true")
    axis.set(xticks=place, xticklabels=[*DIGITS, *KINDS], ylim=(0, 1.15))
    axis.tick_params(axis="x", labelsize=6)
    axis.spines[["top", "right"]].set_visible(False)
axes[0, 1].legend(frameon=False, ncols=3, fontsize=7, loc="upper center")
