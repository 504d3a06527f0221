"""The weather of a run, drawn from its seed."""

import random
from dataclasses import replace
from typing import Any

from tallymark.engine.markers.segment import FIRST_INCARNATION, segment_name
from tests.simulation.weather import Weather

FIRST_SEGMENT = f"/{segment_name(FIRST_INCARNATION, 0)}"

OUTAGES = (("put", "/log/"), ("put", "/log/"), ("put", FIRST_SEGMENT), ("delete data", ""), ("delete", "/.temp/"))


def draw_weather(chance: random.Random, kinds: set[str]) -> Weather:
    weather: dict[str, Any] = {}
    if "storage" in kinds:
        for name in chance.sample(("lost_request", "lost_answer", "late", "throttled", "tail"), chance.choice((1, 2))):
            weather[name] = chance.choice((0.01, 0.03, 0.1))
        weather |= {"tail_s": chance.choice((1, 20, 100, 100)), "late_s": chance.choice((1, 20, 300, 300))}
        for name in ("late", "tail"):
            if name in weather:
                weather[name] *= 2  # these seldom meet what they could harm
        if chance.random() < 0.6:
            weather |= {"outage": chance.choice(OUTAGES), "outage_s": chance.choice((1, 30, 200, 200))}
    if "network" in kinds:
        weather["reset"] = chance.choice((0.0, 0.02, 0.1))
        weather |= {"unreachable": chance.choice((0.0, 0.3, 0.7)), "unreachable_s": chance.choice((1, 30, 200))}
    return Weather(
        put_s=chance.choice((0.002, 0.02, 0.2)),
        spread=chance.choice((0.0, 0.5, 1.0)),
        page_size=chance.choice((2, 2, 7, 1000)),
        delete_size=chance.choice((1, 1, 2, 1000)),
        **weather,
    )


def with_repeats(weather: Weather, seed: int) -> Weather:
    """In every sixth run the store's client sends some requests twice, as it does whose first one was not answered."""
    chance = random.Random(f"{seed}/repeats")
    if chance.random() >= 1 / 6:
        return weather
    return replace(weather, twice=chance.choice((0.02, 0.1, 0.5)), late_s=chance.choice((1, 20, 300)))
