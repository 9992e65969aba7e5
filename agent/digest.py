"""A long result in a few lines: the lines that tell something, one of each kind, verbatim and in their order."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

BYTES_PER_TOKEN = 3  # conservative: English is about 4, logs and JSON about 3
CUT_MARK = "[cut: shown "
MAX_LINES = 20_000  # that are looked at one by one; of more, the telling ones and both ends
MAX_CHARS = 600_000
MAX_PLACES = 400  # of one word, in a text too long to look at each line
_WORDS = (
    *("fatal", "panic", "caused by", "oom", "out of memory", "no space", "refused", "denied", "forbidden", "x509"),
    *("not found", "cannot ", "unable", "unknown host", "unknownhost", "already in use", "backoff", "back-off"),
    *("unhealthy", "read-only", "exceeded", "insufficient", "too many", "deadlock", "failed", "exception", "error"),
)
MAX_LINE_CHARS = 400  # of a line that is shown
LONG_LINE_CHARS = 600  # from here on a line is many records in one
NOTE_BYTES = 170  # for the shape and the line about the cut
FEW = 3  # lines of one kind
FAR_ABOVE = 60.0  # a score that earns a line its neighbours
EDGE_SHARE = 0.12  # of the room for each end

_SEVERE = re.compile(
    r"fatal|panic|caused by|oom|out of memory|evict|segfault|no space|refused|denied|forbidden|unauthorized"
    r"|x509|certificate|no such|not found|cannot |can't |unable|unknown ?host|resolution"
    r"|already in use|backoff|back-off"
    r"|unhealthy|read-only|readonly|exceeded|insufficient|too many|deadlock|unschedulable|didn't|mismatch|invalid"
    r"|corrupt|failed|inactive|dead\)|terminated|exit code: +[1-9]|unreachable|not ?ready|pressure +true"
    r"|missing|unbound",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"error|exception|warn|crit|alert|fail|kill|crash|timed? ?out|timeout|unavailable|abort|reject|reset|restart"
    r"|stopped|pending|degrad|unknown|<none>|throttl|latency|delay|loss|disconnect|lost",
    re.IGNORECASE,
)
# Where configuration shows the cause: no word of it speaks of a fault.
_STRUCTURE = re.compile(
    r"^\s*(?:- )?(?:events:|conditions:|state:|last state:|reason:|message:|exit code:|ready:|restart count:|image:"
    r"|liveness:|readiness:|startup:|limits:|requests:|memory:|cpu:|node-selectors:|nodeselector:|taints:|selector:|targetport:"
    r"|port:|ports?:|containerport:|protocol:|endpoints:|replicas:|status:|used|hard|capacity:|access ?modes?:"
    r"|storage ?class|environment:|args:|command:|name:|value:|type  )",
    re.IGNORECASE,
)
# Of these, what is set seldom and decides much.
_DECIDING = re.compile(
    r"affinity|nodeselector: *$|nodename|tolerations: *$|matchexpressions|topologykey|taint"
    r"|unschedulable: true"
    r"|probe: *$|httpget|tcpsocket|grpc: *$|targetport|protocol: (?:udp|sctp)|selector: *$|replicas: 0|limits|requests"
    r"|quota"
    r"|secretkeyref|configmapkeyref|imagepullsecrets|_(?:addr|host|port|url|uri)\b|claimname|storageclassname"
    r"|accessmodes",
    re.IGNORECASE,
)
_DULL = re.compile(
    r"^\s+at [\w.$]+\(|sha256:|containerd://|docker://|\b(?:uid|resourceversion|creationtimestamp|pod-template-hash)\b"
    r"|kube-root-ca|tokenexpiration|serviceaccount from|downwardapi|configmapoptional|projected|optional:|last-applied"
    r"|op=exists for|emptydir|medium:|sizelimit|sidecar\.istio|istio\.io|prometheus\.io|^\W*$",
    re.IGNORECASE,
)
_FAILED_ANYWAY = re.compile(r"state=|status=\d|0 failed|failed: 0|errors?: 0\b|error=nil|=Complete\b", re.IGNORECASE)
_VARYING = re.compile(r"(?<![0-9a-f])[0-9a-f]*\d[0-9a-f]*(?:[-.:][0-9a-z]*\d[0-9a-z]*)*", re.IGNORECASE)
_BREAK = re.compile(r"(?<=\}),\s?|(?<=\"),\s|(?<='),\s|\\n|(?<=;)\s|(?<=,)(?=\")")
_HEADER = re.compile(r"^[A-Z][A-Z0-9()/_%-]*(?: [A-Z()/_%-]+)*(?:\s{2,}[A-Z][A-Z0-9()/_%-]*(?: [A-Z()/_%-]+)*)+\s*$")
_GAP = re.compile(r"\s{2,}")
_PADDING = re.compile(r"(?<=\S) {3,}")


@dataclass(slots=True)
class _Line:
    place: int  # in the text, to show what is taken in its order
    text: str
    score: float = 0.0
    count: int = 1


def digest(text: str, tokens: int, ref: str) -> str:
    """The text; when longer than `tokens`, what of it tells most, with how to read the rest.

    Lines are verbatim (padding between columns apart), so that they can be quoted.
    """
    limit = tokens * BYTES_PER_TOKEN
    if len(text) <= limit and len(text.encode()) <= limit:
        return text
    squeezed = _PADDING.sub("  ", text) if len(text) <= 4 * limit else text
    if len(squeezed.encode()) <= limit:
        return squeezed
    return _cut(text, limit, ref)


def was_cut(content: str) -> bool:
    return f"\n{CUT_MARK}" in content


def _cut(text: str, limit: int, ref: str) -> str:
    lines = _lines(text)
    shape = _shape(text, [line.text for line in lines])
    how = f"read_result(ref={ref!r}, grep=... or start=..., lines=...)"
    room = max(60, limit - NOTE_BYTES)
    if len(shape.encode()) > room // 4:
        shape = ""
    _rate(lines)
    shown = _in_order(_chosen(lines, room - len(shape.encode()) - 1), lines)
    body = f"{shape}\n{shown}" if shape else shown
    mark = f"{CUT_MARK}{len(shown)} of {len(text)} characters; the rest: {how}]"
    while len(f"{body}\n{mark}".encode()) > limit and body:
        body = body.encode()[: max(0, limit - len(mark.encode()) - 1)].decode(errors="ignore")
    return f"{body}\n{mark}"


def _lines(text: str) -> list[_Line]:
    """The lines, those that hold many records broken into these; of too many the telling ones and both ends."""
    if text.count("\n") > MAX_LINES or len(text) > MAX_CHARS:
        text = _thinned(text)
    pieces: list[str] = []
    for line in text.split("\n"):
        if len(line) <= LONG_LINE_CHARS:
            pieces.append(line)
        else:
            pieces += _broken(line)
    pieces = pieces if len(pieces) <= MAX_LINES else [*pieces[: MAX_LINES // 2], *pieces[-MAX_LINES // 2 :]]
    return [_Line(place, _PADDING.sub("  ", piece.rstrip())) for place, piece in enumerate(pieces)]


def _thinned(text: str) -> str:
    """Both ends and the lines of a fault between them, without looking at each line."""
    half = len(text) // 2
    head = text[: min(half, 200_000)]
    tail = text[max(half, len(text) - 200_000) :]
    middle = text[len(head) : len(text) - len(tail)]
    lowered = middle.lower()
    lowered = lowered if len(lowered) == len(middle) else middle  # a few capitals have longer small forms
    places = sorted({place for word in _WORDS for place in _places(lowered, word)})
    found: list[str] = []
    end = 0
    for place in places:
        if place >= end:
            start, end = middle.rfind("\n", 0, place) + 1, middle.find("\n", place)
            end = min(end if end >= 0 else len(middle), place + 300)
            found.append(middle[max(start, place - 200) : end])
    return "\n".join([*_some(head), *found, *_some(tail)])


def _places(text: str, word: str) -> Iterator[int]:
    """Where the word stands, at most some hundred times. Plain search is ten times faster than one pattern for all."""
    place = text.find(word)
    for _ in range(MAX_PLACES):
        if place < 0:
            return
        yield place
        place = text.find(word, place + len(word))


def _some(part: str) -> list[str]:
    lines = part.split("\n")
    return lines if len(lines) <= MAX_LINES // 5 else [*lines[: MAX_LINES // 10], *lines[-MAX_LINES // 10 :]]


def _broken(line: str) -> list[str]:
    """A long line cut where its records end, else anywhere; verbatim, without what stood between the records."""
    pieces: list[str] = []
    if len(line) > 400_000:
        line = line[:200_000] + line[-200_000:]
    for part in _BREAK.split(line):
        pieces += [part[at : at + MAX_LINE_CHARS] for at in range(0, len(part), MAX_LINE_CHARS)]
    return pieces


def _rate(lines: Sequence[_Line]) -> None:
    """Score each line. Of a kind with many lines the first comes first, with how many there are; of few lines each
    counts for itself, because what tells may be the number (`Exit Code: 137`)."""
    kinds = [_VARYING.sub("#", line.text[:300]) for line in lines]
    counts = Counter(kinds)
    odd = _odd_rows(lines) | _odd_values(lines)
    scores: dict[str, float] = {}
    for line, kind in zip(lines, kinds, strict=True):
        many = counts[kind] > FEW
        known = scores.get(kind) if many else None
        score = known if known is not None else _score(line.text, counts[kind], len(lines))
        scores[kind] = score
        line.count = counts[kind] if known is None else 0
        line.score = (score if known is None else min(score, 15.0) / 10) + odd.get(line.place, 0.0)


def _score(text: str, count: int, total: int) -> float:
    if not text.strip():
        return -10.0
    score = 0.0
    head = text[:MAX_LINE_CHARS]
    if _SEVERE.search(head):
        score += 60.0
    if _TELLING.search(head):
        score += 30.0
    if score and _FAILED_ANYWAY.search(head):
        score -= 20.0
    if _STRUCTURE.match(head):
        score += 20.0
    if _DECIDING.search(head):
        score += 25.0
    if count == 1 and total > 50:
        score += 5.0
    if _DULL.search(head):
        score = score / 4 - 5.0
    return score


def _odd_rows(lines: Sequence[_Line]) -> dict[int, float]:
    """Rows of a table that differ where most rows agree: by how rare their values are."""
    header = next((place for place, line in enumerate(lines[:40]) if _HEADER.match(line.text)), None)
    if header is None:
        return {}
    rows = [(line.place, _GAP.split(line.text.strip())) for line in lines[header + 1 :] if line.text.strip()]
    scores = {header: 200.0}
    width = len(_GAP.split(lines[header].text.strip()))
    for column in range(1, width):
        values = [(place, cells[column]) for place, cells in rows if column < len(cells)]
        counts = Counter(value for _, value in values)
        if len(counts) * 4 > len(values):  # ages and addresses: their form is what may be odd
            values = [(place, _VARYING.sub("#", value)) for place, value in values]
            counts = Counter(value for _, value in values)
        common = counts.most_common(1)[0][1] if counts else 0
        if common * 2 < len(values) or len(counts) < 2:
            continue
        for place, value in values:
            if counts[value] * 5 <= len(values):
                scores[place] = scores.get(place, 0.0) + 40.0
    return scores


def _odd_values(lines: Sequence[_Line]) -> dict[int, float]:
    """In a list where each item has a value of its own, those that two items share: one of them was set wrongly."""
    keyed: dict[str, list[tuple[int, str]]] = {}
    for line in lines:
        key, colon, value = line.text.partition(": ")
        if colon and value.strip():
            keyed.setdefault(key, []).append((line.place, value))
    scores: dict[int, float] = {}
    for values in keyed.values():
        counts = Counter(value for _, value in values)
        shared = [place for place, value in values if counts[value] > 1]
        if len(values) >= 10 and 0 < len(shared) <= max(2, len(values) // 8):
            scores |= dict.fromkeys(shared, 60.0)
    return scores


def _chosen(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Some of both ends, then the highest scores, then what stands next to them, while it fits."""
    taken: dict[int, _Line] = {}
    left = room

    def take(candidates: Iterable[_Line], share: int) -> None:
        nonlocal left
        share = min(share, left)
        for line in candidates:
            if line.place in taken:
                continue
            size = min(len(line.text.encode()), MAX_LINE_CHARS) + 6
            if size > share:
                return
            taken[line.place] = line
            share -= size
            left -= size

    def around(line: _Line) -> Sequence[_Line]:
        return lines[max(0, line.place - 1) : line.place + 3]

    edge = int(room * EDGE_SHARE)
    take(lines, edge)
    take(reversed(lines), edge)
    ranked = sorted((line for line in lines if line.score > 0), key=lambda line: (-line.score, line.place))
    best = [line for line in ranked if line.score >= FAR_ABOVE]
    take((one for line in best for one in around(line)), room // 3)
    take(ranked, left)
    take((one for line in ranked[:200] for one in around(line) if one.score > -5), left)
    take((line for line in lines if line.score >= 0), left)
    return sorted(taken.values(), key=lambda line: line.place)


def _in_order(chosen: Sequence[_Line], lines: Sequence[_Line]) -> str:
    parts: list[str] = []
    after = 0
    for line in chosen:
        if line.place > after:
            parts.append("…")
        text = line.text.encode()[:MAX_LINE_CHARS].decode(errors="ignore")
        parts.append(f"[{line.count} like this] {text}" if line.count > FEW and line.score > 0 else text)
        after = line.place + 1
    if after < len(lines):
        parts.append("…")
    return "\n".join(parts)


def _shape(text: str, lines: Sequence[str]) -> str:
    """One line on what the whole is: a table with its columns' values, JSON with its fields, or lines by kind."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "[")) and len(text) <= 2_000_000:
        try:
            return f"[json: {_json_shape(json.loads(text), 3)}]"
        except (ValueError, RecursionError):
            pass
    header = next((place for place, line in enumerate(lines[:40]) if _HEADER.match(line)), None)
    if header is not None:
        return _table_shape(
            _GAP.split(lines[header].strip()), [_GAP.split(row.strip()) for row in lines[header + 1 :] if row]
        )
    return f"[{len(lines)} lines]" if len(lines) > 50 else ""


def _table_shape(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    told = []
    for column, name in enumerate(names):
        counts = Counter(row[column] for row in rows if column < len(row))
        if 1 <= len(counts) <= 6 and len(rows) > 6:
            told.append(f"{name} " + ", ".join(f"{value} {count}" for value, count in counts.most_common(4)))
    return f"[table: {len(rows)} rows" + "".join(f"; {words}" for words in told) + "]"


def _json_shape(value: Any, depth: int) -> str:
    match value:
        case dict() if depth:
            inner = ", ".join(f"{key}: {_json_shape(item, depth - 1)}" for key, item in list(value.items())[:12])
            return "{" + inner + (f", +{len(value) - 12} more" if len(value) > 12 else "") + "}"
        case list() if value and depth:
            return f"{len(value)} x {_json_shape(value[0], depth - 1)}"
        case list():
            return f"{len(value)} items"
        case dict():
            return f"{len(value)} fields"
        case str():
            return "text" if len(value) > 20 else json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(value)
