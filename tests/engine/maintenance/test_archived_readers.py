"""A reader of the Hudi format that others wrote reads an archived table right, also beside an open writer."""

from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

from tallymark.backends.local import LocalBackend
from tallymark.engine.settings import CommitSettings, MarkerSettings, ViewSettings
from tallymark.engine.table import Table, open_table
from tallymark.engine.timeline import history as histories
from tests.engine.jobs.scene import begin, write_rows


def opened(path: Path) -> Table:
    short = CommitSettings(log_entry_count=2, timeline_commit_count=2)
    return open_table(str(path), backend=LocalBackend(path), commit=short, views=ViewSettings(checkpoint_entries=1))


async def write(path: Path, months: dict[int, int], **named: Any) -> None:
    async with begin(opened(path), **named) as job:
        await job.commit([await write_rows(job, LocalBackend(path), months)])


def hudi_rows(path: Path) -> list[dict[str, Any]]:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read(HudiReadOptions())
    found = pa.Table.from_batches(batches).select(["flight", "month"]).to_pylist() if batches else []
    return sorted(found, key=lambda row: (row["month"], row["flight"]))


def by_month(rows: list[dict[str, Any]]) -> dict[int, int]:
    months = [row["month"] for row in rows]
    return {month: months.count(month) for month in sorted(set(months))}


@pytest.mark.no_cover
@pytest.mark.parametrize("readers", ["directory", "table"])
def test_hudi_rs_reads_an_archived_table_as_the_log_has_it(tmp_path, readers, monkeypatch):
    monkeypatch.setattr(histories, "UNSETTLED_COUNT", 1)
    anyio.run(check, tmp_path / "flights", readers, backend="trio")


async def check(path: Path, readers: Any) -> None:
    dynamic: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic"}
    await write(path, {1: 3, 2: 2}, readers=readers)
    for round_ in range(1, 6):
        await write(path, {1: 1})
        await write(path, {3: round_}, **dynamic)
        assert by_month(hudi_rows(path)) == {1: 3 + round_, 2: 2, 3: round_}
    if readers == "table":
        await opened(path).clean(retain_hours=0)
    for _ in range(3):
        await write(path, {2: 1})
    assert len(list(path.glob(".hoodie/*.*commit"))) <= 4
    assert by_month(hudi_rows(path)) == {1: 8, 2: 5, 3: 5}
    async with begin(opened(path), markers=MarkerSettings()) as job:
        report = await write_rows(job, LocalBackend(path), {1: 1, 4: 4})
        for _ in range(4):
            await write(path, {2: 1})
        assert by_month(hudi_rows(path)) == {1: 8, 2: 9, 3: 5}, "nothing of the open writer"
        await job.commit([report])
    assert by_month(hudi_rows(path)) == {1: 9, 2: 9, 3: 5, 4: 4}
