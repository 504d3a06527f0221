"""A request is carried out and its answer lost: what is its sender told who asks again?"""

from collections.abc import Iterator
from pathlib import Path

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import data_file
from tallymark.bench.defects.hudi_client import RETRIES, HudiJavaClient
from tallymark.bench.defects.proxy import losing_proxy
from tallymark.bench.defects.side import Side, Unanswered
from tallymark.bench.defects.table import make_table
from tallymark.bench.defects.trial import Ground, Trial

INSTANT = "20260101000000000"
TIMES = 20
EARLY = "--early-conflict-detection-enable"


def findings(ground: Ground) -> Iterator[Finding]:
    for side in ground.sides:
        yield _asked_again(side, ground.table("lost"))
    if ground.has_hudi:
        yield _by_hudis_client(ground, is_early=False)
        yield _by_hudis_client(ground, is_early=True)


def _asked_again(side: Side, table: Path) -> Finding:
    """Ours asks again of itself."""
    told = {"true": 0, "false": 0, "no answer": 0}
    paths = [data_file("day=01", number) for number in range(TIMES)]
    with side.server(table) as server, losing_proxy(server.port) as proxy:
        for path in paths:
            client = server.client(INSTANT, port=proxy.port)
            proxy.lost.clear()
            assert client.create(f"{path}.before"), "undisturbed"
            proxy.lose_the_next()
            try:
                answer = client.create(path)
            except Unanswered:
                answer = None
            if answer is None and proxy.lost.is_set():
                answer = client.create(path)
            assert proxy.lost.is_set(), "an answer was to be lost"
            told["no answer" if answer is None else str(answer).lower()] += 1
            client.close()
    durable = len({stored.line(path) for path in paths} & stored.lines(table, INSTANT))
    return Finding(
        trial="lost answer",
        side=side.title,
        tried=f"{TIMES} times: the request goes through, its answer is lost, the sender asks again",
        shown="yes" if told["false"] else "no",
        seen=f"of {durable} markers that are durable the sender was told of {told['true']} that it has them, and of "
        f"{told['false']} no (`false`)",
        counts={"durable": durable, **{key.replace(" ", "_"): value for key, value in told.items()}},
    )


def _by_hudis_client(ground: Ground, *, is_early: bool) -> Finding:
    table = make_table(ground.table("lost"))
    found, errors = 0, set()
    side = ground.hudi(*([EARLY] if is_early else []))
    with side.server(table) as server, losing_proxy(server.port) as proxy:
        folder = stored.folder(table, INSTANT)
        client = HudiJavaClient(server.server.jvm, table, folder, INSTANT, port=proxy.port)
        create = client.create_early if is_early else client.create
        assert create("day=01", "undisturbed.parquet").path is not None
        for number in range(TIMES):
            partition, _, name = data_file("day=01", number).rpartition("/")
            proxy.lost.clear()
            proxy.lose_the_next()
            answer = create(partition, name)
            assert proxy.lost.is_set(), "an answer was to be lost"
            found += answer.path is not None
            errors |= {answer.error} - {None}
    durable = len(stored.lines(table, INSTANT)) - 1
    return Finding(
        trial="lost answer",
        side=f"{side.title}, its own client, {RETRIES} retries{', early conflict detection' if is_early else ''}",
        tried=f"{TIMES} times: the request goes through, the answer is lost, the connection ends; the client retries",
        shown="yes" if found < TIMES else "no",
        seen=f"{durable} markers are durable; the client gave the marker {found} times, and "
        + (
            f"threw {', '.join(sorted(map(str, errors)))} else"
            if errors
            else "nothing (an empty Option, no error) else"
        ),
        counts={"durable": durable, "given": found},
    )


TRIAL = Trial(
    "lost answer",
    "A client whose answer was lost and who asks again is told `false`, which is what a client is told of another's "
    "marker, and of a conflict, too.",
    findings,
)
