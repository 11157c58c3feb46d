"""The wheel and the sdist: built, looked into, and tried in empty environments (``make dist-check``)."""
