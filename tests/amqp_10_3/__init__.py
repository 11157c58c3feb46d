"""AMQ Protocol 10.3: codec and engine, against vectors, a second reader, and each other."""
