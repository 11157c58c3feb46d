"""The parts of 10.3 that the engine of 0-9-1 uses: profile, states and self-test."""
