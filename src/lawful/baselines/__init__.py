"""The rival systems of the paper's tables, with the data interface of `ConstrainedRegressor`.

    name in the tables   here                      source
    STL                  SingleTask                ridge, kernel ridge or epsilon-SVR for each task
    MTL                  MeanRegularized           Evgeniou & Pontil 2004
    CMTL                 ClusteredMTL              Jacob, Bach & Vert 2008
    MTRL                 RelationshipLearning      Zhang & Yeung 2010
    MTFL                 LatentTaskStructure       Jawanpuria & Nath 2012
    FMTL                 OutputKernelLearning      Jawanpuria, Lapin, Hein & Schiele 2015
    f = theta(h(x))      ParametrizedRegressor     eq:alternative-formulation
    linear relations     LinearRelations           eq:matrix-A
    -                    WienerShrinkage           STL, then the best linear guess given a cloud of outputs
    SELF                 see below                 Ciliberto, Rosasco & Rudi 2016
    Linear, Hinge, Logistic   PairwiseRanker       Duchi 2010, Herbrich 1999, Dekel 2004
    SVMStruct            StructuralRanker          Tsochantaridis 2005
    STL (rankings)       PairwiseClassifiers       one SVM or kernel ridge for each pair of items
    -                    Popularity, MatrixFactorizationRanker     what papers forget

The rankers have the interface of `ConstrainedRanker`. All others take X (n, d), y (n, T) with NaN for outputs that were not
observed (`lawful.stack_tasks` joins separate data sets) and sample weights, predict (m, T), have a bias for each task, and
state their objective as

    sum_t (1/n_t) sum_i w_it (y_it - f_t(x_i) - b_t)^2 + lam Omega(f)

so that `lam` means the same everywhere. Iterative ones stop by a duality gap (`gap_`, `n_iter_`) and warn when they could
not reach it. `tune` chooses hyper-parameters.

SELF with the square loss on vector-valued outputs is what the library does anyway when all outputs are observed together
and share one lambda: ``ConstrainedRegressor(constraint, surrogate=KernelRidge(kernel, lam=lam, scales="shared",
intercept=False), loss=Square(metric="identity"))`` has the weights alpha(x) = (K + n lam I)^-1 K_x of that paper and
returns the c in the set that minimises sum_i alpha_i(x) |c - y_i|^2.
"""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
