"""The parts of save() and load()."""
