"""The S3 server of the tests does what tests rely on."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest
from botocore.exceptions import ClientError

from tests.support.process import await_that
from tests.support.services.s3_server import S3Server, s3_server

ROUNDS = 20
WRITERS = 16


def test_of_writers_that_race_to_create_a_key_exactly_one_wins(s3: S3Server, bucket: str) -> None:
    start, refused = threading.Barrier(WRITERS), []

    def create(writer: int) -> list[int]:
        won = []
        for number in range(ROUNDS):
            start.wait(60)
            try:
                s3.client.put_object(Bucket=bucket, Key=f"{number:02}", Body=b"%d" % writer, IfNoneMatch="*")
            except ClientError as error:
                refused.append(error.response["ResponseMetadata"]["HTTPStatusCode"])
                continue
            won.append(number)
        return won

    with ThreadPoolExecutor(WRITERS) as writers:
        won = list(writers.map(create, range(WRITERS)))
    assert sorted(number for wins in won for number in wins) == list(range(ROUNDS))
    assert s3.objects(bucket) == {f"{number:02}": b"%d" % writer for writer, wins in enumerate(won) for number in wins}
    assert refused == [412] * ROUNDS * (WRITERS - 1)


def test_a_body_may_come_with_a_length_or_in_chunks(s3: S3Server, bucket: str) -> None:
    body = b"x" * 100_000
    bodies: list[bytes | list[bytes]] = [body, [body, body]]
    for number, sent in enumerate(bodies):
        line = HTTPConnection(s3.endpoint.removeprefix("http://"))
        line.request("PUT", f"/{bucket}/{number}", sent, {"Content-Type": "application/octet-stream"})
        assert line.getresponse().status == 200
        line.close()
    assert s3.objects(bucket) == {"0": body, "1": body + body}


def test_a_dropped_bucket_is_gone_with_its_uploads(s3: S3Server) -> None:
    name = s3.bucket()
    s3.client.put_object(Bucket=name, Key="a", Body=b"")
    s3.client.create_multipart_upload(Bucket=name, Key="b")
    assert (s3.keys(name), len(s3.uploads(name))) == (["a"], 1)
    s3.drop(name)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        s3.keys(name)


def test_two_servers_do_not_meet_and_end_with_their_blocks() -> None:
    with s3_server() as one, s3_server() as other:
        assert one.endpoint != other.endpoint
        name = one.bucket()
        assert other.client.list_buckets()["Buckets"] == []
        assert one.keys(name) == []
    await_that(lambda: not _answers(one), "the server has ended")


def _answers(server: S3Server) -> bool:
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    with socket.socket() as line:
        return line.connect_ex((host, int(port))) == 0
