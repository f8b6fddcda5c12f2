"""What the report on rankings says about how it was run and why its numbers are not the paper's."""

from __future__ import annotations

from lawful.experiments.ranking.problem import HELD_OUT
from lawful.experiments.ranking.systems import GRIDS

FILMS, USERS = 1682, 943
TASKS = FILMS * (FILMS - 1) // 2  # 1,413,721
OMEGA = 8 * TASKS**2 / 1e12  # terabytes
CANDIDATES = (
    "Its candidates are the sizes of the ridge around the one that STL chose on the same films, with the shares 1/2 and 1 of "
    "it as coupling, and that one without coupling: a ridge for each pair, whose intercept is not penalised."
)


def setting(train: int, test: int, films: int, trials: int) -> list[str]:
    """How the experiment was run."""
    grids = "; ".join(f"{name} {len(grid)} values from {grid[0]:g} to {grid[-1]:g}" for name, grid in GRIDS.items())
    return [
        f"{trials} random splits into {train} training and {test} test users; an order of all {films} films for each test "
        "user. **Protocol A**: a random half of a test user's ratings is a profile that everyone may use, the other half is "
        "evaluated. **Protocol B**: the same half is evaluated, but only age, gender and occupation are known.",
        "The loss weighs a pair of films that the user rated differently by the difference of the ratings. **N1** divides by "
        "the total weight, so that 0.5 is chance and 1 the worst; N2 divides by the number of rated pairs, ties included; N3 "
        "by the number of pairs that are not tied. Users are averaged, then trials.",
        "Kernel of NL-MTL, SELF, STL, MTRL between users: a constant + linear on demographics + (A only) linear on the centred "
        "ratings, damped. Linear, Hinge, Logistic and SVMStruct score films by features of user and film together: mean and "
        "number of ratings, genres, the user's taste for them, what similar and dissimilar users say.",
        f"Strengths (lam, C) are chosen in each trial on {HELD_OUT:.0%} of the training users, who are treated like test "
        f"users. Grids: {grids}. Then all training users are used. NL-MTL and SELF choose lam with the insertion decoder and "
        "keep it for the other.",
        "Decoders of S(x): **Eades** is the heuristic of Eades, Lin and Smyth, the one the predecessor of the paper names; "
        "**insertion** sorts by row sums and then moves single films to their best places in three sweeps. The paper does not "
        "say which of igraph's methods it ran.",
        "**NL-MTL** alone is the paper's estimator: one kernel ridge problem per pair, then an order. **NL-MTL, our defaults** "
        "is `ConstrainedRanker()`: the same with a factor model as prior mean, ratings scaled by each user's spread, and pairs "
        "weighted by how often they were compared. It is not in the paper.",
    ]


def differs(
    popularity: float | None, scorers: dict[str, float], lowest: float, undecided: float | None, generated: bool
) -> list[str]:
    """Why the numbers are not those of the paper; `popularity` and `scorers` are N1 under protocol A."""
    points = [
        "**Denominator.** The paper reports a normalised loss and never says what it is divided by. N1 is the natural reading "
        "and the headline here, N2 and N3 stand beside it. None of them can be matched with the paper's numbers by more than "
        "guesswork, so only comparisons within a column mean something.",
    ]
    if popularity is not None and not generated:
        relation = "would be below" if popularity < lowest else "would not be below"
        points.append(
            f"**Popularity.** Sorting films by their shrunk mean rating, the same order for everybody, has N1 = "
            f"{popularity:.3f} under protocol A. If the paper's scale were N1, that {relation} every number in its table (the "
            f"smallest is {lowest:.3f}); the paper shows no such line."
        )
    points += [
        "**Features.** The paper names profession, age and similarity of previous ratings, and nothing more: neither encoding, "
        "scaling, nor whether a test user's own evaluated ratings were inside the similarity. Here they never are.",
        "**Protocol.** How much of a test user's ratings may be seen is not stated. A and B bracket what is honest.",
        "**Splits.** 643 and 300 users drawn at random as in the predecessor of the paper; the splits themselves were not "
        "published. The paper chose by 5-fold cross-validation, here one share of the training users is held out: NL-MTL "
        "decodes an order of all films for every candidate and user.",
        "**Constant feature.** A linear kernel without it cannot say that everyone prefers p to q, and on centred "
        "features the weights a(x) of a pair may then be negative. The paper does not mention one; here all kernels have it.",
        "**Order, not graph.** The paper's set DAG(D) also allows ties and gaps; here every prediction is a total order. Pairs "
        "that nobody compared have S = 0 and are placed by the others.",
        f"**Scorers.** {beside(popularity, scorers)}Linear, Hinge, Logistic and SVMStruct "
        "know every film's mean rating and genres and what similar users say of it, all computed without the ratings they are "
        "to explain; NL-MTL as the paper has it compares users and has no features of films. Our defaults "
        "give it a prior that has.",
        "**Copied numbers.** The paper's SELF, Linear, Hinge, Logistic and SVMStruct are quoted from its predecessor; only "
        "NL-MTL, STL and MTRL were run for it.",
    ]
    if undecided is not None:
        points.append(
            f"**STL.** One machine for each pair that a test user is asked about, blind to all others, errors counted pair by "
            f"pair. {100 * undecided:.1f} % of the evaluated pairs no training user rated differently; they count as errors "
            "(and, in the second line, as half). Under N1 the paper's 0.581 would be worse than chance, where a method "
            "that has learned anything only gets if a large share of its pairs is undecided; or the scale is another."
        )
    points.append(
        f"**MTRL.** It learns a T x T matrix. All {FILMS} films are T = {TASKS:,} tasks, and that matrix alone {OMEGA:.0f} TB; "
        "how the paper ran it is not stated. Here it runs on the most rated films, in a table of its own, beside the others on "
        "the same films; how many is a matter of time, not of that matrix."
    )
    return points


def beside(popularity: float | None, found: dict[str, float]) -> str:
    """Losses of our own column beside popularity's."""
    if popularity is None or not found:
        return ""
    told = "; ".join(f"{name} {value:.3f}" for name, value in found.items())
    return f"N1 under protocol A, where popularity has {popularity:.3f}: {told}. "
