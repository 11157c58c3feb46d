"""Long runs with real processes, real files and real kills; ``make soak``."""
