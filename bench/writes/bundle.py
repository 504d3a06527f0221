"""Which Spark and which Hadoop a Python has: what the jars of a side have to fit."""

import json
import subprocess
from dataclasses import dataclass

TIMEOUT_S = 60.0
"""For a Python to start on a busy machine."""

_PROGRAM = """
import importlib.metadata, importlib.util, json, pathlib
home = pathlib.Path(importlib.util.find_spec("pyspark").origin).parent
[api] = home.glob("jars/hadoop-client-api-*.jar")
print(json.dumps([importlib.metadata.version("pyspark"), api.stem.rpartition("-")[2]]))
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    spark: str
    hadoop: str

    def is_any(self, releases: tuple[str, ...]) -> bool:
        """Whether its Spark is one of ``4.2``, ``3.5``, ...; any will do if none are given."""
        return not releases or self.spark.rpartition(".")[0] in releases


def bundle_of(python: str) -> Bundle:
    """Raises SubprocessError where that Python has no PySpark."""
    done = subprocess.run([python, "-c", _PROGRAM], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)  # noqa: S603 the user's own Python
    return Bundle(*json.loads(done.stdout))
