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
html_static_path = ["_static"]
html_css_files = ["manual.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
napoleon_use_ivar = True
napoleon_custom_sections = [("Raises on entering", "Raises")]


def setup(app):
    """Have napoleon see a section that it would not, as its title has brackets."""

    def rename(_app, what, _name, _object, _options, lines):
        lines[:] = ["Raises on entering:" if line == "Raises (on entering):" else line for line in lines]
        if what in ("property", "attribute", "data") and lines and ":" in lines[0]:
            lines[0] = f": {lines[0]}"  # napoleon takes what is before a colon for a type: there is none

    def leave_out(_app, what, _name, item, _options, _signature, _returns):
        """How to make what programs get ready-made is no news to them: arguments are shown where they are described."""
        text = item.__doc__ or ""
        if what == "class" and not any(word in text for word in ("Args:", "Attributes:", "(2.8", "(3.")):
            return "", ""
        return None

    app.connect("autodoc-process-docstring", rename, priority=400)  # napoleon has 500
    app.connect("autodoc-process-signature", leave_out)
