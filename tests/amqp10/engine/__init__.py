"""The engine, module by module, against transcripts and against itself."""
