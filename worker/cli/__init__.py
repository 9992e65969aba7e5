"""The command line. Modules here import only Typer and the standard library at the top: `--help` must be quick."""
