"""What the loader is made of."""
from . import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
