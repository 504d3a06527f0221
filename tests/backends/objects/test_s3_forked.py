"""S3 in a process that was forked from one that uses it: obstore's threads stayed behind: calls would not end."""

import warnings
from multiprocessing import get_context

import anyio
import pytest

from tallymark.backends import NotPermitted
from tests.support.s3_clients import retrying_s3

PATIENCE_S = 200


def put(backend):
    anyio.run(backend.put, "put", b"data", backend="trio")


def publish(backend):
    file = backend.new_file("published", staging="")
    file.sink.write(b"rows")
    file.publish()


acts = pytest.mark.parametrize("act", [put, publish])


def ended(start, program, *arguments):
    """What the program says on its line, which is its first argument; "" if it says nothing for long."""
    ours, theirs = start.Pipe()
    process = start.Process(target=program, args=(theirs, *arguments))
    process.start()
    said = ours.recv() if ours.poll(PATIENCE_S) else ""
    process.kill()
    process.join()
    return said


def in_parent(line, endpoint, bucket, act, is_used):
    backend = retrying_s3(endpoint, bucket)
    if is_used:
        put(backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, about forks of processes with threads
        line.send(ended(get_context("fork"), in_child, backend, act))


def in_child(line, backend, act):
    try:
        act(backend)
    except Exception as error:
        line.send(repr(error))
    else:
        line.send("done")


@acts
def test_a_child_of_a_process_that_used_s3_is_refused_with_the_remedy(s3, bucket, act):
    error = ended(get_context("spawn"), in_parent, s3.endpoint, bucket, act, True)
    assert error.startswith(NotPermitted.__name__)
    assert "'spawn' or 'forkserver'" in error
    assert s3.keys(bucket) == ["put"]


@acts
def test_a_child_of_a_process_that_only_opened_s3_uses_it(s3, bucket, act):
    assert ended(get_context("spawn"), in_parent, s3.endpoint, bucket, act, False) == "done"
    assert len(s3.keys(bucket)) == 1
