"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network.

`docutils` brings the translation from LaTeX; Sphinx only needs to be told of it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def formula(text: str, display: bool) -> str:
    return latex2mathml.tex2mathml(text, as_block=display)


def visit_inline(self: HTML5Translator, node: Any) -> None:
    self.body.append(formula(node.astext(), display=False))
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: Any) -> None:
    self.body.append(f'<div class="math">{formula(node.astext(), display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
