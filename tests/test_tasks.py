"""What the user may give as data, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lawful import ConstrainedRegressor, KernelRidge, stack_tasks
from lawful.kernels import Gaussian
from lawful.tasks import Tasks, check_outputs, check_weights

NAN = np.nan


def test_tasks_keep_observed_rows_of_positive_weight():
    Y = np.array([[1.0, NAN], [2.0, 5.0], [3.0, 6.0]])
    tasks = Tasks.of(Y, Y, [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(tasks.rows[0], [0, 1])
    np.testing.assert_array_equal(tasks.rows[1], [1])
    np.testing.assert_array_equal(tasks.y[0], [1.0, 2.0])
    np.testing.assert_array_equal(tasks.weights[0], [1.0, 2.0])
    per_task = Tasks.of(Y, Y, [[0.0, 1.0], [1.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(per_task.rows[0], [1, 2])
    np.testing.assert_array_equal(per_task.weights[1], [1.0, 3.0])


@pytest.mark.parametrize(
    "Y, names, weight, message",
    [
        ([[1.0, NAN], [2.0, NAN]], None, None, r"output 'y2' has no observation \(every value is missing\)"),
        ([[1.0, NAN], [2.0, NAN]], ["heat", "mass"], None, "output 'mass' has no observation"),
        ([[1.0, 2.0], [2.0, 3.0]], None, [[1.0, 0.0], [1.0, 0.0]], "all its sample weights are zero"),
        ([[1.0], [2.0]], None, [0.0, 0.0], "all sample weights are zero"),
        ([[1.0], [2.0]], None, [1.0, -1.0], "non-negative"),
        ([[1.0], [2.0]], None, [1.0, NAN], "finite"),
        ([[1.0], [2.0]], None, [1.0, 2.0, 3.0], r"sample_weight has shape \(3,\); give \(2,\) or \(2, 1\)"),
    ],
)
def test_bad_tasks_are_refused(Y, names, weight, message):
    with pytest.raises(ValueError, match=message):
        Tasks.of(np.array(Y), np.array(Y), weight, names)


def test_weights_broadcast():
    np.testing.assert_array_equal(check_weights(None, 2, 3), np.ones((2, 3)))
    np.testing.assert_array_equal(check_weights(2.0, 2, 2), np.full((2, 2), 2.0))
    np.testing.assert_array_equal(check_weights([1.0, 2.0], 2, 2), [[1.0, 1.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    "Y, message",
    [
        (None, "requires y"),
        (np.zeros((2, 2, 2)), "shape"),
        ([["a", "b"]], "numeric"),
        ([1.0, np.inf], "infinity"),
        ([1 + 2j, 3.0], "numeric"),
    ],
)
def test_bad_outputs_are_refused(Y, message):
    with pytest.raises(ValueError, match=message):
        check_outputs(Y)


def test_outputs_of_any_table():
    values, names = check_outputs(pd.DataFrame({"a": [1, 2], 7: [3.0, None]}))
    assert names == ["a", "7"] and values.dtype == np.float64 and np.isnan(values[1, 1])
    values, names = check_outputs(pd.Series([1, 2], name="heat"))
    assert values.shape == (2,) and names is None


def test_stack_tasks_gives_each_task_its_own_inputs():
    X, Y = stack_tasks([([[0.0], [1.0]], [5.0, 6.0]), (np.array([2.0]), np.array([[7.0]]))])
    np.testing.assert_array_equal(X, [[0.0], [1.0], [2.0]])
    np.testing.assert_array_equal(Y, [[5.0, NAN], [6.0, NAN], [NAN, 7.0]])


@pytest.mark.parametrize(
    "tasks, message",
    [
        ([], "at least one"),
        ([([[1.0]],)], "entry 0 is not a pair"),
        ([([[1.0]], [1.0, 2.0])], "task 0 has X of shape"),
        ([([[1.0]], [1.0]), ([[1.0, 2.0]], [1.0])], "task 1 has 2 inputs, task 0 has 1"),
    ],
)
def test_stack_tasks_refuses(tasks, message):
    with pytest.raises(ValueError, match=message):
        stack_tasks(tasks)


RIDGE = KernelRidge(Gaussian(1.0), lam=0.01)
X4 = np.arange(4.0)[:, None]


@pytest.mark.parametrize(
    "X, Y, message",
    [
        (X4, np.zeros((3, 2)), "X has 4 rows and Y has 3"),
        (np.where(X4 == 2, NAN, X4), np.zeros((4, 2)), "NaN"),
        (np.where(X4 == 2, np.inf, X4), np.zeros((4, 2)), "infinity"),
        (X4, np.array([[1.0, NAN]] * 4), "no observation"),
        (X4, np.zeros((4, 0)), "at least one column"),
        (X4[:0], np.zeros((0, 2)), "0 sample"),
        (X4[:, 0], np.zeros((4, 2)), "2D array"),
    ],
)
def test_the_regressor_refuses_bad_tables(X, Y, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedRegressor(surrogate=RIDGE).fit(X, Y)


def test_predict_refuses_another_number_of_columns():
    model = ConstrainedRegressor(surrogate=RIDGE).fit(X4, np.c_[X4, X4**2])
    with pytest.raises(ValueError, match="2 features"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[NAN]])
