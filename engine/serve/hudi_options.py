"""What Hudi's writers have to be set to, so that they keep their markers here.

Source: Hudi 1.2.0, ``FileSystemViewStorageConfig`` and ``HoodieWriteConfig``. Its client retries only where
that is set, and then after every error, also where there is no view: so the errors are named.
"""

RETRIED = (
    "java.net.ConnectException",
    "java.net.SocketException",
    "org.apache.hudi.org.apache.http.NoHttpResponseException",
)
"""Errors of a service that is not there. The last one is as Hudi's bundles for Spark name it."""


def hudi_options(host: str, port: int) -> dict[str, str]:
    """Return the options of a write of Hudi whose markers a ``tallymark serve`` takes that listens there.

    Its retries outlast 120 s without the service.
    """
    view = "hoodie.filesystem.view"
    return {
        "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
        "hoodie.embed.timeline.server": "false",
        f"{view}.type": "REMOTE_FIRST",
        f"{view}.remote.host": host,
        f"{view}.remote.port": str(port),
        f"{view}.remote.retry.enable": "true",
        f"{view}.remote.retry.max_numbers": "20",
        f"{view}.remote.retry.initial_interval_ms": "100",
        f"{view}.remote.retry.max_interval_ms": "10000",
        f"{view}.remote.retry.exceptions": ",".join(RETRIED),
    }
