"""How the documentation is built: `make docs`. Nothing in the pages is loaded from elsewhere."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices: threads would wait for each other

import matplotlib  # noqa: E402

import lawful  # noqa: E402

matplotlib.use("Agg")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "lawful"
author = "The lawful developers"
copyright = author
version = release = lawful.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "plain_math",
    "arrows",
    "reference",
    "docstrings",
    "tables",
]
exclude_patterns = ["_build", "_ext", "_templates", "gallery/backreferences/*"]
templates_path = ["_templates"]
html_math_renderer = "mathml"
default_role = "literal"
nitpicky = False

myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "copyfile_regex": r"index\.rst$",  # our own sections
    "filename_pattern": r"plot_\w+\.py$",
    "ignore_pattern": r"(^|/)(?!plot_)\w+\.py$",
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 360),
    "ignore_repr_types": r"matplotlib\..*|list|tuple|lawful\.plots\..*",
    "matplotlib_animations": False,
    "show_signature": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("lawful",),
    "backreferences_dir": "gallery/backreferences",
    "reset_modules": ("matplotlib",),
    "compress_images": (),
    "parallel": 2,
}

html_theme = "pydata_sphinx_theme"
html_title = "lawful"
html_static_path = ["_static"]
html_css_files = ["lawful.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "gallery/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "faq": [], "gallery/index": []}
