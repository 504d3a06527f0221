import pytest

from tallymark.bench.markers.names import MARKER_BYTES, instant, paths
from tallymark.bench.peers.hudi_markers import HudiTalk, Refused
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.segment import encode_segment

YES = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ntrue"


def test_names_are_new_each_time_and_as_long_as_is_said():
    found = [path for series in (1, 2) for path, _ in zip(paths(instant(7), series), range(1000), strict=False)]
    assert len(set(found)) == 2000
    assert {len(encode_segment([str(MarkerName.of(path))])) for path in found} == {MARKER_BYTES}


def test_hudis_server_is_asked_with_all_in_the_query():
    talk = HudiTalk("127.0.0.1", "/data/t/.hoodie/.temp/7")
    asked = talk.question("event_date=1/a.parquet").decode()
    assert asked.startswith(
        "POST /v1/hoodie/marker/create?markerdirpath=%2Fdata%2Ft%2F.hoodie%2F.temp%2F7"
        "&markername=event_date%3D1%2Fa.parquet.marker.CREATE HTTP/1.1\r\n"
    )
    assert asked.endswith("\r\nContent-Length: 0\r\n\r\n")


def test_an_answer_that_comes_in_pieces_is_heard_once_it_is_whole_and_the_next_one_after_it():
    talk = HudiTalk("127.0.0.1", "/t")
    heard = [talk.hear(YES[at : at + 1]) for at in range(len(YES))]
    assert heard == [False] * (len(YES) - 1) + [True]
    assert talk.hear(YES)


@pytest.mark.parametrize(
    "said",
    [
        YES.replace(b"true", b"fals"),
        YES.replace(b"200 OK", b"500 Server Error"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_plain_yes_ends_the_measurement(said):
    with pytest.raises(Refused, match="Hudi's timeline server answers"):
        HudiTalk("127.0.0.1", "/t").hear(said)
