"""Address of a job's service, and the key of that job there."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a task reaches the job's service, and the secret that opens that job there and nothing else."""

    host: str
    port: int
    job_key: bytes = field(repr=False)
