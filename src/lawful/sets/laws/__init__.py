"""A law as a graph of expressions: read once, differentiated on the graph, evaluated over the whole batch.

graph.py has the nodes and their arithmetic, derivatives.py the reverse sweeps, program.py the evaluation with any array
library, law.py the way from strings and sympy objects to a compiled system.
"""
