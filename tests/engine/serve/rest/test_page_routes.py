"""Pages as a browser gets them, where a table or a job is not what it was."""

from tallymark.engine.serve.rest.lake_table import id_of
from tests.engine.serve.page.markup import Markup
from tests.engine.serve.rest.scene import client_of, write


async def test_a_table_that_cannot_be_read_has_a_page_that_states_why(tmp_path):
    folder = tmp_path / "clicks"
    await write(folder, 1)
    (folder / ".hoodie/hoodie.properties").write_text("hoodie.table.name=clicks")
    async with client_of(tmp_path) as client:
        answer = await client.get(f"/tables/{id_of(str(folder))}")
    page = Markup(answer.text)
    assert answer.status_code == 200
    assert "Unreadable the table has hoodie.table.version" in page.text
    assert page.values("data-copy") == [f"tallymark status file://{folder}"]


async def test_a_page_of_a_job_shows_its_end_and_is_refreshed_no_more(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    async with client_of(tmp_path) as client:
        path = f"/tables/{id_of(str(folder))}/jobs/20261127030549785"
        answers = [await client.get(path, headers=headers) for headers in ({}, {"HX-Request": "true"})]
    assert [answer.status_code for answer in answers] == [404, 286]
    for answer in answers:
        page = Markup(answer.text)
        assert "This job is over" in page.text
        assert page.values("data-hx-get") == []
