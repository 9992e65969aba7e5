"""From a configured HTTP data source to its client, its links, and the errors a model reads."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit, urlunsplit

from agent.errors import Permanent
from agent.http import Http, Response
from agent.tools import Health
from toolsets.configs import LokiConfig, PrometheusConfig

MAX_GET_CHARS = 2_000  # longer queries go as a form: proxies refuse long addresses


def connect(config: PrometheusConfig | LokiConfig) -> Http:
    """A client with the configured credentials; opens no connection yet."""
    headers = {name: value.get_secret_value() for name, value in config.headers.items()}
    if config.bearer_token:
        headers["Authorization"] = f"Bearer {config.bearer_token.get_secret_value()}"
    if config.tenant:
        headers["X-Scope-OrgID"] = config.tenant
    auth = (config.username, config.password.get_secret_value()) if config.password else None
    verify = str(config.ca_file) if config.ca_file and config.verify else config.verify
    return Http(base_url=config.url, headers=headers, auth=auth, verify=verify)


def public_url(url: str) -> str:
    """The address without user name and password, for a link."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def link(base: str, path: str, fields: Mapping[str, str]) -> str:
    """A link for a person; spaces as %20, which every ticket system keeps."""
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    return f"{base}{path}?{query}" if query else f"{base}{path}"


def advice(status: int) -> str:
    """What a refusal by status means for the one who asked."""
    match status:
        case 401 | 403:
            return "credentials refused: the operator must fix this; use other sources and say so in the report"
        case 404:
            return "this server has no such API: its address or path prefix may be wrong; use other sources"
        case 429 | 503:
            return "the server is busy: try once more with a cheaper query"
        case _ if status >= 500:
            return "this server failed, which says nothing of what you investigate; try once more or use other sources"
        case _ if 300 <= status < 400:
            return "the server redirects, perhaps to a login page: the operator must fix its address"
    return "change the query"


def mark(query: str, line: int, column: int) -> str:
    """That line of the query with a caret under the place; both count from one. "" when it is not in the query."""
    lines = query.split("\n")
    if not 0 < line <= len(lines) or column < 1:
        return ""
    text = lines[line - 1]
    place = min(column - 1, len(text))
    start = max(0, place - 60)
    return f"{text[start : place + 60]}\n{' ' * (place - start)}^"


def unreachable(reason: str) -> str:
    """What a network fault means for the one who asked."""
    return f"{reason}: no answer, which is not the same as no data; try once more or use other sources"


def too_large(error: Permanent) -> bool:
    """Whether a bare request was given up for the size of its answer; its other refusal is an unusable address."""
    return "body over" in str(error)


def without_secrets(text: str, reply: Response) -> str:
    """A server's own words, which may repeat our credentials."""
    for secret in reply.hide:
        text = text.replace(secret, "<redacted>")
    return text


def unhealthy(error: str) -> Health:
    return Health.failed(error, "check url, credentials and network access of this toolset")
