"""The service with TLS and tokens, as drivers and tasks of other machines meet it."""

import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

import tallymark
from tallymark.engine.errors import InvalidRequest, NotAuthenticated, ServiceUnavailable
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.shared_service import shared_address
from tallymark.engine.rpc.tls import ServerTls
from tallymark.engine.serve.tokens import add_token, read_tokens, revoke_token
from tallymark.engine.settings import SharedServiceSettings
from tallymark.engine.tasks.file_name import new_file_name
from tests.engine.serve.test_job_service import INSTANT, ROWS, in_thread, left, serving, write_task
from tests.support.loops import on_both_loops


class Authority:
    """A certificate authority, and a service's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca_file = folder / "ca.pem"
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        self.tokens = folder / "tokens.json"
        self.renew()

    def renew(self) -> None:
        """Another authority, and certificate."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.ca_file))
        issued = authority.issue_cert("127.0.0.1", "localhost")
        issued.private_key_pem.write_to_path(str(self.key))
        self.cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    @property
    def settings(self) -> dict[str, str]:
        return {"tls_cert": str(self.cert), "tls_key": str(self.key), "tokens": str(self.tokens)}

    def of(self, service: SharedServiceSettings, token: str | None, **named: str | None) -> SharedServiceSettings:
        url, ca_file = service.url.replace("http:", "https:"), named.get("ca_file", str(self.ca_file))
        return SharedServiceSettings(url=url, token=token, wait_s=5.0, ca_file=ca_file)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    folder = tmp_path / "secrets"
    folder.mkdir()
    return Authority(folder)


@on_both_loops
async def test_a_job_writes_over_tls_with_a_token_that_no_task_gets(tmp_path, authority):
    token = add_token(authority.tokens, "write", [f"{tmp_path}/lake/*"])
    async with serving(tmp_path / "lake", **authority.settings) as plain:
        service = authority.of(plain, token)
        async with tallymark.open_table(tmp_path / "lake" / "t").write(
            schema=ROWS.schema, mode="append", service=service
        ) as job:
            assert token.encode() not in job.ticket.encode()
            assert token not in repr(service)
            result = await job.commit([await write_task(job, task) for task in range(3)])
    assert (result.rows, result.markers, result.direct_markers) == (9, 3, 0)
    assert left(tmp_path) == []


@on_both_loops
async def test_what_a_token_does_not_allow_fails_the_job_before_it_writes(tmp_path, authority):
    reader = add_token(authority.tokens, "read", [f"{tmp_path}/*"])
    other = add_token(authority.tokens, "admin", [f"{tmp_path}/lake/other"])
    table = tallymark.open_table(tmp_path / "lake" / "t")
    async with serving(tmp_path / "lake", **authority.settings) as plain:
        for token, said in ((reader, "does not allow to write"), (other, "does not allow"), (None, "missing, unknown")):
            with pytest.raises(NotAuthenticated, match=said):
                async with table.write(schema=ROWS.schema, mode="append", service=authority.of(plain, token)):
                    pass
    assert await table.open_instants() == []


@on_both_loops
async def test_a_service_that_a_driver_does_not_trust_gets_nothing(tmp_path, authority):
    token = add_token(authority.tokens, "write", [f"{tmp_path}/*"])
    async with serving(tmp_path, **authority.settings) as plain:
        for named in ({"ca_file": None}, {}):
            if not named:
                Authority(authority.folder / "..").ca_file.replace(authority.ca_file)
            with pytest.raises(ServiceUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                await shared_address(authority.of(plain, token, **named), str(tmp_path / "t"), INSTANT)


@on_both_loops
async def test_a_certificate_and_tokens_are_read_again_while_it_runs(tmp_path, authority, caplog):
    first = add_token(authority.tokens, "write", [f"{tmp_path}/*"])
    async with serving(tmp_path, **authority.settings) as plain:
        before = await shared_address(authority.of(plain, first), str(tmp_path / "t"), INSTANT)
        authority.key.write_text("half a key")
        assert await shared_address(authority.of(plain, first), str(tmp_path / "t"), INSTANT) == before
        authority.renew()
        second = add_token(authority.tokens, "write", [f"{tmp_path}/*"])
        after = await shared_address(authority.of(plain, second), str(tmp_path / "t"), INSTANT)
        assert (after.job_key, after.certificates) == (before.job_key, authority.ca_file.read_text())
        revoke_token(authority.tokens, read_tokens(authority.tokens)[0].id)
        with pytest.raises(NotAuthenticated):
            await shared_address(authority.of(plain, first), str(tmp_path / "t"), INSTANT)
    assert "certificate.unreadable" in caplog.text


@on_both_loops
async def test_requests_beyond_the_rate_of_a_token_wait_for_their_turn(tmp_path, authority):
    tokens = [add_token(authority.tokens, "write", [f"{tmp_path}/*"]) for _ in range(2)]
    settings = {**authority.settings, "requests_per_s": 0.001, "request_burst": 2}
    async with serving(tmp_path, **settings) as plain:
        for _ in range(2):
            await shared_address(authority.of(plain, tokens[0]), str(tmp_path / "t"), INSTANT)
        with pytest.raises(ServiceUnavailable, match="sends too many requests"):
            await shared_address(authority.of(plain, tokens[0]), str(tmp_path / "t"), INSTANT)
        await shared_address(authority.of(plain, tokens[1]), str(tmp_path / "t"), INSTANT)


@on_both_loops
async def test_the_audit_has_what_each_driver_was_answered_and_no_secret(tmp_path, authority, caplog):
    caplog.set_level("INFO", "tallymark.audit")
    writer, reader = (add_token(authority.tokens, role, [f"{tmp_path}/*"]) for role in ("write", "read"))
    settings = {**authority.settings, "requests_per_s": 0.001, "request_burst": 3}
    async with serving(tmp_path, **settings) as plain:
        for token in (writer, reader, "tmk_00000000_" + "A" * 43):
            with suppress(NotAuthenticated):
                await shared_address(authority.of(plain, token), str(tmp_path / "t"), INSTANT)
        for given in (writer, writer, writer, None):
            with suppress(NotAuthenticated, ServiceUnavailable):
                await shared_address(authority.of(plain, given, ca_file=str(authority.ca_file)), "/t", INSTANT)
    lines = [
        (record.fields.get("token"), record.fields["outcome"]) for record in caplog.records if hasattr(record, "fields")
    ]
    assert lines[:3] == [(writer[4:12], "answered"), (reader[4:12], "NotAllowed"), (None, "NotAuthenticated")]
    assert lines[3:5] == [(writer[4:12], "NotAllowed")] * 2
    assert {*lines[5:-1]} == {(writer[4:12], "Overloaded")}
    assert lines[-1] == (None, "NotAuthenticated")
    assert not any(token[13:] in caplog.text for token in (writer, reader))


@on_both_loops
async def test_requests_of_many_records_pass_through_tls(tmp_path, authority):
    token = add_token(authority.tokens, "write", [f"{tmp_path}/*"])
    table = tallymark.open_table(tmp_path / "t")
    async with serving(tmp_path, **authority.settings) as plain:
        service = authority.of(plain, token)
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            address = job.ticket.service
            assert address is not None

            def mark() -> None:
                with JobClient(address, job.instant, wait_s=60) as client:
                    names = [
                        [new_file_name(instant=job.instant, task=task, stage=0, attempt=call) for task in range(2000)]
                        for call in range(12)
                    ]
                    for future in [client.request(each) for each in names]:
                        future.result(60)

            await in_thread(mark)
            result = await job.commit([])
    assert result.markers == 24_000


@on_both_loops
async def test_programs_that_do_not_speak_tls_are_sent_away(tmp_path, authority):
    add_token(authority.tokens, "write", [f"{tmp_path}/*"])
    async with serving(tmp_path, **authority.settings, request_timeout_s=0.3) as plain:
        port = int(plain.url.rpartition(":")[2])

        def talk(data: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
                raw.sendall(data)
                answer = b""
                with suppress(ConnectionResetError):
                    while data := raw.recv(1000):
                        answer += data
                return answer

        for data in (b"GET /livez HTTP/1.1\r\n\r\n", b"\x00" * 100, b"\x16\x03\x01", b""):
            assert b"HTTP" not in await in_thread(talk, data)

        def too_old() -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with (
                socket.create_connection(("127.0.0.1", port), timeout=20) as raw,
                pytest.raises((ssl.SSLError, OSError)),
            ):
                context.wrap_socket(raw)

        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            await in_thread(too_old)


def test_files_that_are_no_certificate_are_named(tmp_path, authority):
    authority.cert.write_text("no certificate")
    with pytest.raises(InvalidRequest, match=r"the certificate .*cert.pem with the key .*key.pem cannot be used"):
        ServerTls(authority.cert, authority.key)
    with pytest.raises(InvalidRequest, match="cannot be used"):
        ServerTls(tmp_path / "missing", authority.key)


@on_both_loops
async def test_a_driver_without_its_certificates_says_so(tmp_path):
    service = SharedServiceSettings(url="https://127.0.0.1:1", wait_s=0.5, ca_file=str(tmp_path / "no.pem"))
    with pytest.raises(InvalidRequest, match=r"the certificates to trust, .*no.pem, cannot be read"):
        await shared_address(service, "/t", INSTANT)
