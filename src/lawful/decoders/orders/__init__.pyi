"""What `lawful.decoders.orders` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.decoders.orders.ordering import METHODS, Ordering, check_matrix, fast_insertion, order, rescaled, summary

__all__ = ["METHODS", "Ordering", "check_matrix", "fast_insertion", "order", "rescaled", "summary"]
