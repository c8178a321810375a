"""Step: AST -> program graph. Names, options, types, extents and ranges are settled here."""

from .analyse import analyse

__all__ = ["analyse"]
