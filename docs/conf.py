"""How Sphinx builds the manual."""

from trio_amqp10 import __version__

project = "trio-amqp10"
author = "the trio-amqp10 authors"
copyright = author
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "trio-amqp10"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
napoleon_use_ivar = True
napoleon_custom_sections = [("Raises on entering", "Raises")]


def setup(app):
    """Have napoleon see a section that it would not, as its title has brackets."""

    def rename(_app, _what, _name, _object, _options, lines):
        lines[:] = ["Raises on entering:" if line == "Raises (on entering):" else line for line in lines]

    app.connect("autodoc-process-docstring", rename, priority=400)  # napoleon has 500
