"""Linear ordering: total orders of items from what it pays to put one before the other."""

from lawful.decoders.orders.ordering import METHODS, Ordering, check_matrix, fast_insertion, order, summary

__all__ = ["METHODS", "Ordering", "check_matrix", "fast_insertion", "order", "summary"]
