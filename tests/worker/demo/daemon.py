"""A program in the daemon's place, run as `daemon.py COUNT CONFIG`: COUNT comments a ticket, then it polls."""

from __future__ import annotations

import sys
import time
from typing import Any

import requests
import yaml

CLOUD = "35273b54-3f06-40d2-880f-dd28cf8daafa"


def main(count: str, path: str) -> None:
    if count == "crash":
        sys.exit("redis-server: not found")
    with open(path) as file:  # noqa: PTH123
        config = yaml.safe_load(file)
    sources = config["sources"]
    places = _places(sources)
    with requests.Session() as session:
        address = sources["pagerduty"]["url"].removesuffix("/pagerduty")
        for ticket in session.get(f"{address}/demo/incidents").json()["incidents"]:
            for number in range(int(count) if ticket["due"] else 0):
                text = f"\x1b[31mIt is the disk.\n\nrootcaused:v1:inv-{number}"
                if ticket["source"] == "alertmanager":
                    _deliver(session, config["sinks"]["oncall"], ticket, number)
                else:
                    folder, login, wrapped = places[ticket["source"]]
                    where = folder.format(ticket["native"].rpartition("#")[2])
                    session.post(where, json=wrapped(text), **login).raise_for_status()
        while True:
            _poll(session, sources, places)
            time.sleep(0.02)


def _places(sources: dict[str, Any]) -> dict[str, Any]:
    """For each source: where comments are added, with which login, and how a text is wrapped."""
    pagerduty, github = sources["pagerduty"], sources["github"]
    writer = {"Authorization": f"Token token={pagerduty['token']}", "From": pagerduty["from_email"]}
    return {
        "pagerduty": (
            f"{pagerduty['url']}/incidents/{{}}/notes",
            {"headers": writer},
            lambda text: {"note": {"content": text}},
        ),
        "opsgenie": (
            f"{sources['opsgenie']['url']}/v2/alerts/{{}}/notes",
            {"headers": {"Authorization": f"GenieKey {sources['opsgenie']['api_key']}"}},
            lambda text: {"note": text},
        ),
        "jsm": (
            f"{sources['jsm']['url']}/jsm/ops/api/{CLOUD}/v1/alerts/{{}}/notes",
            {"auth": (sources["jsm"]["email"], sources["jsm"]["api_token"])},
            lambda text: {"note": text},
        ),
        "jira": (
            f"{sources['jira']['url']}/rest/api/3/issue/{{}}/comment",
            {"auth": (sources["jira"]["email"], sources["jira"]["api_token"])},
            lambda text: {"body": _document(text)},
        ),
        "github": (
            f"{github['url']}/repos/{github['repositories'][0]}/issues/{{}}/comments",
            {"headers": {"Authorization": f"Bearer {github['token']}"}},
            lambda text: {"body": text},
        ),
    }


def _poll(session: requests.Session, sources: dict[str, Any], places: dict[str, Any]) -> None:
    for name, (folder, login, _) in places.items():
        if name != "jira":
            session.get(folder.partition("/{}")[0], **login)
    login = places["jira"][1]
    session.post(f"{sources['jira']['url']}/rest/api/3/search/jql", json={"jql": "project = OPS"}, **login)
    session.get(f"{sources['alertmanager']['url']}/api/v2/alerts")


def _deliver(session: requests.Session, sink: dict[str, Any], ticket: dict[str, Any], number: int) -> None:
    about = {"fingerprint": ticket["native"], "starts_at": ticket["fired_at"]}
    body = {"id": f"{ticket['native']}-{number}", "alert": about, "text": "It is the disk."}
    session.post(sink["url"], json=body, headers={"Authorization": f"Bearer {sink['bearer_token']}"})


def _document(text: str) -> dict[str, Any]:
    lines = [{"type": "paragraph", "content": [{"type": "text", "text": line}]} for line in text.split("\n") if line]
    return {"type": "doc", "version": 1, "content": lines}


if __name__ == "__main__":
    main(*sys.argv[1:])
