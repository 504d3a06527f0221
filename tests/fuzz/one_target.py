"""One target under atheris, guided by what it covers of the engine: ``... NAME CORPUS <options of libFuzzer>``."""

import sys
from pathlib import Path

from tests.fuzz.bounds import held_within
from tests.fuzz.targets import load


def main(name: str, corpus: str, *options: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["tallymark.engine"]):
        module = load(name)
    for number, seed in enumerate(module.seeds()):
        Path(corpus, f"seed-{number}").write_bytes(seed)
    atheris.Setup([name, *options, corpus], held_within(module.target))
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
