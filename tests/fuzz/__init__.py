"""An attack on the promise of the library: a certificate per row.

    python -m tests.fuzz --n 100000 --seed 0 --jobs 2      the long run (`make fuzz N=100000`)
    python -m tests.fuzz --seed 0 --case 17                one case, printed as Python, and what became of it

A *case* is one random law and a few calls on it (`calls.py`); case k of seed s is the same whatever ran before it. A *call* is
one use of a verb: project, decode, or fit and decode.

    expressions   a grammar of formulas, with an evaluation of its own that knows the size of the terms
    laws          every set once more, in plain numpy: how far off a point is, relative to the law's own scale
    draw          random laws: formulas, named sets, compositions, relaxations, column names
    source        objects that can be built and printed as Python
    data          random points, tables with gaps, losses, objectives
    calls         the verbs
    judge         what must hold after every call
    optimum       a search for a better point than the one that was returned
    run           cases, the clock, worker processes, the report

Nothing here asks the library whether a point obeys a law.
"""
