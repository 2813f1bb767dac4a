"""What h5zarr knows about each protocol: one row per protocol, used by everything that handles URLs.

fsspec takes most URLs literally: "%20", "#" and "?" are part of the name. Only web servers give them the meaning of RFC
3986. Buckets have object versions after a "?". The text before an "@" is sometimes a user, sometimes a bucket.

The functions that make requests to a file system are in `responses.py`. CONTRIBUTING has a recipe for a new protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from h5zarr.packages import require

# A single letter before a colon is a Windows drive.
PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_LINK = re.compile(rf"(?:^|::){PROTOCOL.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRules:
    """How to handle the URLs of a protocol.

    Grammar:

    - `is_quoted`: percent signs begin escapes. Elsewhere they are literal.
    - `query`: the mark that begins a query, which is not part of the name; "" if the protocol has none.
    - `is_version`: the query selects a version of one object, so it does not apply to neighbouring files.
    - `has_host`: a host or bucket comes before the path.
    - `has_user`: a user and a password may come before the host.
    - `may_wrap`: "::" and another URL may follow, in which this file is found.

    Access:

    - `is_usual`: references from elsewhere may name such files without being allowed to: reading them changes nothing,
      and tells the server nothing about this machine.
    - `is_wrapper`: it opens a file that another URL names. `is_local`: it names something on this machine.
    - `is_bucket`: its files are objects in a bucket or container.
    - `anonymous`: storage options for reading without credentials.
    - `pool_option`: the storage option, and its key, that limit the number of connections, if the default is too low.
    - `check`: what to check if access is refused. `server`: what names the server, if the URL does not.
    - `package`: the package that fsspec needs, if an extra of h5zarr provides it.
    """

    is_quoted: bool = False
    query: str = ""
    is_version: bool = False
    has_host: bool = True
    has_user: bool = False
    may_wrap: bool = False
    is_usual: bool = False
    is_wrapper: bool = False
    is_local: bool = False
    is_bucket: bool = False
    anonymous: Mapping[str, Any] = field(default_factory=dict)
    pool_option: tuple[str, str] | None = None
    check: str = ""
    server: str = ""
    package: str = ""


_S3 = ProtocolRules(
    query="?versionId=",
    is_version=True,
    is_usual=True,
    is_bucket=True,
    anonymous={"anon": True},
    pool_option=("config_kwargs", "max_pool_connections"),  # botocore opens only 10 connections by default
    check="Check the credentials (key and secret, or profile, in the storage options; AWS_* in the environment) and "
    "endpoint_url. A public bucket may need anon=True, a requester-pays bucket requester_pays=True. S3 also refuses "
    "access to an object that does not exist, if you may not list the bucket.",
    server="endpoint_url in the storage options, or AWS_ENDPOINT_URL in the environment",
    package="s3fs",
)
_GOOGLE = ProtocolRules(
    query="?generation=",
    is_version=True,
    is_usual=True,
    is_bucket=True,
    anonymous={"token": "anon"},
    check="Check the credentials (token in the storage options; GOOGLE_APPLICATION_CREDENTIALS in the environment). A "
    "public bucket may need anon=True, a requester-pays bucket requester_pays=True and project.",
    server="endpoint_url in the storage options",
    package="gcsfs",
)
_AZURE = ProtocolRules(
    query="?versionid=",
    is_version=True,
    is_usual=True,
    is_bucket=True,
    anonymous={"anon": True},
    check="Check account_name with account_key, sas_token or connection_string in the storage options, or "
    "AZURE_STORAGE_* in the environment. A public container may need anon=True; a SAS token may have expired.",
    server="account_name or connection_string in the storage options, or AZURE_STORAGE_* in the environment",
    package="adlfs",
)
_DATA_LAKE = ProtocolRules(  # the first generation of Azure's
    query="?", has_user=True, may_wrap=True, is_usual=True, is_bucket=True, anonymous={"anon": True}, check=_AZURE.check
)
_WEB = ProtocolRules(
    is_quoted=True,
    query="?",
    has_user=True,
    is_usual=True,
    check="Check user name and password, or the headers in the storage options. A signed URL may have expired.",
    package="aiohttp",
)
_LOCAL = ProtocolRules(has_host=False, is_local=True)
_ARCHIVE = ProtocolRules(has_host=False, may_wrap=True, is_wrapper=True)
_SERVER = ProtocolRules(query="?", has_user=True)
# The text before the "@" of these is not a user: it is a repository, or a bucket.
_REPOSITORY = ProtocolRules()
_ORACLE = ProtocolRules(is_usual=True)
_OTHER = ProtocolRules(query="?", has_user=True, may_wrap=True)
_CACHE = ProtocolRules(query="?", has_user=True, may_wrap=True, is_wrapper=True)

_RULES: dict[str, ProtocolRules] = {
    **dict.fromkeys(("http", "https"), _WEB),
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("abfs", "abfss", "az"), _AZURE),
    "adl": _DATA_LAKE,
    **dict.fromkeys(("oci", "ocilake"), _ORACLE),
    "github": _REPOSITORY,
    **dict.fromkeys(("file", "local", "memory"), _LOCAL),
    **dict.fromkeys(("zip", "tar", "libarchive"), _ARCHIVE),
    **dict.fromkeys(("simplecache", "filecache", "blockcache"), _CACHE),
    **dict.fromkeys(("ftp", "sftp", "ssh", "smb", "hdfs", "webhdfs"), _SERVER),
}


def rules_of(protocol: str) -> ProtocolRules:
    """Return the rules of a protocol, by its name."""
    return _RULES.get(protocol, _OTHER)


def require_protocols(url: str, shown: str) -> None:
    """Raise PackageMissing if a URL, or a link of a chain, has a protocol whose package is not installed."""
    for protocol in _LINK.findall(url):
        if package := rules_of(protocol.lower()).package:
            require(package, "this protocol", place=shown)


def require_sources(urls: Iterable[str]) -> None:
    """Raise PackageMissing if one of many URLs needs a package that is not installed. It names the protocol."""
    for url in urls:
        require_protocols(url, url.partition("://")[0] + "://")


def protocol_of(link: str) -> str:
    """Return the protocol of one link of a URL; "file" for paths."""
    match = PROTOCOL.match(link)
    return match[1].lower() if match else "file"


def grammar_of(link: str) -> ProtocolRules:
    """Return the rules for one link of a URL."""
    return rules_of(protocol_of(link))
