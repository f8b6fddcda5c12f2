"""
Movie rankings: one task per pair of films
==========================================

People rate a few films each. For a new person every film is to be put in order. Each pair of films
is a task ("is p better than q?"), learned only from those who rated both; the law says that the
answers must form an order. The ratings are generated, in the shape of MovieLens: tastes, genres,
and gaps that are no accident.
"""

# %%
# 300 people, 60 films, about 20 ratings each; the last 100 people are new: half of their ratings
# are known, half are hidden.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRanker
from lawful.baselines import Popularity
from lawful.datasets import make_ratings, movielens_protocol
from lawful.metrics import rank_loss
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")

data = make_ratings(300, 60, n_ratings=20, random_state=0)
split = movielens_protocol(data, n_train=200, n_test=100, random_state=0)
print(split)

# %%
# The default ranker beside the paper's, and beside the order of the mean ratings, which is the
# same for everybody. The loss is the weight of the hidden pairs that are put the wrong way round;
# a coin has 0.5.
paper = ConstrainedRanker(
    prior=None, similarity=0, ridge="n_lambda", targets="difference", pair_weight=None
)
rankers = {"default": ConstrainedRanker(), "the paper's": paper, "mean ratings": Popularity()}
losses, positions = {}, {}
for name, ranker in rankers.items():
    ranker.fit(split.X_train, split.R_train)
    positions[name] = ranker.predict(split.X_test, ratings=split.profile_test)
    losses[name] = rank_loss(split.R_eval, positions[name])
    print(f"{name:<14} rank loss {losses[name]:.3f}")

# %%
# Every order has a certificate: how much predicted preference it violates, and how much any order
# must violate. Cycles ("a over b over c over a") are what makes the two differ from zero.
decoding = rankers["default"].decode(split.X_test[:5], ratings=split.profile_test[:5])
for row in range(5):
    least, status = decoding.bound[row], decoding.status[row]
    print(f"violated {decoding.objective[row]:8.3f}, at least {least:8.3f}: {status}")

# %%
# What to see next: the best films that a person has not rated yet.
print(
    rankers["default"].recommend(
        split.X_test[:3], k=3, ratings=split.profile_test[:3], exclude=split.profile_test[:3]
    )
)

# %%
# Sorted by the common order of mean ratings, the positions that ten people get: near the diagonal,
# but everyone's own.
common = np.argsort(positions["mean ratings"][0])
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.6), width_ratios=[1.7, 1])
shades = left.imshow(positions["default"][:10][:, common], aspect="auto", cmap="cividis")
figure.colorbar(shades, ax=left, label="position")
left.set(xlabel="films, by their mean rating", ylabel="person", yticks=[])
names = list(losses)[::-1]
right.barh(names, [losses[name] for name in names], color=["0.75", LAWLESS, LAWFUL], height=0.6)
right.axvline(0.5, color="0.25", lw=1, ls="--")
right.text(0.49, 2.45, "a coin", ha="right", color="0.25", fontsize=9)
right.set(xlabel="rank loss (lower is better)", ylim=(-0.5, 2.7))
