"""Hardware as data: one file per PTX family of frozen rows that assert their own arithmetic."""
