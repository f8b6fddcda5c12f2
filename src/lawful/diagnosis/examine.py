"""`doctor`: does this law fit these data, and if not, what is wrong? It reports, whatever the data; it does not raise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from lawful._smooth import noise_of
from lawful.decoders import project
from lawful.diagnosis.agreement import FEW, Residuals, Verdict, agreement, outlying, residuals
from lawful.diagnosis.functions import Functions
from lawful.diagnosis.remedies import Change, Remedy, fitted, simple
from lawful.diagnosis.report import ALARM, NOTE, Diagnosis, Finding, Tested
from lawful.diagnosis.structure import structure_of
from lawful.tasks import Tasks

FEWER = 0.1  # of the rows at most are outliers; more is a law that does not hold
HALF = 0.2  # of the rows at least on each side of a split
SPARSE = 0.5  # of an output missing is worth a note
CLOSE = 0.3  # of the spread of the outputs: a singular point is near
APART = 1e4  # between the spreads of outputs, or the sizes of equations: units may be mixed
LONELY = 2.0  # labels that a fitted value rests on, at least
PASSES = 0.05  # p above which a changed equation agrees with the labels


def doctor(X: Any, Y: Any, constraint: Any, *, alpha: float = 0.05, held_out: bool = True, random_state: int = 0) -> Diagnosis:
    """Is this law right for these data?

    Every equation is tested against the labels, with the noise that a smooth regression of the outputs on the inputs leaves
    (calibrated: of sound laws a share `alpha` raises an alarm, all equations together). One that fails is looked into: another
    unit, sign or order of the columns, a number in it, a biased output, outlying rows, or inputs for which it does not
    hold. Then the equations are compared with each other (redundant, contradictory, singular near the data), and the law with
    no law.

    Parameters
    ----------
    X, Y : as for `ConstrainedRegressor.fit`; DataFrames and gaps are welcome.
    constraint : the law, a set. Its unknown coefficients are estimated, and the law examined with the estimates.
    alpha : share of false alarms.
    held_out : whether to compare errors on rows left out with and without the law, which is most of the time.
    random_state : int, of the tests and the folds.

    Returns
    -------
    Diagnosis
        `str` is the text; `alarms`, `notes`, `to_frame()`, `to_html()`, `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import Equations, doctor
    >>> t = np.linspace(0, 6, 80)
    >>> noise = 0.02 * np.random.default_rng(0).standard_normal((80, 2))
    >>> found = doctor(t[:, None], np.c_[np.cos(t), np.sin(t)] + noise, Equations("y1**2 + y2**2 = 1.2"))
    >>> [alarm.kind for alarm in found.alarms]
    ['equation']
    >>> print(found.alarms[0].sentence)  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    off by -0.2... on average at the labels (... sigma); 0.99... instead of 1.2 would fit (+- 0.0...); `y1**2 + y2**2 = a` with
    unknown=['a'] estimates it; as it stands, delta = 0.1 would hold it
    """
    examiner = _Examiner(alpha, int(random_state), held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            examiner.examine(X, Y, constraint)
        except Exception as error:  # whatever is wrong with the data or the law is a finding
            examiner.add(ALARM, "data", "", f"the examination stopped: {error}")
            examiner.untested.append("all that comes after that")
    return Diagnosis(examiner.findings, examiner.tested, examiner.help, examiner.untested, examiner.z)


class _Examiner:
    """One visit: each method looks at one thing and writes down what it finds."""

    def __init__(self, alpha: float, seed: int, held_out: bool = True) -> None:
        self.alpha, self.seed, self.held_out = alpha, seed, held_out
        self.findings: list[Finding] = []
        self.tested: list[Tested] = []
        self.untested: list[str] = []
        self.help: dict[str, float] = {}
        self.z: dict[str, np.ndarray] = {}

    def add(self, level: str, kind: str, subject: str, sentence: str, rows: Any = (), **numbers: float) -> None:
        self.findings.append(Finding(level, kind, subject, sentence, numbers, tuple(rows)))

    # ------------------------------------------------------------------ the visit

    def examine(self, X: Any, Y: Any, constraint: Any) -> None:
        index = getattr(Y, "index", None)
        try:
            self.tasks = tasks = Tasks.read(BaseEstimator(), X, Y)
        except (ValueError, TypeError) as error:
            self.add(ALARM, "data", "", f"the data cannot be read: {error}")
            self.untested.append("the law, for want of data")
            return
        self.labels = [*index] if index is not None and len(index) == tasks.n_rows else list(range(tasks.n_rows))
        self.Y, self.names = tasks.Y, tasks.output_names
        self.spread = np.array([s if s > 0 else 1.0 for s in np.nanstd(self.Y, axis=0)])
        self.gaps()
        try:
            self.C = clone(constraint).fit(self.Y, tasks.X, outputs=tasks.names, inputs=tasks.inputs)
        except (ValueError, TypeError) as error:
            self.add(ALARM, "law", "", f"the law cannot be read: {error}")
            self.untested.append("the law, which could not be read")
            return
        self.coefficients()
        law = Functions.of(self.C, tasks.X, tasks.names, tasks.inputs)
        if law is None:
            self.untested.append(f"{type(self.C).__name__}, which is not given by equations")
            self.worth()
            return
        self.law, self.noise = law, noise_of(tasks.X, self.Y, self.seed)
        self.filled = np.where(np.isnan(self.Y), self.noise.smooth, self.Y)
        self.use()
        self.scales()
        self.weak()
        self.structure()
        self.agree()
        self.worth()

    def coefficients(self) -> None:
        """Coefficients that nobody knew, as they were estimated: the law is examined with these numbers in it."""
        for name, value in getattr(self.C, "unknown_", {}).items():
            error = self.C.unknown_std_[name]
            words = f"estimated at {value:.4g} +- {error:.2g}" if np.isfinite(error) else f"{value:.4g}, where its bound is"
            self.add(NOTE, "unknown", name, words, value=value, error=error)
        if hasattr(self.C, "unknown_"):
            tasks = self.tasks
            self.C = self.C.to_equations().fit(self.Y, tasks.X, outputs=tasks.names, inputs=tasks.inputs)

    def gaps(self) -> None:
        gap = np.isnan(self.Y)
        if gap.any():
            patterns, whole = len(np.unique(gap, axis=0)), int((~gap.any(axis=1)).sum())
            words = f"{gap.mean():.0%} of the labels are missing, in {patterns} pattern{'s' * (patterns > 1)}; "
            self.add(NOTE, "gaps", "", f"{words}{whole} of {len(gap)} rows are complete", share=float(gap.mean()))
        for t, share in enumerate(gap.mean(axis=0)):
            if share > SPARSE:
                self.add(NOTE, "missing", self.names[t], f"{share:.0%} of its labels are missing", share=float(share))
        constant = [self.names[t] for t in range(len(self.names)) if np.nanstd(self.Y[:, t]) == 0]
        for name in constant:
            self.add(NOTE, "constant", name, "all its labels are the same")

    def use(self) -> None:
        """Which outputs each function speaks of."""
        J = np.abs(self.law.jacobian(self.filled)) + np.abs(self.law.jacobian(self.noise.smooth))
        touched = np.nan_to_num(J * self.spread).max(axis=0) > 0
        self.used = [np.flatnonzero(row).tolist() for row in touched]
        for t in np.flatnonzero(~touched.any(axis=0)):
            self.add(NOTE, "unused", self.names[t], "no equation speaks of it; the law leaves it as it was predicted")

    def scales(self) -> None:
        """Outputs and equations of very different size, whose units may be mixed."""
        moving = np.nanstd(self.Y, axis=0) > 0
        J = np.abs(self.law.jacobian(self.noise.smooth)[:, : self.law.n_equal]) * self.spread
        sizes = np.nanmedian(np.where(np.isfinite(J), J, np.nan).max(axis=2), axis=0) if self.law.n_equal else np.zeros(0)
        for what, names, values in (
            ("outputs", np.array(self.names)[moving], self.spread[moving]),
            ("equations", np.array([f"`{name}`" for name in self.law.names[: self.law.n_equal]]), sizes),
        ):
            good = np.isfinite(values) & (values > 0)
            names, values = names[good], values[good]
            if len(values) > 1 and values.max() > APART * values.min():
                low, high = names[values.argmin()], names[values.argmax()]
                self.add(
                    NOTE, "scale", "",
                    f"{what} of very different size: {high} varies by {values.max():.2g}, {low} by {values.min():.2g}; are the "
                    "units those of the law?", ratio=float(values.max() / values.min()),
                )  # fmt: skip

    def weak(self) -> None:
        """Rows at which the regression, and so its weights a_t(x), rests on hardly more than one label."""
        everywhere, smoothers = np.arange(len(self.Y)), self.noise.smoothers
        squared = {id(s): np.sum(s.weights(everywhere) ** 2, axis=1) for s in {id(s): s for s in smoothers}.values()}
        for name, smoother in zip(self.names, smoothers):
            alone = np.flatnonzero(squared[id(smoother)] * LONELY > 1)
            if len(alone):
                few = "1 row rests" if len(alone) == 1 else f"{len(alone)} rows rest"
                self.add(
                    NOTE, "weak", name, f"its predictions at {few} on fewer than {LONELY:.0f} labels",
                    [self.labels[i] for i in alone], share=len(alone) / len(self.Y),
                )  # fmt: skip

    def structure(self) -> None:
        rows = np.flatnonzero(np.isfinite(self.filled).all(axis=1))[:400]
        law = self.law.on(rows)
        found = structure_of(law, self.filled[rows], self.spread)
        for p, (others, contradicts) in found.dependent.items():
            of = " and ".join(f"`{law.names[q]}`" for q in others)
            kind, words = ("contradiction", f"contradicts {of}: both cannot hold at once") if contradicts else (
                "redundant", f"follows from {of} and can be left out")  # fmt: skip
            self.add(ALARM, kind, f"`{law.names[p]}`", words)
        self.rank = found.rank
        if law.n_equal:
            T = len(self.names)
            words = f"the Jacobian at the data has rank {found.rank}: the law leaves {T - found.rank} of {T} outputs free"
            self.add(NOTE, "dimension", "", words, rank=found.rank, dimension=T - found.rank)
        if law.n_equal and not found.dependent and found.rank < law.n_equal:
            self.add(ALARM, "redundant", "", f"{law.n_equal} equations decide {found.rank} outputs: some are redundant")
        near = np.flatnonzero(found.singular < CLOSE)
        if len(near):
            self.add(
                NOTE, "singular", "",
                f"the law has a singular point (a crossing, a tip) within {CLOSE} spreads of {len(near)} rows; "
                "which branch is right is decided by noise there",
                [self.labels[rows[i]] for i in near[:10]], distance=float(found.singular.min()),
            )  # fmt: skip

    # ------------------------------------------------------------------ labels against the law

    def after(self, p: int, change: Change, rows: np.ndarray) -> Residuals:
        """Residuals of function p on some rows after a change of the labels, or of its words."""
        law, q = (self.law, p) if change.law is None else (change.law, 0)
        law = law.on(rows)
        Y, smooth = change.labels(self.filled[rows]), change.labels(self.noise.smooth[rows])
        g, J = law.values(Y)[:, q], law.jacobian(smooth)[:, q]
        size = np.abs(J * Y).sum(axis=1) + np.abs(g)
        return residuals(g, J, law.hessian(smooth, q), change.covariance(self.noise.S), smooth, size, rows)

    def agree(self) -> None:
        none, T = Change.none(len(self.names)), len(self.names)
        verdicts: list[tuple[int, Residuals, Verdict]] = []
        for p, name in enumerate(self.law.names):
            rows = np.flatnonzero(~np.isnan(self.Y[:, self.used[p]]).any(axis=1)) if self.used[p] else np.zeros(0, int)
            if len(rows) < FEW:
                self.untested.append(f"`{name}`: {len(rows)} rows have labels for all its outputs")
                continue
            found = self.after(p, none, rows)
            if p >= self.law.n_equal:
                self._inequality(p, found)
                continue
            verdict = agreement(found, self.noise.basis, self.seed)
            if verdict is None:
                self.untested.append(f"`{name}`: too few rows are inside its domain")
                continue
            self.z[name] = found.z(1.0)
            noise = float(np.sqrt(np.mean(found.variance)))
            self.tested.append(Tested(name, "=", verdict.n, verdict.mean, verdict.error, noise, verdict.p, verdict.sigma))
            verdicts.append((p, found, verdict))
        # Holm: the smallest p against alpha / (number of equations), the next against one less, ...
        ranked = sorted(verdicts, key=lambda item: item[2].p)
        for k, (p, found, verdict) in enumerate(ranked):
            fails = verdict.p <= self.alpha / (len(ranked) - k)
            if not fails:
                for q, other, _ in ranked[k:]:
                    self._outliers(q, other, report=True)
                break
            self._look_into(p, found, verdict, T)

    def _outliers(self, p: int, found: Residuals, report: bool) -> set[int]:
        z = found.z(1.0)
        middle = np.median(z)
        scale = 1.4826 * np.median(np.abs(z - middle)) or float(z.std()) or 1.0
        far = np.abs(z - middle) > outlying(np.abs(z - middle)) * scale
        if not far.any() or far.mean() > FEWER or scale == 0:
            return set()
        rows = found.rows[far]
        if report:
            self._report_outliers(p, rows, float(np.abs((z[far] - middle) / scale).max()))
        return set(rows.tolist())

    def _report_outliers(self, p: int, rows: np.ndarray, worst: float) -> None:
        shown = ", ".join(str(self.labels[i]) for i in rows[:8]) + (", ..." if len(rows) > 8 else "")
        one = len(rows) == 1
        self.add(
            ALARM, "outliers", f"`{self.law.names[p]}`",
            f"{'1 row is' if one else f'{len(rows)} rows are'} far from it (up to {worst:.0f} times the usual): {shown}",
            [self.labels[i] for i in rows], worst=worst,
        )  # fmt: skip

    def _look_into(self, p: int, found: Residuals, verdict: Verdict, T: int) -> None:
        name = f"`{self.law.names[p]}`"
        far = self._outliers(p, found, report=False)
        if far:
            keep = np.array([i not in far for i in found.rows])
            without = found.on(keep)
            again = agreement(without, self.noise.basis, self.seed)
            if again is not None and again.p > PASSES:
                z = found.z(1.0)
                self._report_outliers(p, found.rows[~keep], float(np.abs(z[~keep]).max() / max(np.median(np.abs(z)), 1e-300)))
                return
        numbers = {"mean": verdict.mean, "sigma": verdict.sigma, "delta": self._delta(found)}
        off = f"off by {verdict.mean:+.3g} on average at the labels ({verdict.sigma:.1f} sigma)"
        tube = f"as it stands, delta = {numbers['delta']:.2g} would hold it"
        remedy = self._remedy(p, found, T)
        if remedy is not None:
            kind = remedy.kind if remedy.kind in ("unit", "sign", "swap") else "equation"
            kind = "bias" if remedy.kind == "offset" else kind
            self.add(ALARM, kind, name, f"{off}; {remedy.sentence}; {tube}", value=remedy.value, error=remedy.error, **numbers)
            return
        split = self._split(found)
        if split:
            self.add(ALARM, "part", name, f"{off}; {split}; {tube}", **numbers)
            return
        self.add(ALARM, "equation", name, f"{off}; no single change makes it fit; {tube}", **numbers)

    def _delta(self, found: Residuals) -> float:
        """How far the labels are from the law beyond their noise, along it."""
        beyond = np.sqrt(max(float(np.mean(found.g**2)) - float(np.mean(found.variance)), 0.0))
        J = self.law.on(found.rows).jacobian(self.noise.smooth[found.rows])
        steep = float(np.median(np.linalg.norm(J, axis=2).max(axis=1)))
        return beyond / steep if steep > 0 else beyond

    def _remedy(self, p: int, found: Residuals, T: int) -> Remedy | None:
        """The change after which the equation agrees with the labels best."""
        used, after = self.used[p], lambda change: self.after(p, change, found.rows)
        loud = float(np.mean(found.z(1.0) ** 2))
        for candidates in (simple(self.law, p, used, self.names, T), fitted(self.law, p, used, self.names, self.spread, after)):
            best: tuple[float, Remedy] | None = None
            for remedy in candidates:
                left = after(remedy.change)
                verdict = agreement(left, self.noise.basis, self.seed)
                if verdict is None or verdict.n < len(found.rows) or verdict.p <= PASSES:
                    continue
                quiet = float(np.mean(left.z(1.0) ** 2))
                if quiet < loud and (best is None or quiet < best[0] * 0.98):  # earlier ones are simpler
                    best = quiet, remedy
            if best is not None:
                return best[1]
        return None

    def _split(self, found: Residuals) -> str:
        """One input and a threshold on one side of which the equation holds."""
        X, best = np.asarray(self.tasks.X)[found.rows], (PASSES, "")
        names = self.tasks.inputs or [f"x{j + 1}" for j in range(X.shape[1])]
        for j in range(X.shape[1]):
            for cut in np.unique(np.quantile(X[:, j], np.linspace(HALF, 1 - HALF, 7))):
                for side, words in ((X[:, j] <= cut, "<="), (X[:, j] > cut, ">")):
                    if not HALF <= side.mean() <= 1 - HALF:
                        continue
                    part = found.on(side)
                    verdict = agreement(part, self.noise.basis, self.seed)
                    if verdict is not None and verdict.p > best[0]:
                        best = verdict.p, f"it holds where {names[j]} {words} {cut:.3g}, and not elsewhere"
        return best[1]

    def _inequality(self, p: int, found: Residuals) -> None:
        name = self.law.names[p]
        z = found.z(1.0)
        beyond = float(np.mean(z > 3))
        active = float(np.mean(np.abs(z) < 2))
        noise = float(np.sqrt(np.mean(found.variance)))
        mean = float(np.mean(np.maximum(found.g, 0)))
        self.tested.append(Tested(name, "<=", len(found.rows), mean, np.nan, noise, np.nan, float(z.max(initial=0.0)), active))
        expected = 0.00135 * len(z)
        if np.sum(z > 3) > expected + 4 * np.sqrt(expected) + 1:
            self.add(
                ALARM, "inequality", f"`{name}`", f"{beyond:.1%} of the labels are beyond it by more than noise", share=beyond
            )
        self.add(NOTE, "active", f"`{name}`", f"{active:.0%} of the labels are at its border", share=active)

    # ------------------------------------------------------------------ is it worth it

    def worth(self) -> None:
        """Codimension, and the error of smoothed labels on rows left out with and without the law."""
        T = len(self.names)
        codimension = getattr(self, "rank", 0)
        self.help = {"codimension": float(codimension), "outputs": float(T)}
        if not self.held_out:
            self.untested.append("whether the law helps (held_out=False)")
            return
        try:
            self._held_out()
        except Exception as error:
            self.untested.append(f"whether the law helps: {error}")
            return
        without, with_ = self.help["error_without"], self.help["error_with"]
        gain = 1 - with_ / without if without > 0 else 0.0
        words = "changes little" if abs(gain) < 0.005 else f"{'lowers' if gain > 0 else 'raises'} the error by {abs(gain):.1%}"
        self.add(
            NOTE, "help", "",
            f"the law decides {codimension} of {T} outputs (of even noise, {codimension / T:.0%} lies across it), and {words} "
            "on rows left out, projected in the metric of the noise", gain=gain, expected=codimension / T,
        )  # fmt: skip

    def _held_out(self) -> None:
        n = self.tasks.n_rows
        rows = np.random.default_rng(self.seed).permutation(n)[: min(n, 600)]
        folds, errors = np.array_split(rows, 3), []
        for test in folds:
            train = np.setdiff1d(rows, test)
            part = noise_of(self.tasks.X, np.where(np.isin(np.arange(n), train)[:, None], self.Y, np.nan), self.seed)
            guess = part.smooth[test]
            S = np.diag(part.S)
            weight = 1 / np.where(S > 0, S, max(float(S.max()), 1e-300))
            lawful = project(guess, self.C, weights=weight, X=self.tasks.X[test])
            Y = self.Y[test]
            errors.append([np.nanmean((c - Y) ** 2 / self.spread**2) for c in (guess, np.asarray(lawful))])
        without, with_ = np.mean(errors, axis=0)
        self.help |= {"error_without": float(without), "error_with": float(with_)}
