"""Sphinx configuration of the documentation.

    python -m sphinx -W --keep-going -b html docs docs/_build/html

needs the extra ``docs`` and no network. SKLEARN_IRT_INTERSPHINX=1 links the pages of other
projects, for which their inventories are fetched.
"""

import os
import re
from importlib.metadata import version as installed_version

project = "sklearn_irt"
author = "sklearn_irt developers"
copyright = author
release = version = installed_version("sklearn-irt")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "api/templates"]
templates_path = ["api/templates"]
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

# The templates list methods themselves; numpydoc's own lists would want a page for each.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    # Only the stories: the other examples print tables, and some fetch data or take minutes.
    "ignore_pattern": r"(^|[/\\])(?!plot_)[^/\\]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("sklearn_irt", "benchmarks_registry"),
    "reference_url": {"sklearn_irt": None, "benchmarks_registry": None},
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "plot_gallery": "True",
}

if os.environ.get("SKLEARN_IRT_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# Formulas as MathML, which browsers draw by themselves: MathJax would be fetched by each reader.
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": project},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_nav_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "migration": []}


def formula(block):
    """A visitor of Sphinx's HTML writer for formulas, in the text or as blocks of their own."""

    def visit(writer, node):
        from docutils.nodes import SkipNode
        from docutils.utils.math.latex2mathml import tex2mathml

        # An index on an accented letter would be set under it: give it an empty base of its own.
        tex = re.sub(r"(\\(?:hat|bar|tilde) *(?:\w|\{\w\}))_", r"\1{}_", node.astext())
        mathml = tex2mathml(tex, as_block=block)
        writer.body.append(f'<div class="formula">{mathml}</div>' if block else mathml)
        raise SkipNode

    return visit


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (formula(False), None), (formula(True), None))
