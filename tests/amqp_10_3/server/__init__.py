"""AMQ Protocol 10.3 served by a container."""
