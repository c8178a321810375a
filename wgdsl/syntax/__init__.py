"""Form 1: the AST of `.wg` files, its parser and its formatter."""
