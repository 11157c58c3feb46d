"""Every error message of the package, read from its sources: a check of their form, and the page that explains them."""
