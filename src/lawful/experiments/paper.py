"""The numbers and the errata of the paper, as printed: what our tables stand beside."""

from __future__ import annotations

SARCOS = {  # tab:real-data, explained variance in per cent, (mean, standard deviation) over 10 splits
    "STL": (40.5, 7.6),
    "MTL": (34.5, 10.2),
    "CMTL": (33.0, 13.4),
    "MTRL": (41.6, 7.1),
    "MTFL": (49.9, 6.3),
    "FMTL": (50.3, 5.8),
    "NL-MTL[R]": (55.4, 6.5),
    "NL-MTL[P]": (54.6, 5.1),
}
RANKING = {  # tab:ranking, "rank loss", denominator not stated, (mean, standard deviation) over 10 trials
    "NL-MTL": (0.321, 0.004),
    "SELF": (0.396, 0.003),
    "Linear": (0.430, 0.004),
    "Hinge": (0.432, 0.008),
    "Logistic": (0.432, 0.012),
    "SVMStruct": (0.451, 0.008),
    "STL": (0.581, 0.003),
    "MTRL": (0.613, 0.005),
}
ERRATA = {
    "E1": "The printed lemniscate f = (sin x, sin 2x) does not satisfy the printed equation y1^4 = y1^2 - y2^2: the residual "
    "reaches 0.75. Consistent pairs: (sin x, sin(2x)/2) with the printed equation, or (sin x, sin 2x) with "
    "y1^4 = y1^2 - y2^2/4.",
    "E2": "Penalised MTL: with kappa = abar/mu the solution is (b_t + kappa f0_t)/(a_t + kappa); the printed numerator b_t/a_t "
    "is wrong.",
    "E3": "Penalised vector-valued regression, loss divided by T: it shrinks by mu/(T + mu); the printed mu/(1 + mu) belongs "
    "to the summed loss.",
    "E4": "The projection of b/a is the minimiser only where a > 0; for a < 0 it is the far side of C. We minimise the "
    "quadratic form itself.",
    "E5": "The penalised loss charges the distance of its second argument, which in the risk is the label; the arguments are "
    "swapped.",
    "E6": "The matrix V of the sphere lemma must have 0 at (3, 1); otherwise q of the sphere does not decay with T.",
    "E7": "q of the sphere is 2 sqrt((4 B^2 + B^4)/T); the later B sqrt(4 + B^2) lacks 2/sqrt(T).",
    "E8": "In the proof of the comparison inequality, term A needs Cauchy-Schwarz before the supremum.",
    "E9": "The union bound over T tasks must use eta = tau + log T.",
    "E10": "The proposition that most losses are SELF needs the loss itself to be Lipschitz.",
    "E11": "A = (theta theta')^+ is equivalent to the parametrised problem only for f in the range of theta.",
    "E12": "C must be closed; otherwise the minimiser need not exist.",
    "E13": "The rate is (tau + log T)^2 n^-1/4, not tau^2 log T n^-1/4.",
}
