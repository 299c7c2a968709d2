# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for `./dev docs`."""

from pathlib import Path

project = "tocsin"
copyright = "the authors of tocsin"  # noqa: A001 (Sphinx's name)
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "tocsin"
html_extra_path = ["extra"]
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
exclude_patterns = ["extra"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
