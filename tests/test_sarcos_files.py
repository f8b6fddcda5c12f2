"""Sarcos is read from one file or both with every row once; the generated arm obeys the equations of Lagrange."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from lawful.datasets import arm_torques, load_sarcos, make_arm


@pytest.fixture
def tables():
    """(train, test): 40 and 12 rows; two rows of train repeat, five of test are in train."""
    rng = np.random.default_rng(0)
    train = rng.standard_normal((40, 28))
    train[[17, 33]] = train[[3, 3]]
    test = rng.standard_normal((12, 28))
    test[[0, 2, 4, 6, 11]] = train[[39, 0, 3, 21, 5]]
    return train, test


@pytest.fixture
def folder(tables, tmp_path):
    savemat(tmp_path / "sarcos_inv.mat", {"sarcos_inv": tables[0]})
    savemat(tmp_path / "sarcos_inv_test.mat", {"sarcos_inv_test": tables[1]})
    return tmp_path


def rows(data):
    return np.c_[data.X, data.Y]


def test_the_union_has_every_row_once_in_the_order_of_the_files(folder, tables):
    data = load_sarcos(folder, "both")
    train = np.delete(tables[0], [17, 33], axis=0)
    np.testing.assert_array_equal(rows(data), np.r_[train, np.delete(tables[1], [0, 2, 4, 6, 11], axis=0)])
    assert data.n_duplicates == 7 and data.source == ["sarcos_inv.mat", "sarcos_inv_test.mat"]
    assert "45 rows (7 repeated rows dropped)" in data.DESCR
    assert data.X.shape == (45, 21) and data.Y.shape == (45, 7)
    assert len({row.tobytes() for row in rows(data)}) == 45


def test_one_file(folder, tables):
    train, test = load_sarcos(folder, "train"), load_sarcos(folder, "test")
    np.testing.assert_array_equal(rows(train), np.delete(tables[0], [17, 33], axis=0))
    np.testing.assert_array_equal(rows(test), tables[1])
    assert (train.n_duplicates, test.n_duplicates) == (2, 0)
    everything = load_sarcos(folder, "train", drop_duplicates=False)
    np.testing.assert_array_equal(rows(everything), tables[0])
    assert everything.n_duplicates == 2 and "repeated rows kept" in everything.DESCR


def test_auto_prefers_the_large_file_and_folders_may_hold_sarcos(folder, tmp_path):
    assert load_sarcos(folder).source == ["sarcos_inv.mat"]
    (folder / "sarcos_inv.mat").unlink()
    assert load_sarcos(folder).source == ["sarcos_inv_test.mat"]
    home = tmp_path / "home"
    (home / "sarcos").mkdir(parents=True)
    (folder / "sarcos_inv_test.mat").rename(home / "sarcos" / "sarcos_inv_test.mat")
    assert len(load_sarcos(home).X) == 12
    np.testing.assert_array_equal(rows(load_sarcos(home)), rows(load_sarcos(home / "sarcos")))


def test_zeros_of_both_signs_are_one_number(tmp_path):
    table = np.zeros((3, 28))
    table[1] = -0.0
    table[2, 5] = 1.0
    savemat(tmp_path / "sarcos_inv_test.mat", {"sarcos_inv_test": table})
    assert load_sarcos(tmp_path).n_duplicates == 1


def test_what_is_lacking_is_named(folder):
    with pytest.raises(ValueError, match="unknown files 'all'; choose 'auto', 'train', 'test' or 'both'"):
        load_sarcos(folder, "all")
    (folder / "sarcos_inv.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks sarcos_inv.mat; get them from the data page"):
        load_sarcos(folder, "both")
    (folder / "sarcos_inv_test.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks sarcos_inv_test.mat or sarcos_inv.mat; get them from"):
        load_sarcos(folder)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"x": np.ones((4, 27))}, r"holds \(4, 27\), not one table of numbers with 28 columns .* get it anew from"),
        ({"x": np.ones((4, 28)), "y": np.zeros((4, 28))}, "not one table"),
        ({"x": np.where(np.arange(112).reshape(4, 28) == 40, np.nan, 1.0)}, "NaN or infinity in row 1; get the file anew"),
    ],
)
def test_files_that_are_not_sarcos(tmp_path, content, match):
    savemat(tmp_path / "sarcos_inv.mat", content)
    with pytest.raises(ValueError, match=match):
        load_sarcos(tmp_path)


def test_a_file_that_is_no_mat_file(tmp_path):
    (tmp_path / "sarcos_inv.mat").write_bytes(b"<html>not found</html>" * 40)
    with pytest.raises(ValueError, match=r"is no \.mat file that can be read .* get it anew"):
        load_sarcos(tmp_path)


@pytest.mark.parametrize("how", [{}, {"do_compression": True}, {"format": "4"}])
def test_a_file_that_was_cut_short(tmp_path, tables, how):
    """Wherever a download ends; `loadmat` has another error for almost every place."""
    path = tmp_path / "sarcos_inv.mat"
    savemat(path, {"sarcos_inv": tables[0]}, **how)
    whole = path.read_bytes()
    for length in (0, 1, 10, 19, 60, 127, 129, 150, 180, 200, 1000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(
            ValueError, match=r"sarcos_inv\.mat is no \.mat file that can be read .*; get it anew from the data"
        ):
            load_sarcos(tmp_path)
    path.write_bytes(whole)
    assert len(load_sarcos(tmp_path).X) == 38


@pytest.mark.data
def test_the_public_test_file():
    data = load_sarcos(os.environ["LAWFUL_DATA"], "test")
    assert data.X.shape == (4449, 21) and data.Y.shape == (4449, 7) and data.n_duplicates == 0
    np.testing.assert_array_equal(data.X, load_sarcos(Path(os.environ["LAWFUL_DATA"]) / "sarcos", "test").X)


# ------------------------------------------------------------------------------------------------------------- the arm


def lagrangian(q, qd, lengths, masses, gravity):
    """Kinetic less potential energy of uniform rods, from where their centres are and how they move."""
    total, corner, moving, angle, turning = 0.0, np.zeros(2), np.zeros(2), 0.0, 0.0
    for l, m, a, v in zip(lengths, masses, q, qd):
        angle, turning = angle + a, turning + v
        along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        speed = moving + l / 2 * turning * across
        total += m / 2 * speed @ speed + m * l**2 / 24 * turning**2 - m * gravity * (corner + l / 2 * along)[1]
        corner, moving = corner + l * along, moving + l * turning * across
    return total


@pytest.mark.parametrize("n", [1, 2, 4])
def test_torques_are_those_of_the_lagrangian(n):
    rng = np.random.default_rng(n)
    lengths, masses = rng.uniform(0.3, 1.5, n), rng.uniform(0.5, 3, n)
    q, qd, qdd = rng.standard_normal((3, n))
    h, eye = 1e-4, np.eye(n)

    def momentum(t):
        place, speed = q + t * qd + t**2 / 2 * qdd, qd + t * qdd
        return np.array(
            [
                lagrangian(place, speed + h * e, lengths, masses, 9.81)
                - lagrangian(place, speed - h * e, lengths, masses, 9.81)
                for e in eye
            ]
        ) / (2 * h)

    force = np.array(
        [lagrangian(q + h * e, qd, lengths, masses, 9.81) - lagrangian(q - h * e, qd, lengths, masses, 9.81) for e in eye]
    ) / (2 * h)
    expected = (momentum(h) - momentum(-h)) / (2 * h) - force
    tau = arm_torques(q[None], qd[None], qdd[None], lengths, masses)
    np.testing.assert_allclose(tau[0], expected, rtol=1e-5, atol=1e-5)
    with_friction = arm_torques(q[None], qd[None], qdd[None], lengths, masses, friction=0.7)
    np.testing.assert_allclose(with_friction - tau, 0.7 * qd[None], atol=1e-12)


def test_a_single_rod_held_still():
    tau = arm_torques([[0.0]], [[0.0]], [[0.0]], [2.0], [3.0], gravity=10.0)
    assert tau.item() == pytest.approx(30.0)  # m g l / 2


def test_make_arm():
    data, again = make_arm(200, 3, noise=0.1, random_state=4), make_arm(200, 3, noise=0.1, random_state=4)
    np.testing.assert_array_equal(data.Y, again.Y)
    assert data.X.shape == (200, 9) and data.Y.shape == (200, 3)
    q, qd, qdd = data.X[:, :3], data.X[:, 3:6], data.X[:, 6:]
    clean = arm_torques(q, qd, qdd, data.lengths, data.masses)
    np.testing.assert_allclose((data.Y - clean).std(axis=0) / clean.std(axis=0), 0.1, atol=0.02)
    still = make_arm(5, 2, spread=(0.3, 0, 0), gravity=0.0, random_state=0)
    assert np.all(still.Y == 0)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"n_samples": 0}, r"make_arm\(n_samples=0\) will not do; give a whole number from 1"),
        ({"n_joints": 2.5}, "n_joints=2.5"),
        ({"lengths": [1.0, 2.0]}, "lengths is .*; give 7 numbers above zero"),
        ({"masses": -np.ones(7)}, "masses is .*; give 7 numbers above zero"),
        ({"spread": (1, 2)}, "give three numbers from 0: positions"),
        ({"noise": -1.0}, "noise=-1.0"),
    ],
)
def test_arms_that_cannot_be(given, match):
    with pytest.raises(ValueError, match=match):
        make_arm(**given)
