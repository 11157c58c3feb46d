"""The bridges from programs without trio."""
