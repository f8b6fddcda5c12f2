"""Laws learned from a cloud of points: from moments to readable equations.

features.py has the monomials and their gradients, spectrum.py the noise-aware eigenproblem with its count of laws and its
guard, supports.py the search for few terms, refine.py distances, foot points and standard errors, noise.py what to do when
nobody knows the noise, findings.py the whole way; equations.py is the constraint set, words.py
and table.py what people read. Without equations: patches.py and tangent.py have the surface of a cloud, density.py its bulk.
"""
