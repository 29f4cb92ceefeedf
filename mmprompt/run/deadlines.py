"""Connections to a model's server whose answers come within their time-out, whole.

The time-out of a socket bounds each wait alone: a server that sends a blank now and then while its model thinks, or
while nobody does, would be waited for without end.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from mmprompt.media.network.connections import TimedResponse

if TYPE_CHECKING:
    from requests.adapters import HTTPAdapter


class _TimedHTTP(HTTPConnection):
    response_class = TimedResponse


class _TimedHTTPS(HTTPSConnection):
    response_class = TimedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _TimedHTTP


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _TimedHTTPS


_POOLS = {"http": _Pool, "https": _SecurePool}


def timed_adapter() -> HTTPAdapter:
    """Return what a session sends through, by a proxy too: an answer has the read time-out from first byte to last.

    A SOCKS proxy has connections of its own, and keeps to the time-out of each wait.
    """
    from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

    class TimedAdapter(HTTPAdapter):
        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **options)
            if not proxy.lower().startswith("socks"):
                manager.pool_classes_by_scheme = _POOLS
            return manager

    adapter = TimedAdapter()
    adapter.poolmanager.pool_classes_by_scheme = _POOLS
    return adapter
