"""The rival systems of the ranking table, with the interface of `ConstrainedRanker`.

    name in the table    here                                   source
    Linear               PairwiseRanker("linear")               Duchi, Mackey & Jordan 2010
    Hinge                PairwiseRanker("hinge")                Herbrich, Graepel & Obermayer 1999
    Logistic             PairwiseRanker("logistic")             Dekel, Manning & Singer 2004
    SVMStruct            StructuralRanker()                     Tsochantaridis, Joachims, Hofmann & Altun 2005
    SELF                 ConstrainedRanker(prior=None, missing="zero", ...), see there
    -                    Popularity()                           shrunk item mean
    -                    MatrixFactorizationRanker()            alternating least squares with fold-in

`fit(X, R)`, `predict(X, ratings)` -> positions (m, D), `recommend`, `score`. The first four score by w . phi(u, i), features of
query and item together (`RankingFeatures`, or one's own); all sort their scores, so that every prediction is an order.
"""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
