"""Send the metrics of a run to a server: a Pushgateway of Prometheus, over plain HTTP.

A push has a deadline for everything, from looking up the host to the last byte of the answer. Messages have neither the
user nor the password of a URL, nor text of the server or of other packages.
"""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from h5zarr.commands.catalog.rows import writable
from h5zarr.commands.index.metrics import Gauge, metrics_text
from h5zarr.display import counted
from h5zarr.errors import ArgumentError, H5ZarrError

JOB = "h5zarr_index"
_CHECK_ADDRESS = "Check its address, and that it is running and reachable from here."


class PushFailed(H5ZarrError):
    """Metrics could not be sent."""

    kind = "metrics"


@dataclass(frozen=True, slots=True)
class Receiver:
    """A server for metrics. `url` has no user; `authorization` is the value of the header, or None."""

    url: str
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> Receiver:
        """Return the receiver at a URL, which may contain a user and a password. Raises ArgumentError."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or parts.scheme not in ("http", "https") or "@" in parts.path + parts.query + parts.fragment:
            # Without the URL, which may contain a password.
            raise ArgumentError(
                "expected a URL such as http://pushgateway:9091 or https://USER:PASSWORD@host/path. "
                "Escape special characters in the password: %40 is @, %2F is /"
            )
        name = f"[{host}]" if ":" in host else host
        plain = urlunsplit((parts.scheme, name if port is None else f"{name}:{port}", parts.path.rstrip("/"), "", ""))
        if parts.username is None:
            return cls(plain)
        user, password = unquote(parts.username), unquote(parts.password or "")
        return cls(plain, "Basic " + b64encode(f"{user}:{password}".encode()).decode())


def push_to_gateway(
    receiver: Receiver, gauges: Iterable[Gauge], index: str, *, keep_others: bool, seconds: float
) -> None:
    """Send metrics to a Pushgateway, in the group of this index. Raises PushFailed.

    Parameters
    ----------
    receiver
        The gateway.
    gauges
        The metrics.
    index
        The name of the group, besides the job: the label `index`.
    keep_others
        Keep metrics of the group that are not among these. Otherwise they are removed.
    seconds
        How long everything may take.
    """
    group = urlsafe_b64encode(writable(index).encode()).decode() or "="  # plain text could not contain slashes
    request = Request(
        f"{receiver.url}/metrics/job/{JOB}/index@base64/{group}",
        data=metrics_text(gauges).encode(),
        method="POST" if keep_others else "PUT",
        headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
    )
    if receiver.authorization is not None:
        request.add_unredirected_header("Authorization", receiver.authorization)
    within(seconds, receiver.url, lambda: _send(receiver.url, request, seconds))


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: urllib would send a GET without the metrics, and count it as a success."""

    def redirect_request(self, *args: Any, **choices: Any) -> None:
        return None


def _send(shown: str, request: Request, seconds: float) -> None:
    try:
        with build_opener(_NoRedirects).open(request, timeout=seconds):
            pass
    except HTTPError as error:
        error.close()
        raise refused(shown, error.code) from None
    except (HTTPException, OSError) as error:
        raise PushFailed(f"{shown}: {_describe(error)}", remedy=_CHECK_ADDRESS) from None


def refused(shown: str, status: int) -> PushFailed:
    """Return the error for an answer other than success."""
    what = f"{shown}: the server answered with status {status}"
    if status in (401, 403):
        return PushFailed(what, remedy="Check the user name and the password in the URL, or the headers.")
    if 300 <= status < 400:
        return PushFailed(what, remedy="Redirects are not followed: give the address to which it leads.")
    return PushFailed(what, remedy="" if status >= 500 else "Check that the URL is that of the right server.")


def _describe(error: Exception) -> str:
    """Return what went wrong, without text that other packages wrote."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, socket.gaierror):
        return "the host is unknown"
    if isinstance(reason, ssl.SSLError):
        return "no secure connection: the certificate or the protocol was not accepted"
    return getattr(reason, "strerror", None) or type(reason).__name__


def within(seconds: float, shown: str, act: Callable[[], None]) -> None:
    """Call `act` in a thread. Raise PushFailed, and abandon the thread, if it has not ended after `seconds`."""
    future: Future[None] = Future()

    def work() -> None:
        try:
            act()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    if not wait([future], timeout=seconds).done:
        raise PushFailed(f"{shown}: no answer within {counted(round(seconds), 'second')}", remedy=_CHECK_ADDRESS)
    future.result()
