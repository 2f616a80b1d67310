"""The command line: `shoal …`. One file per group of commands; `main` assembles them."""
