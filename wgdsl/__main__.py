"""`python -m wgdsl`."""

from .cli import main

main()
