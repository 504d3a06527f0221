"""``python -m tallymark.cli``: the command line by the interpreter that runs it."""

from tallymark.cli import main

main(prog_name="tallymark")
