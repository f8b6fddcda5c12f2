"""Rank losses against a literal double loop, on sparse and dense ratings, with ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.pace import within

import lawful.metrics
from lawful.metrics import rank_loss


def literal(ratings, scores, denominator, tie):
    """The definition, pair by pair: (loss, denominator) of one query given as {item: rating}."""
    lost, below = 0.0, 0.0
    for p in ratings:
        for q in ratings:
            if p == q:
                continue
            w = max(ratings[p] - ratings[q], 0)
            lost += w * (1.0 if scores[q] > scores[p] else tie if scores[q] == scores[p] else 0.0)
            below += {"N1": w, "N2": 0.5, "N3": float(w > 0)}[denominator]
    return lost, below


def table(seed, m=6, D=9, levels=4):
    rng = np.random.default_rng(seed)
    R = rng.integers(0, levels, (m, D)).astype(float)  # 0 is a rating too
    R[rng.uniform(size=R.shape) < 0.4] = np.nan
    R[0] = np.nan  # rated nothing
    R[1, ~np.isnan(R[1])] = 2.0  # nothing to order
    R[2, :3] = [0.0, 1.0, 3.0]  # something to order
    scores = rng.integers(0, 5, (m, D)).astype(float)
    return R, scores


def stored(R):
    rows, columns = np.nonzero(~np.isnan(R))
    return sparse.csr_array((R[rows, columns], (rows, columns)), shape=R.shape)


@given(seed=st.integers(0, 10_000), denominator=st.sampled_from(["N1", "N2", "N3"]), ties=st.sampled_from(["half", "error"]))
@settings(max_examples=60, deadline=None)
def test_matches_the_definition(seed, denominator, ties):
    R, scores = table(seed)
    pairs = []
    for u in range(len(R)):
        ratings = {i: R[u, i] for i in range(R.shape[1]) if not np.isnan(R[u, i])}
        if len(set(ratings.values())) > 1:
            pairs.append(literal(ratings, scores[u], denominator, {"half": 0.5, "error": 1.0}[ties]))
    lost, below = np.array(pairs).T
    options = {"denominator": denominator, "ties": ties}
    for truth in (R, stored(R), stored(R).tocsc(), stored(R).tocoo()):
        assert rank_loss(truth, scores=scores, **options) == pytest.approx(np.mean(lost / below), abs=1e-12)
        assert rank_loss(truth, scores=scores, pooled=True, **options) == pytest.approx(lost.sum() / below.sum(), abs=1e-12)
    rows = rank_loss(R, scores=scores, per_query=True, **options)
    assert np.isnan(rows[:2]).all() and np.allclose(rows[~np.isnan(rows)], lost / below)


def test_best_worst_and_chance():
    R = np.array([[5.0, 1.0, np.nan, 3.0]])
    assert rank_loss(R, [[0, 2, 3, 1]]) == 0.0
    assert rank_loss(R, [[2, 0, 3, 1]]) == 1.0
    assert rank_loss(R, scores=np.zeros((1, 4))) == 0.5
    assert rank_loss(R, scores=np.zeros((1, 4)), ties="error") == 1.0
    assert rank_loss(R, scores=-np.array([[0, 2, 3, 1]])) == rank_loss(R, [[0, 2, 3, 1]])
    assert rank_loss(R, [[2, 0, 3, 1]], denominator="N2") == pytest.approx(8 / 3)


def test_blocks_do_not_matter(monkeypatch):
    R, scores = table(3, m=5, D=40)
    whole = rank_loss(R, scores=scores)
    monkeypatch.setattr(lawful.metrics, "PAIRS_AT_ONCE", 7)
    assert rank_loss(R, scores=scores) == pytest.approx(whole, abs=1e-12)


def test_unrated_items_are_not_looked_at():
    R = np.array([[5.0, 1.0, np.nan]])
    assert rank_loss(R, scores=[[2.0, 1.0, np.nan]]) == 0.0
    with pytest.raises(ValueError, match="query 0"):
        rank_loss(R, scores=[[np.nan, 1.0, 0.0]])


def test_errors_say_what_would_do():
    R = np.array([[5.0, 1.0]])
    with pytest.raises(ValueError, match="N1"):
        rank_loss(R, [[0, 1]], denominator="N4")
    with pytest.raises(ValueError, match="half"):
        rank_loss(R, [[0, 1]], ties="none")
    with pytest.raises(ValueError, match="either positions"):
        rank_loss(R)
    with pytest.raises(ValueError, match="shape"):
        rank_loss(R, [[0, 1, 2]])
    with pytest.raises(ValueError, match="nothing to order"):
        rank_loss(np.ones((2, 3)), [[0, 1, 2]] * 2)
    with pytest.raises(ValueError, match="per query"):
        rank_loss(R, [[0, 1]], pooled=True, per_query=True)


def test_is_fast_enough():
    """300 queries with 100 rated items each: a fraction of a second."""
    rng = np.random.default_rng(0)
    R = sparse.csr_array(rng.integers(1, 6, (300, 100)).astype(float))
    with within(2):
        assert abs(rank_loss(R, scores=rng.uniform(size=R.shape)) - 0.5) < 0.02
