"""The rows of the conformance page, section by section, in the standard's order."""
