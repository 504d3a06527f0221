"""Translation of errors of HDFS and its client library.

The NameNode names a Java class, and hdfs-native passes it on as text: ``RPCError("<class>", "<message and frames>")``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tallymark.backends.errors import AlreadyExists, BackendError, InvalidPath, NotFound, NotPermitted, Unavailable

_RPC_ERROR = re.compile(r'RPCError\("(?:[\w.]+\.)?([\w$]+)", "(.*)"\)', re.DOTALL)

_INVALID = frozenset(
    ("InvalidPathException", "HadoopIllegalArgumentException", "FSLimitException$PathComponentTooLongException")
)

_REFUSED = {
    "AccessControlException": "check the rights of this user on the directory",
    "AuthorizationException": "check the cluster's service-level authorization",
    "InvalidToken": "get a new delegation token or Kerberos ticket",
    "SecretManager$InvalidToken": "get a new delegation token or Kerberos ticket",
    "ParentNotDirectoryException": "a file is where a directory is needed",
    "FileAlreadyExistsException": "a file is where a directory is needed",
    "DSQuotaExceededException": "raise the directory's space quota, or make room",
    "NSQuotaExceededException": "raise the directory's name quota, or make room",
    "QuotaByStorageTypeExceededException": "raise the directory's quota of this storage type, or make room",
    "FSLimitException$MaxDirectoryItemsExceededException": "the directory is full",
    "UnsupportedOperationException": "the cluster does not support it",
}
"""What the NameNode refuses permanently, and the remedy."""

_WRONG_ADDRESS = re.compile(r"InvalidArgument|UrlParseError|Name or service not known|nodename nor servname")

_NO_DIRECTORY = "(is not a directory)"
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"
_TARGET_IS_DIRECTORY = "must both be directories"


class NotADirectory(NotPermitted):
    """A file is where the path needs a directory. A read of that path finds nothing."""


class NotEmpty(NotPermitted):
    """The directory is not empty."""


class IsADirectory(NotPermitted):
    """A directory is where the object should be."""


@contextmanager
def translated(at: str) -> Iterator[None]:
    """Translate the vendor's errors into the contract's; ``at`` is the URL of the file in question."""
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise translate(at, error) from error


def translate(at: str, error: BaseException) -> BackendError:
    """Return the contract's error for an error of the vendor."""
    name, text = _named(error)
    message = text.partition("\n")[0].strip()
    if isinstance(error, FileNotFoundError):
        return NotFound(f"{at} does not exist: {message}")
    if isinstance(error, FileExistsError):
        return AlreadyExists(f"{at} exists: {message}")
    if _NO_DIRECTORY in message:
        return NotADirectory(f"{at}: {message}: a file is where a directory is needed; choose another path")
    if name == _NOT_EMPTY:
        return NotEmpty(f"{at}: {message}")
    if _TARGET_IS_DIRECTORY in message:
        return IsADirectory(f"{at}: a directory is there; nothing was written")
    if name in _INVALID:
        return InvalidPath(f"{at}: HDFS refuses the name: {message}; give plain names of at most 255 bytes without ':'")
    if name in _REFUSED:
        return NotPermitted(f"{at}: {message}; {_REFUSED[name]}")
    if _WRONG_ADDRESS.search(text):
        return NotPermitted(
            f"{at}: {message}; name a NameNode as 'host:port', or a name service that "
            "HADOOP_CONF_DIR or StorageOptions.hadoop defines"
        )
    return Unavailable(f"{at}: {f'{name}: ' if name else ''}{message}")


def _named(error: BaseException) -> tuple[str, str]:
    """Return the Java class without its package, if the NameNode named one, and the text."""
    text = str(error)
    if found := _RPC_ERROR.search(text):
        return found[1], found[2].replace("\\n", "\n").replace('\\"', '"')
    return "", text
