"""Programs without a key connect to a job's service as fast as they can: the job's clients get every ack."""

from pathlib import Path

import pytest

from tests.system.strangers import cost_of_strangers


@pytest.mark.slow
@pytest.mark.parametrize("descriptors", [128, 1024])
def test_a_job_gets_its_acks_while_hundreds_of_strangers_connect(tmp_path: Path, descriptors: int) -> None:
    cost = cost_of_strangers(tmp_path, 600, descriptors, per_s=1e9)
    assert cost.flooded.connections == 600
    assert cost.acks.errors == []
    assert cost.acks.seconds
    assert cost.memory_bytes < 256 * 2**20
