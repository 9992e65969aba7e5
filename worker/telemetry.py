"""Logging: one stream of events, as JSON or for the console, without secrets and without control characters."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import structlog

if TYPE_CHECKING:  # the command line sets up logging without paying for pydantic
    from worker.settings import Settings

Redact = Callable[[str], str]
EventDict = MutableMapping[str, Any]

MAX_FIELD_CHARS = 8_000
MAX_TRACEBACK_CHARS = 20_000
# At debug level these print whole requests, prompts and keys included; what matters of them is in our own events.
SILENT = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm")
OURS = "rootcaused"
SERVER = "uvicorn.error"  # says where it listens


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that configuring twice replaces it. `role` names the process in every line."""

    def __init__(self, stream: TextIO, role: str) -> None:
        super().__init__(stream)
        self.role = role

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the base class names it so
        """The standard one prints the record's arguments, secrets included."""
        sys.stderr.write(f"a log line of {record.name} could not be written: {record.pathname}:{record.lineno}\n")


def configure(settings: Settings, *, role: str = "", stream: TextIO | None = None) -> None:
    """Set up logging for this process: ours at the configured level, other libraries from warnings on.

    May be called again (Celery asks for it); `role` is then kept.
    """
    from agent.redaction import Redactor
    from worker.settings import secrets_of

    redact = Redactor(secrets_of(settings)).redact
    set_up(redact, level=settings.log.level, form=settings.log.format, role=role, stream=stream)


def set_up(redact: Redact, *, level: str, form: str, role: str = "", stream: TextIO | None = None) -> None:
    """`form` is `json` or `console`; every text passes `redact`. Tracebacks of a dying process go the same way."""
    root = logging.getLogger()
    before = [handler for handler in root.handlers if isinstance(handler, _Handler)]
    handler = _Handler(stream or sys.stderr, role or next((old.role for old in before), ""))
    handler.setFormatter(_formatter(redact, form, handler.role))
    root.handlers = [handler]  # nothing may print beside the redaction
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level.upper())
    logging.getLogger(SERVER).setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    for name in SILENT:
        logging.getLogger(name).disabled = True
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            *_ABOUT,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    sys.excepthook = _last_words
    threading.excepthook = _thread_last_words


_ABOUT: list[structlog.types.Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _formatter(redact: Redact, form: str, role: str) -> logging.Formatter:
    def add_role(_logger: object, _method: str, event: EventDict) -> EventDict:
        return {"role": role, **event} if role else event

    def tidied(_logger: object, _method: str, event: EventDict) -> EventDict:
        return {str(name): _tidy(value, redact) for name, value in event.items()}

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars, *_ABOUT],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            add_role,
            _with_traceback,
            tidied,
            _as_json if form == "json" else _for_console,
        ],
    )


def _with_traceback(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The traceback as text, without the values of variables: these hold credentials."""
    info = event.pop("exc_info", None)
    stack = event.pop("stack_info", None)
    if info is True:
        info = sys.exc_info()
    if isinstance(info, BaseException):
        info = (type(info), info, info.__traceback__)
    if isinstance(info, tuple) and info[0] is not None:
        event["exception"] = _Traceback("".join(traceback.format_exception(*info)).rstrip())
    if stack:
        event["stack"] = _Traceback(str(stack))
    return event


class _Traceback(str):
    """Text whose line breaks are ours."""

    __slots__ = ()


def _tidy(value: Any, redact: Redact) -> Any:
    """Text redacted and bounded; anything that is not plain data becomes text first, so that nothing slips by."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, _Traceback):
        return _Traceback(_ends(redact(value), MAX_TRACEBACK_CHARS))
    if isinstance(value, Mapping):
        return {redact(str(name)): _tidy(item, redact) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_tidy(item, redact) for item in value]
    # Redacted before it is cut: half a secret would not be known again.
    return _ends(redact(value if isinstance(value, str) else repr(value)), MAX_FIELD_CHARS)


def _ends(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [cut: {len(text)} characters in all] {text[-half:]}"


def _as_json(_logger: object, _method: str, event: EventDict) -> str:
    """All but ASCII is escaped, so no control character, bidi override or lone surrogate gets out."""
    head = {name: event.pop(name) for name in ("timestamp", "level", "event") if name in event}
    return json.dumps({**head, **event}, default=repr)


def _for_console(_logger: object, _method: str, event: EventDict) -> str:
    blocks = [event.pop(name) for name in ("exception", "stack") if name in event]
    time, level, what = (str(event.pop(name, "")) for name in ("timestamp", "level", "event"))
    role = event.pop("role", "")
    place = f"[{role}] " if role else ""
    fields = "".join(f"  {name}={_shown(value)}" for name, value in event.items() if name != "logger")
    line = f"{time[:19]}Z {level:<7} {place}{escaped(what)}{fields}"
    indented = [f"    | {escaped(part)}" for block in blocks for part in str(block).splitlines()]
    return "\n".join([line, *indented])


def _shown(value: Any) -> str:
    text = escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    quoted = '"{}"'.format(text.replace('"', '\\"'))
    return quoted if not text or " " in text or "=" in text else text


def escaped(text: str) -> str:
    """Characters that move the cursor, change the direction or don't show, as visible escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _visible(c) for c in text)


def _visible(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    structlog.get_logger("rootcaused").critical("crashed", exc_info=(kind, error, trace))


def _thread_last_words(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        name = args.thread.name if args.thread else ""
        info = (args.exc_type, args.exc_value, args.exc_traceback)
        structlog.get_logger("rootcaused").error("thread_crashed", thread=name, exc_info=info)
