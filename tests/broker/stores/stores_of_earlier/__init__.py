"""Stores that earlier versions made, and what makes one: see ``make``."""
