"""kubectl-like tables: `get`, `events` and `top`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from agent.alert import parse_time
from agent.rules.names import is_address
from agent.rules.observation import Fact, Observation, Thing, age_seconds
from agent.rules.transcript import Reading

MAX_ROWS = 2_000

_GAP = re.compile(r"\s{2,}|\t")
_HEADER = re.compile(r"[A-Z][A-Z0-9 %()/_-]+")
_RESTARTS = re.compile(r"(\d{1,9})(?: \(([0-9a-z]{1,20}) ago\))?")
_READY = re.compile(r"(\d{1,6})/(\d{1,6})")
_SHARE = re.compile(r"(\d{1,4})%")
_SHARE_COLUMNS = ("CPU%", "CPU(%)", "CPU ALLOCATABLE", "CPU LIMIT")
_FIRST = re.compile(r"since (\d{4}-\d{2}-\d{2}T\S{9,20})")
_KIND = re.compile(r"[a-z]{1,60}")

_SINGULAR = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "ds": "daemonset",
    "svc": "service",
    "ep": "endpoint",
    "endpoints": "endpoint",
    "no": "node",
    "ns": "namespace",
    "pvc": "persistentvolumeclaim",
    "pv": "persistentvolume",
    "quota": "resourcequota",
    "cm": "configmap",
    "storageclasses": "storageclass",
    "ingresses": "ingress",
    "networkpolicies": "networkpolicy",
    "sa": "serviceaccount",
    "hpa": "horizontalpodautoscaler",
    "ing": "ingress",
}
_WORKLOADS = frozenset({"deployment", "statefulset", "daemonset", "replicaset"})


def singular(kind: str) -> str:
    """`Pods`, `pods`, `po` and `deployments.apps` as one word each."""
    kind = kind.lower().partition(".")[0]
    return _SINGULAR.get(kind) or (kind.removesuffix("s") if kind.endswith("s") else kind)


def rows(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line of a table with its cells by column; lines before the header are passed over."""
    columns: list[str] = []
    starts: list[int] = []
    for line in text.split("\n")[:MAX_ROWS]:
        stripped = line.strip()
        if not stripped:
            columns = []
        elif _HEADER.fullmatch(stripped) and (" " in stripped or "\t" in stripped):
            columns = _cells(stripped)
            starts = _starts(line, columns)
        elif columns:
            cells = _aligned(line, starts) or _cells(stripped, len(columns) - 1)
            row = zip(columns, cells, strict=False)
            yield stripped, {column: cell for column, cell in row if cell not in ("", "-", "<none>")}


def _starts(header: str, columns: list[str]) -> list[int]:
    """Where each column begins."""
    found, after = [], 0
    for column in columns:
        after = header.index(column, after)
        found.append(after)
        after += len(column)
    return found


def _aligned(line: str, starts: list[int]) -> list[str]:
    """The cells by their place, so that empty ones count; nothing where the line does not keep to the columns."""
    if len(line) <= starts[-1] or any(line[start - 1] != " " for start in starts[1:]):
        return []
    cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return [] if any("  " in cell for cell in cells[:-1]) else cells


def _cells(line: str, splits: int = 0) -> list[str]:
    parts = _GAP.split(line, maxsplit=splits) if splits else _GAP.split(line)
    return parts if len(parts) > 1 else line.split(maxsplit=splits or -1)


def read_get(reading: Reading, kind: str) -> Iterator[Observation]:
    """The rows of a list of one kind; a list of several names each row `kind/name`."""
    for line, row in rows(reading.body):
        name = row.get("NAME", "")
        row_kind, slash, bare = name.partition("/")
        thing = Thing(singular(row_kind), bare) if slash and _KIND.fullmatch(row_kind) else Thing(kind, name)
        if thing.kind == "pod":
            yield _pod(reading, thing, line, row)
        elif thing.kind in _WORKLOADS:
            yield _workload(reading, thing, line, row)
        elif thing.kind == "event":
            continue
        else:
            yield _observation(reading, Fact.OBJECT, thing, line, {_key(column): cell for column, cell in row.items()})


def _pod(reading: Reading, pod: Thing, line: str, row: dict[str, str]) -> Observation:
    ready = _READY.fullmatch(row.get("READY", ""))
    restarts = _RESTARTS.fullmatch(row.get("RESTARTS", ""))
    values = {
        "status": row.get("STATUS", ""),
        "node": row.get("NODE", ""),
        "ip": row.get("IP", "") if is_address(row.get("IP", "")) else "",
        "age": str(age_seconds(row.get("AGE", "")) or ""),
        "namespace": row.get("NAMESPACE", ""),
        "last_end": row.get("LAST-END", ""),
        "created": row.get("CREATED", ""),
    }
    if ready:
        values |= {"ready": ready[1], "containers": ready[2]}
    if restarts:
        values |= {"restarts": restarts[1], "restarted": str(age_seconds(restarts[2] or "") or "")}
    return _observation(reading, Fact.POD, pod, line, values)


def _workload(reading: Reading, workload: Thing, line: str, row: dict[str, str]) -> Observation:
    values = {"age": str(age_seconds(row.get("AGE", "")) or ""), "owner": row.get("OWNER", "")}
    values |= {"revision": row.get("REVISION", ""), "images": row.get("IMAGES", "")}
    if ready := _READY.fullmatch(row.get("READY", "")):
        values |= {"ready": ready[1], "desired": ready[2]}
    elif "DESIRED" in row:
        values |= {"ready": row.get("READY", ""), "desired": row["DESIRED"]}
    return _observation(reading, Fact.WORKLOAD, workload, line, values, parse_time(row.get("CREATED")))


def read_events(reading: Reading) -> Iterator[Observation]:
    """`LAST SEEN  TYPE  REASON  OBJECT  MESSAGE`, with whatever further columns there are."""
    for line, row in rows(reading.body):
        kind, _, name = row.get("OBJECT", row.get("INVOLVED OBJECT", "")).partition("/")
        if not row.get("REASON") or not name:
            continue
        values = {"type": row.get("TYPE", ""), "reason": row["REASON"], "message": row.get("MESSAGE", "")}
        seen = row.get("LAST SEEN", row.get("TIME", row.get("LAST", "")))
        at = parse_time(seen)
        values["age"] = str(age_seconds(seen) or "") if at is None else ""
        if first := _FIRST.search(row.get("COUNT", "")):
            values["since"] = first[1]
        thing = Thing(singular(kind), name.strip())
        yield Observation(fact=Fact.EVENT, about=thing, text=line, ref=reading.ref, at=at, values=values)


def read_top(reading: Reading, kind: str) -> Iterator[Observation]:
    for line, row in rows(reading.body):
        cpu = next((cell for column, cell in row.items() if column.startswith("CPU")), "")
        memory = next((cell for column, cell in row.items() if column.startswith("MEMORY")), "")
        shares = (_SHARE.search(cell) for column, cell in row.items() if column in _SHARE_COLUMNS)
        percent = next((share[1] for share in shares if share), "")
        values = {"cpu": cpu, "memory": memory, "cpu_percent": percent, "namespace": row.get("NAMESPACE", "")}
        name = row.get("POD") or row.get("NODE") or row.get("NAME", "")
        yield _observation(reading, Fact.USAGE, Thing(kind, name), line, values)


def _observation(
    reading: Reading, fact: Fact, about: Thing, line: str, values: dict[str, str], at: datetime | None = None
) -> Observation:
    kept = {key: value for key, value in values.items() if value}
    return Observation(fact=fact, about=about, text=line, ref=reading.ref, at=at, values=kept)


def _key(column: str) -> str:
    return column.lower().replace(" ", "_")
