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
