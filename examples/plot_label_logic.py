"""
Labels that obey a logic
========================

Handwritten digits (scikit-learn's data) with fourteen labels: which digit it is, and whether that
is even, prime, above four or has a loop. Fourteen classifiers that know nothing of each other
contradict themselves; ``ConstrainedClassifier`` with a ``Logic`` does not, and its probabilities
add up.
"""

# %%
# The formulas, and 400 images of which a fifth of the labels is not known (NaN).
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from lawful import ConstrainedClassifier, Logic
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
KINDS = {
    "even": [0, 2, 4, 6, 8],
    "prime": [2, 3, 5, 7],
    "loop": [0, 6, 8, 9],
    "above_four": [5, 6, 7, 8, 9],
}
DIGITS = [f"d{k}" for k in range(10)]
LAW = [f"exactly_one({', '.join(DIGITS)})"]
LAW += [f"{kind} <-> any({', '.join(DIGITS[k] for k in which)})" for kind, which in KINDS.items()]
print("\n".join(LAW))

digits = load_digits()
labels = [np.isin(digits.target, which)[:, None] for which in KINDS.values()]
labels = np.hstack([np.eye(10)[digits.target], *labels])
X, X_new, Y, Y_new = train_test_split(digits.data, labels, train_size=400, random_state=0)
Y = np.where(np.random.default_rng(0).uniform(size=Y.shape) < 0.2, np.nan, Y)

# %%
# Images right as a whole, F1, and images whose labels contradict each other.
law = Logic(LAW, labels=[*DIGITS, *KINDS])
models = {
    "each on its own": ConstrainedClassifier().fit(X, Y),
    "under the logic": ConstrainedClassifier(law).fit(X, Y),
}
constraint = models["under the logic"].constraint_
results = {}
for name, model in models.items():
    found = model.predict(X_new)
    results[name] = {
        "right": model.score(X_new, Y_new),
        "F1": f1_score(Y_new, found, average="macro"),
        "contradictions": np.mean(~constraint.contains(found)),
    }
    print(f"{name}:", ", ".join(f"{what} {value:.3f}" for what, value in results[name].items()))

# %%
# Probabilities add up: those of the even digits to that of "even". Every row has a certificate.
alone, together = (model.predict_proba(X_new) for model in models.values())
even = np.abs(together[:, KINDS["even"]].sum(axis=1) - together[:, 10]).max()
status = models["under the logic"].decode(X_new).status
print(f"largest difference {even:.0e}; certified rows {np.mean(status == 'ok'):.0%}")

# %%
# The first three images on which the classifiers contradict each other. Triangles are the truth.
contradicted = np.flatnonzero(~constraint.contains(models["each on its own"].predict(X_new)))[:3]
figure, axes = plt.subplots(3, 2, figsize=(7.5, 5.6), width_ratios=[1, 5], sharex="col")
place = np.arange(14)
for (picture, axis), row in zip(axes, contradicted):
    picture.imshow(X_new[row].reshape(8, 8), cmap="Greys")
    picture.set(xticks=[], yticks=[])
    axis.bar(place - 0.2, alone[row], 0.4, color=LAWLESS, label="each on its own")
    axis.bar(place + 0.2, together[row], 0.4, color=LAWFUL, label="under the logic")
    true = place[Y_new[row] == 1]
    axis.plot(true, np.full(len(true), 1.1), "kv", ms=5, label="true")
    axis.set(ylim=(0, 1.2), yticks=[0, 0.5, 1], ylabel="probability")
names = [*"0123456789", *(kind.replace("_", " ") for kind in KINDS)]
axes[2, 1].set_xticks(place, names, rotation=0)
for tick in axes[2, 1].get_xticklabels()[10:]:
    tick.set(rotation=35, ha="right", rotation_mode="anchor")
figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside upper center", ncols=3)
