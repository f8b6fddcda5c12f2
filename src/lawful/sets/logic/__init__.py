"""Label logic: formulas over {0, 1}^T, read (`reader`), simplified and split (`parts`), and minimised or summed over exactly.

The parts of a formula that share no label are independent. Each is handled by the cheapest way that is exact: all of its
assignments (`table`), dynamic programming over a tree of small groups of labels (`junction`), or a search (`search`).
"""
