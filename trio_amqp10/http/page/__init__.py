"""The page for operators of a container, and the requests that it alone makes."""
