"""Whether memory that is not initialised is filled: kept, nothing reads it."""
fill_uninitialized_memory = True
