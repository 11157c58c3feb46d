"""The pages of the manual that are made of tables here, and of the names of tests: ``python -m tests.conformance``."""
