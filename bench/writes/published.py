"""What others have published of the same questions: on their machines and data, not measured here."""

from dataclasses import dataclass

from tallymark.bench.writes.case import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    who: str
    what: str
    said: str


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
        Published(who=_HUDI, what="165,000 direct markers", said="165,000 objects, about 15 min to delete"),
        Published(who=_HUDI, what="165,000 batched markers", said="20 objects, about 3 s to delete"),
        Published(who=_HUDI, what="the whole job, batched instead of direct", said="31 % faster"),
    ),
}
