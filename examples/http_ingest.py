"""Ingest over HTTP: each request's rows are durable in the table when it is answered, and many requests share a commit.

    pip install "tallymark[serve]" && python examples/http_ingest.py ./events
    curl -d '{"id": 1, "place": "Oslo"}' "http://127.0.0.1:8000/rows?producer=meter-7&sequence=0"

The body is JSON, an object per line. A request with a producer and a number may be repeated: its rows are there once.
"""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO

import anyio
import pyarrow as pa
import pyarrow.json
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import tallymark

COLUMNS: list[tuple[str, pa.DataType]] = [("id", pa.int64()), ("place", pa.string())]
SCHEMA = pa.schema(COLUMNS)
PARSING = pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")


async def rows(request: Request) -> JSONResponse:
    try:
        found = pyarrow.json.read_json(BytesIO(await request.body()), parse_options=PARSING)
        number = {
            name: kind(request.query_params[name]) for name, kind in NUMBER.items() if name in request.query_params
        }
        position = await request.app.state.stream.append(found, **number)
    except (pa.ArrowInvalid, ValueError) as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    except tallymark.TallymarkError as error:
        return JSONResponse({"error": str(error)}, status_code=503, headers={"Retry-After": "1"})
    return JSONResponse({"rows": found.num_rows, "position": position})


NUMBER = {"producer": str, "sequence": int}


@asynccontextmanager
async def streaming(url: str, app: Starlette) -> AsyncIterator[Mapping[str, object]]:
    async with tallymark.open_table(url).stream(schema=SCHEMA) as app.state.stream:
        yield {}


def app_of(url: str) -> Starlette:
    return Starlette(routes=[Route("/rows", rows, methods=["POST"])], lifespan=partial(streaming, url))


if __name__ == "__main__":
    config = Config()
    config.bind = ["127.0.0.1:8000"]
    anyio.run(partial(serve, app_of(sys.argv[1]), config), backend="trio")  # type: ignore[arg-type] # any ASGI app
