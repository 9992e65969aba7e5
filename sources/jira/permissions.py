"""What our Jira account may do, for `doctor`: read once, on request, by PyPI's `jira`.

Its retries are off and its time-outs set; a poll or a write never goes through it (see `client.py`).
"""

from __future__ import annotations

from typing import Any

from agent.errors import Permanent, Transient
from sources.jira.config import JiraConfig

NEEDED = {"BROWSE_PROJECTS": "see issues", "ADD_COMMENTS": "add comments", "EDIT_OWN_COMMENTS": "edit its own comments"}


def missing(config: JiraConfig, *, seconds: float) -> str:
    """The permissions the account lacks everywhere, in words; "" for none. Raises `Transient`, `Permanent`."""
    import jira
    import requests

    try:
        granted = _client(config, seconds).my_permissions(permissions=",".join(NEEDED))["permissions"]
    except jira.JIRAError as error:  # its text holds the request, so only the status is told
        kind = Transient if error.status_code is None or error.status_code >= 500 else Permanent
        raise kind(f"jira mypermissions: {error.status_code or 'no answer'}") from None
    except (requests.RequestException, KeyError, TypeError) as error:
        raise Transient(f"jira mypermissions: {type(error).__name__}") from None
    lacking = [words for name, words in NEEDED.items() if not granted.get(name, {}).get("havePermission")]
    return f"the account may not {', '.join(lacking)} in any project" if lacking else ""


def _client(config: JiraConfig, seconds: float) -> Any:
    import jira

    login: dict[str, Any] = {}
    if config.personal_access_token is not None:
        login["token_auth"] = config.personal_access_token.get_secret_value()
    elif config.api_token is not None:
        login["basic_auth"] = (config.email, config.api_token.get_secret_value())
    verify: bool | str = str(config.ca_file) if config.ca_file else True
    return jira.JIRA(
        server=config.url,
        options={"rest_api_version": "2", "verify": verify},
        timeout=(min(5.0, seconds), seconds),
        max_retries=0,
        get_server_info=False,
        **login,
    )
