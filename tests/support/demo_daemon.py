"""A program in the daemon's place, run as `demo_daemon.py COUNT CONFIG`: COUNT comments a ticket, then it polls."""

from __future__ import annotations

import sys
import time
from typing import Any

import requests
import yaml


def main(count: str, path: str) -> None:
    if count == "crash":
        sys.exit("redis-server: not found")
    with open(path) as file:  # noqa: PTH123
        config = yaml.safe_load(file)
    with requests.Session() as session:
        pagerduty, alertmanager = config["sources"]["pagerduty"], config["sources"]["alertmanager"]
        headers = {"Authorization": f"Token token={pagerduty['token']}", "From": pagerduty["from_email"]}
        sink = config["sinks"]["oncall"]
        for one in session.get(f"{pagerduty['url']}/incidents", headers=headers).json()["incidents"]:
            current = session.get(f"{pagerduty['url']}/incidents/{one['id']}", headers=headers).json()["incident"]
            for number in range(int(count) if current["status"] == "triggered" else 0):
                note = {"note": {"content": f"\x1b[31mIt is the disk.\n\nrootcaused:v1:inv-{number}"}}
                session.post(f"{pagerduty['url']}/incidents/{one['id']}/notes", json=note, headers=headers)
        for one in session.get(f"{alertmanager['url']}/api/v2/alerts").json():
            for number in range(int(count)):
                body = _report(one, f"{one['fingerprint']}-{number}")
                session.post(sink["url"], json=body, headers={"Authorization": f"Bearer {sink['bearer_token']}"})
        while True:
            session.get(f"{pagerduty['url']}/incidents", headers=headers)
            session.get(f"{pagerduty['url']}/incidents", headers=headers)
            session.get(f"{alertmanager['url']}/api/v2/alerts")
            time.sleep(0.02)


def _report(alert: dict[str, Any], identity: str) -> dict[str, Any]:
    about = {"fingerprint": alert["fingerprint"], "starts_at": alert["startsAt"]}
    return {"id": identity, "alert": about, "text": "It is the disk."}


if __name__ == "__main__":
    main(*sys.argv[1:])
