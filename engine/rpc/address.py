"""Where a job's service is reached, and the key that opens that job there."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a task reaches the job's service, and the secret that opens that job there and nothing else."""

    host: str
    port: int
    job_key: bytes = field(repr=False)
