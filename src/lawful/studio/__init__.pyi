"""What `lawful.studio` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.studio.server import Studio, serve

__all__ = ["Studio", "serve"]
