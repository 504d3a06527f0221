"""A night's job in a driver of its own, which is killed at a chosen point of it.

Run as ``python -m tests.system.night_program <url> <point> <flag> <the load as JSON> <Hadoop's settings as JSON>``.
"""

import json
import sys
from pathlib import Path
from typing import get_args

from tests.system.driver_elsewhere import doom, start_session_at
from tests.system.driver_program import Point
from tests.system.nights import Load


def run(url: str, point: Point, flag: Path, load: Load, settings: dict[str, str]) -> None:
    rows = load.rows(start_session_at(settings))
    doom(point, flag)
    load.write(rows, url)


if __name__ == "__main__":
    _, chosen_url, chosen_point, chosen_flag, chosen_load, told = sys.argv
    assert chosen_point in get_args(Point)
    chosen = Load(**{**json.loads(chosen_load), "days": tuple(json.loads(chosen_load)["days"])})
    run(chosen_url, chosen_point, Path(chosen_flag), chosen, json.loads(told))  # type: ignore[arg-type]
