"""The certificate itself, apart from any decoder: what each code means, and how far a point may be moved for it."""

from __future__ import annotations

import re
import sys
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest

from lawful import Equations, Inflated, Sphere
from lawful.decoders.base import Decoder, Decoding, certified, finish, in_law, stack, way_back
from lawful.sets.base import TOL

CIRCLE = Sphere().fit(np.zeros((1, 2)))
EAST = np.array([1.0, 0.0])


def objective(c, center=None, doubtful=None, value=None):
    m = len(c)
    return SimpleNamespace(
        center=c if center is None else center,
        doubtful=np.zeros(m, bool) if doubtful is None else doubtful,
        value=lambda c: np.zeros(m) if value is None else value,
    )


def certificate(c, C=CIRCLE, center=None, doubtful=None, value=None, **known):
    c = np.atleast_2d(np.asarray(c, float))
    return finish(objective(c, center, doubtful, value), C.rows(np.arange(len(c))), c, **known)


def test_a_certificate_is_not_changed_afterwards():
    with pytest.raises(FrozenInstanceError):
        certificate(2 * EAST).code = np.zeros(1, int)


def test_codes_from_good_to_bad():
    c = np.array([EAST] * 4 + [2 * EAST])
    d = certificate(
        c, doubtful=np.array([0, 1, 1, 0, 1], bool), proven=np.array([1, 1, 0, 0, 0], bool), iterations=np.arange(5)
    )
    assert d.status.tolist() == ["ok", "low_confidence", "not_converged", "not_converged", "infeasible"]
    np.testing.assert_array_equal(d.c, c)
    np.testing.assert_array_equal(d.residual, [0, 0, 0, 0, 3])  # |c|^2 - 1
    np.testing.assert_array_equal(d.law_residual, d.residual)
    assert d.iterations.tolist() == [0, 1, 2, 3, 4] and np.isinf(d.margin).all()
    assert in_law(d).tolist() == [True, True, True, True, False]
    assert certified(d).tolist() == [True, True, False, False, False]


def test_means_and_lost_rows():
    inside, outside = EAST, 0.5 * EAST
    d = certificate(
        [inside, outside, outside, inside], averaged=np.array([1, 1, 0, 0], bool), lost=np.array([0, 0, 0, 1], bool)
    )
    assert d.status.tolist() == ["ok", "averaged", "infeasible", "infeasible"]
    np.testing.assert_array_equal(d.c[1], outside)
    assert in_law(d).tolist() == [True, False, False, False]
    both = certificate([outside], averaged=np.array([True]), lost=np.array([True]))
    assert both.status.tolist() == ["infeasible"], "no point of C to speak of, and so no mean over it"


def test_a_mean_in_a_tube_with_weights_counts_where_the_tube_measured_it():
    class Tube(Sphere):
        weighed = True

    C, mean = Tube().fit(np.zeros((1, 2))), {"averaged": np.array([True, False])}
    assert certificate([EAST, EAST], C, **mean).status.tolist() == ["averaged", "ok"]
    known = (np.zeros(2), np.zeros(2))
    assert certificate([EAST, EAST], C, **mean, measured=known).status.tolist() == ["ok", "ok"]


def test_a_value_that_is_no_number_proves_nothing():
    d = certificate([EAST, EAST, EAST], value=np.array([1.0, np.nan, np.inf]))
    assert d.status.tolist() == ["ok", "not_converged", "not_converged"]
    given = certificate([EAST], value=np.array([3.0]))
    assert given.value.tolist() == [3.0] and given.iterations.tolist() == [0]


def test_what_was_measured_is_believed():
    d = certificate([2 * EAST, EAST], measured=(np.array([0.0, 1.0]), np.array([0.25, 0.5])))
    assert d.status.tolist() == ["ok", "infeasible"] and d.residual.tolist() == [0.25, 0.5]
    np.testing.assert_array_equal(d.c, [2 * EAST, EAST])
    border = certificate([EAST, EAST], measured=(np.array([TOL, np.nextafter(TOL, 1)]), np.zeros(2)))
    assert border.status.tolist() == ["ok", "infeasible"], "the tolerance itself is inside"


def test_nothing_worse_is_taken():
    """Zero in place of 1.5e-10 would be further from 1e-10, and this set knows no way back."""

    class Tiny:
        weighed = relaxed = False

        def rows(self, idx):
            return self

        def measured(self, c):
            off = abs(c[:, 1] - 1e-10) / 1e-10
            return off, 10 * off

    d = certificate([[1.0, 1.5e-10]], Tiny())
    np.testing.assert_array_equal(d.c, [[1.0, 1.5e-10]])
    assert d.status.tolist() == ["infeasible"] and d.residual[0] == pytest.approx(5)


@pytest.mark.parametrize(("off", "center", "moved"), [(5e-7, 1, True), (5e-6, 1, False), (5e-6, 10, True), (2e-5, 10, False)])
def test_a_point_is_moved_by_rounding_of_where_it_came_from_and_no_further(off, center, moved):
    """1e-6 of its own size or of the prediction's, whichever is larger."""
    d = certificate([(1 + off) * EAST, EAST], center=np.array([center * EAST, EAST]))
    assert d.status.tolist() == ["ok" if moved else "infeasible", "ok"]
    np.testing.assert_allclose(d.c[0], EAST if moved else (1 + off) * EAST, rtol=1e-12)
    assert d.residual[0] <= TOL if moved else d.residual[0] == pytest.approx(2 * off, rel=1e-3)


def test_zeros_that_are_zero_but_for_rounding():
    axes = Equations("y1*y2 = 0").fit(np.zeros((1, 2)))
    d = certificate([[1.0, 1e-10], [1.0, 0.0], [1e-10, -2.0]], axes)
    np.testing.assert_array_equal(d.c, [[1.0, 0.0], [1.0, 0.0], [0.0, -2.0]])
    assert d.status.tolist() == ["ok"] * 3 and (d.residual == 0).all()
    far = certificate([[1.0, 1e-3]], axes)
    assert far.status.tolist() == ["infeasible"] and far.c.tolist() == [[1.0, 1e-3]]


def test_means_are_left_where_they_are():
    d = certificate([(1 + 5e-7) * EAST], averaged=np.array([True]))
    np.testing.assert_array_equal(d.c, [(1 + 5e-7) * EAST])
    assert d.status.tolist() == ["averaged"]


def test_the_way_back_is_what_the_set_offers():
    np.testing.assert_allclose(way_back(CIRCLE, np.array([[3.0, 4.0]])), [[0.6, 0.8]], rtol=1e-12)
    line = Equations("y1 + y2 = 1").fit(np.zeros((1, 2)))
    assert line.residual(way_back(line, np.array([[1.0, 1e-7]])))[0] < 1e-12
    nothing = way_back(SimpleNamespace(), np.array([[1.0, np.nan], [np.inf, 2.0]]))
    np.testing.assert_array_equal(nothing, [[1.0, 0.0], [0.0, 2.0]])


def test_batches_are_stacked_with_what_all_of_them_know():
    one, two = certificate([EAST], margin=np.array([0.5])), certificate([2 * EAST, EAST], iterations=np.array([3, 4]))
    both = stack([one, two])
    np.testing.assert_array_equal(both.c, [EAST, 2 * EAST, EAST])
    assert both.status.tolist() == ["ok", "infeasible", "ok"] and both.iterations.tolist() == [0, 3, 4]
    assert both.margin.tolist() == [0.5, np.inf, np.inf] and both.gap is None
    assert stack([one]) is one
    bounded = [d.with_(gap=np.full(len(d.c), 0.1)) for d in (one, two)]
    assert stack(bounded).gap.tolist() == [0.1] * 3 and stack([bounded[0], two]).gap is None


def test_columns_of_the_certificate_make_way_for_outputs():
    d = certificate([EAST]).with_(names=("status", "y_std"), spread=lambda: np.array([[0.1, 0.2]]), gap=np.array([0.3]))
    frame = d.to_frame()
    assert list(frame.columns) == [
        *("status", "y_std", "value", "residual", "decoding_status", "iterations", "margin", "law_residual", "gap"),
        *("status_std", "y_std_std"),
    ]
    assert (
        frame["decoding_status"].tolist() == ["ok"] and frame["y_std_std"].tolist() == [0.2] and frame["gap"].tolist() == [0.3]
    )
    assert list(certificate([EAST]).to_frame().columns)[:3] == ["y1", "y2", "value"]


def test_a_decoder_says_what_is_missing():
    class Demanding(Decoder):
        needs_objective = ("gradient", "value")
        needs_set = ("nearest", "points_")

    F = objective(np.zeros((1, 2)))
    assert Demanding().missing(F, CIRCLE) == ["SimpleNamespace.gradient", "Sphere.points_"]
    assert Decoder().missing(F, CIRCLE) == []
    with pytest.raises(NotImplementedError):
        Decoder().solve(F, CIRCLE, None)


def test_std_is_asked_for_once():
    asked = []
    d = Decoding(*(np.zeros(1) for _ in range(7)), spread=lambda: asked.append(1) or np.ones((1, 1)))
    assert d.std is d.std and asked == [1]
    assert certificate([EAST]).std is None


def shown(m, T, **changes):
    """Cells of the notebook's table, and the page."""
    numbers = np.arange(m * T, dtype=float).reshape(m, T)
    codes = np.zeros(m, int)
    d = Decoding(numbers, np.zeros(m), np.zeros(m), np.zeros(m), codes, codes, np.full(m, np.inf)).with_(**changes)
    page = d._repr_html_()
    return re.findall(r"<(?:th|td)\b[^>]*>(.*?)</(?:th|td)>", page), page


def test_a_notebook_shows_the_first_rows_and_outputs():
    cells, page = shown(2, 2, residual=np.array([0.25, np.nan]), margin=np.array([0.5, np.inf]))
    assert cells == ["y1", "y2", "residual", "margin", "status", "0", "1", "0.25", "0.5", "ok", "2", "3", "nan", "inf", "ok"]
    assert "Decoding: 2 ok; largest violation 2.5e-01" in page and "more rows" not in page
    cells, page = shown(8, 8)
    assert cells[:11] == [*(f"y{t}" for t in range(1, 9)), "residual", "margin", "status"] and "more rows" not in page
    cells, page = shown(9, 9)
    assert cells[:11] == [*(f"y{t}" for t in range(1, 8)), "…", "residual", "margin", "status"]
    assert cells[11:22] == ["0", "1", "2", "3", "4", "5", "6", "…", "0", "inf", "ok"]
    assert len(cells) == 9 * 11 and "… and 1 more rows" in page
    assert shown(3, 2)[0][:5] == ["y1", "y2", "residual", "margin", "status"] and shown(1, 3)[0][:3] == ["y1", "y2", "y3"]
    assert shown(1, 2, names=("east", "north"))[0][:2] == ["east", "north"]
    assert "no rows; largest violation 0.0e+00" in shown(0, 2)[1]
    assert "1 ok, 1 averaged" in shown(2, 1, code=np.array([1, 0]))[1]


def test_a_tube_says_how_far_from_the_law_inside_it_a_point_is():
    d = certificate([[1.2, 0.0], EAST], Inflated(Sphere(), 0.25).fit(np.zeros((1, 2))))
    np.testing.assert_allclose(d.residual, 0.0)
    np.testing.assert_allclose(d.law_residual, [0.44, 0.0])
    asked = []

    class Plain(Sphere):
        def law_residual(self, c):
            asked.append(c)

    certificate([EAST], Plain().fit(np.zeros((1, 2))))
    assert not asked, "without a relaxation it is the residual, which is known"


def test_what_costs_much_is_not_printed():
    d = certificate([EAST]).with_(spread=lambda: np.ones((1, 2)), samples=np.zeros((1, 5, 2)))
    assert "spread" not in repr(d) and "samples" not in repr(d) and "residual" in repr(d)


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Decoding\.to_frame needs pandas: pip install 'lawful\[frame\]'"):
        certificate([EAST]).to_frame()
