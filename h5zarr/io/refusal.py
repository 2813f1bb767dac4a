"""What to check where access is refused: each kind of storage has its own credentials, and its own reasons."""

from __future__ import annotations

_S3 = (
    "Check the credentials (key and secret, or profile, in the storage options; AWS_* in the environment) and "
    "endpoint_url. A public bucket may need anon=True, one whose readers pay requester_pays=True. S3 also answers so "
    "for an object that does not exist, where the bucket may not be listed."
)
_GCS = (
    "Check the credentials (token in the storage options; GOOGLE_APPLICATION_CREDENTIALS in the environment). A public "
    'bucket may need token="anon", one whose readers pay requester_pays=True and project.'
)
_AZURE = (
    "Check account_name with account_key, sas_token or connection_string in the storage options, or AZURE_STORAGE_* in "
    "the environment. A public container may need anon=True; a SAS token may have expired."
)
_HTTP = (
    "Check user name and password, or the headers in the storage options. The signature in a signed URL may have "
    "expired."
)
_CHECKS = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GCS),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), _AZURE),
    **dict.fromkeys(("http", "https"), _HTTP),
}

CODES = {
    "InvalidAccessKeyId": "the access key is not known",
    "SignatureDoesNotMatch": "the secret does not belong to the access key, or something changes requests on their way",
    "ExpiredToken": "the credentials have expired",
    "TokenRefreshRequired": "the credentials have expired",
    "InvalidToken": "the session token is not valid",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "InvalidObjectState": "the object is archived, and must be restored first",
    "AuthenticationFailed": "the key or token is not valid",
    "NoAuthenticationInformation": "no credentials were given",
    "PublicAccessNotPermitted": "the account allows nobody in without credentials",
}
"""What the codes of S3 and Azure mean that say more than that access is refused."""


def what_to_check(url: str) -> str:
    """Return what to check where access to `url` is refused; empty where that is not known."""
    return _CHECKS.get(_protocol(url), "")


def is_object(url: str) -> bool:
    """Return whether `url` names an object in a bucket or container."""
    return _protocol(url) in _CHECKS.keys() - {"http", "https"}


def _protocol(url: str) -> str:
    return url.rpartition("::")[2].partition("://")[0].lower()
