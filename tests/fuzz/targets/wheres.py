"""The text of a ``where``, as the command line takes it."""

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.upsert.where import CHARS_MAX, parse
from tests.support.predicates import COLUMNS, SCHEMA, batch_of

ROWS = batch_of([{name: column.values[0] for name, column in COLUMNS.items()}, {}])


def seeds() -> list[bytes]:
    literals = [f"{name} <> {sql}" for name, column in COLUMNS.items() for sql in column.literals]
    texts = [
        *literals,
        " OR ".join(literals),
        "id IN (1, -2, NULL) AND NOT (tiny between 0 and 5 or price IS not null)",
        "1.5 >= `price` AND (ok OR TRUE) and ratio <=> NULL",
    ]
    return [text.encode() for text in texts]


def target(data: bytes) -> bool:
    """Bytes that are not UTF-8 are surrogates, as in the arguments of a process."""
    try:
        predicate = parse(data.decode(errors="surrogateescape"), SCHEMA)
    except InvalidRequest:
        return False
    assert len(str(predicate)) <= CHARS_MAX
    assert parse(str(predicate), SCHEMA) == predicate
    assert len(predicate.mask(ROWS)) == ROWS.num_rows
    assert predicate.proof({}, {}) in ("all", "none", "some")
    return True
