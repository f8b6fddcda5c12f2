"""How the examples of fields print: one line for each way to predict, its error and how far it is from the law."""

from __future__ import annotations


def show(title: str, errors: dict[str, tuple[float, float]]) -> None:
    """`errors`: name -> (error, violation)."""
    print(title)
    print(f"{'':<44}{'error':>12}{'violation':>12}")
    for name, (error, violation) in errors.items():
        print(f"{name:<44}{error:>12.5g}{violation:>12.1e}")
