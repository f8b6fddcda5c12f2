"""
A sports league: an order from incomplete comparisons
=====================================================

Half-way through a season most pairs of teams have not met, some have met twice, and results
contradict each other: A beat B, B beat C, C beat A. Who leads? A table of points ignores whom one
has played. The order that contradicts the fewest goals does not, and comes with a proof of how
good it is.
"""

# %%
# Sixteen teams with hidden strengths; 60 of the 120 pairs have played. The schedule is unfair:
# strong teams met each other.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import kendalltau

from lawful import ConstrainedRanker
from lawful.rankings import minimum_feedback_arc_set

plt.style.use("lawful.plots.clear")

rng = np.random.default_rng(3)
n_teams = 16
strength = np.sort(rng.normal(0, 1, n_teams))[::-1]
pairs = [(p, q) for p in range(n_teams) for q in range(p + 1, n_teams)]
near = np.exp([-abs(p - q) / 4 for p, q in pairs])
games = [pairs[k] for k in rng.choice(len(pairs), 60, replace=False, p=near / near.sum())]
goals = np.zeros((n_teams, n_teams))  # goals[p, q]: by how many goals p beat q
for p, q in games:
    margin = round(rng.normal(strength[p] - strength[q], 0.8))
    goals[p, q], goals[q, p] = max(margin, 0), max(-margin, 0)
print(f"{len(games)} games, {int((goals > 0).sum())} decided")

# %%
# The order whose contradicting results weigh least, and which results those are. For sixteen teams
# the integer programme proves it.
best = minimum_feedback_arc_set(goals, "exact")
print("order:", best.order.tolist())
print(f"goals against the order: {best.weight:.0f}; at least {best.bound:.0f} ({best.status})")
print("upsets:", [f"{p} beat {q}" for p, q in best.arcs.tolist()])

# %%
# The usual table counts three points for a win and one for a draw.
played = np.zeros((n_teams, n_teams), dtype=bool)
for p, q in games:
    played[p, q] = played[q, p] = True
points = 3 * (goals > goals.T).sum(axis=1) + (played & (goals == goals.T)).sum(axis=1)
orders = {"points": np.argsort(-points, kind="stable"), "fewest goals against": best.order}
agreement = {
    name: kendalltau(np.argsort(order), np.arange(n_teams)).statistic
    for name, order in orders.items()
}
for name, tau in agreement.items():
    print(f"{name:<22} agreement with the hidden strengths (Kendall's tau) {tau:.2f}")

# %%
# Orders may depend on circumstances. Here half of the teams are good in the rain. A query is a
# match day with its weather, each with few games; every pair of teams is learned from the days on
# which it met, and each predicted order is consistent.
wet = rng.normal(0, 1.2, n_teams)
weather = rng.uniform(-1, 1, (150, 1))
comparisons = []
for day, x in enumerate(weather[:, 0]):
    for p, q in rng.choice(n_teams, (4, 2), replace=False):
        margin = strength[p] - strength[q] + x * (wet[p] - wet[q]) + rng.normal(0, 0.5)
        winner, loser = (p, q) if margin > 0 else (q, p)
        comparisons.append((day, winner, loser, abs(margin)))
ranker = ConstrainedRanker(prior=None).fit(weather, comparisons=comparisons, n_items=n_teams)
print(f"{len(comparisons)} games; pairs that never met: {ranker.n_unobserved_} of {len(pairs)}")
by_weather = {}
for name, x in (("dry", -0.8), ("wet", 0.8)):
    by_weather[name] = kendalltau(
        ranker.predict([[x]])[0], np.argsort(np.argsort(-(strength + x * wet)))
    ).statistic
    print(f"{name}: agreement with the strengths in that weather {by_weather[name]:.2f}")

# %%
# Results in the order found: what is below the diagonal contradicts it.
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.9), width_ratios=[1.15, 1])
shades = left.imshow(goals[np.ix_(best.order, best.order)], cmap="Blues")
figure.colorbar(shades, ax=left, label="goals by which the row won", shrink=0.85)
left.set(title="one season, in the order found", xlabel="loser's place", ylabel="winner's place")
left.axline((0, 0), slope=1, color="0.5", lw=0.8)
path = np.linspace(-1, 1, 21)
places = ranker.predict(path[:, None])
for team, style in zip(range(0, n_teams, 3), ("-", "--", "-.", ":", "-", "--")):
    (line,) = right.plot(path, places[:, team], style)
    right.annotate(f"team {team}", (1.04, places[-1, team]), color=line.get_color(), va="center")
right.invert_yaxis()
right.set(title="orders by weather", ylabel="position", xlim=(-1, 1.75), xticks=[-1, 0, 1])
right.set_xticklabels(["dry", "", "wet"])
