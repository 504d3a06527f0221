"""What others have published of the same questions: on their machines and data, not measured here."""

from dataclasses import dataclass

from tallymark.bench.writes.case import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    who: str
    what: str
    said: str = ""
    marker_objects: int | None = None
    deletion: str = ""
    """Of those objects."""


_QUBOLE = "Qubole, direct writes to S3"
_HUDI = "Apache Hudi, blog on marker mechanism"

_OVERWRITE = (
    Published(
        who=_QUBOLE,
        what="INSERT OVERWRITE into 300 partitions (year, month, date), over staging and renaming",
        said="31 x and 18.7 x faster",
    ),
)

PUBLISHED: dict[Name, tuple[Published, ...]] = {
    "append": (),
    "dynamic-overwrite": _OVERWRITE,
    "static-overwrite": _OVERWRITE,
    "small-files": (
        Published(who=_HUDI, what="165,000 direct markers", marker_objects=165_000, deletion="about 15 min"),
        Published(who=_HUDI, what="165,000 batched markers", marker_objects=20, deletion="about 3 s"),
        Published(who=_HUDI, what="the whole job, batched instead of direct", said="31 % faster"),
    ),
}
