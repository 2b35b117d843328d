"""Timer measures statements, Measurement holds the times, Compare prints several as a table."""
from .compare import Compare
from .timer import Measurement, Timer

__all__ = ["Compare", "Measurement", "Timer"]
