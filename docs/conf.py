"""How Sphinx builds the manual."""

import re

from sphinx.writers.html5 import HTML5Translator

from trio_amqp10 import __version__
from trio_amqp10.amqp_10_3.server.protocol import Amqp103

project = "trio-amqp10"
author = "the trio-amqp10 authors"
copyright = author
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "trio-amqp10"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = ["filter.js"]

# Sphinx cannot evaluate the annotations of this method, and several classes have the name "Limits".
Amqp103.__init__.__annotations__["limits"] = "trio_amqp10.amqp091.Limits | None"

copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
napoleon_use_ivar = True
napoleon_custom_sections = [("Raises on entering", "Raises")]


class Translator(HTML5Translator):
    """Lets a long name break after an underscore, a dot or a slash."""

    def visit_Text(self, node):  # noqa: N802 - docutils calls it by this name
        super().visit_Text(node)
        if self.protect_literal_text:
            self.body[-1] = re.sub(r"(?<=\w)([_./])(?=\w)", r"\1<wbr>", self.body[-1])


def setup(app):
    """Register what Sphinx and napoleon do not do by themselves."""

    def rename(_app, what, _name, _object, _options, lines):
        lines[:] = ["Raises on entering:" if line == "Raises (on entering):" else line for line in lines]
        if what in ("property", "attribute", "data") and lines and ":" in lines[0]:
            lines[0] = f": {lines[0]}"  # napoleon takes what is before a colon for a type: there is none

    def leave_out(_app, what, _name, item, _options, signature, returns):
        """Show the arguments of a class only if its docstring describes them.

        A program does not create other classes.
        """
        text = item.__doc__ or ""
        if (
            what == "class"
            and signature
            and not any(word in text for word in ("Args:", "Attributes:", "(2.8", "(3."))
        ):
            return "", ""
        return (signature.replace("<built-in function time>", "time.time"), returns) if signature else None

    app.set_translator("html", Translator)
    app.connect("autodoc-process-docstring", rename, priority=400)  # napoleon has 500
    app.connect("autodoc-process-signature", leave_out)
