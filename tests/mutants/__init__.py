"""What the tests would not notice: mutants of the modules that matter most; ``make mutants``."""
