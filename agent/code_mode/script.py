"""The script itself: found in what the model wrote, compiled, run, its failure told. Standard library only.

Runs behind the seal, so compiling hostile text is as harmless as running it.
"""

from __future__ import annotations

import _ast
import json
import sys
import threading
import types
from contextlib import suppress

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

NAME = "<script>"
MAX_FRAMES = 12
MAX_VALUE_CHARS = 100_000
UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)


def source_of(text: str) -> str:
    """The code in what a model wrote: as it stands if it parses, else what its fences hold, joined in order."""
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for candidate in (text, _dedented(text), "\n".join(_fenced(text))):
        if candidate.strip() and _parses(candidate):
            return candidate
    return "\n".join(_fenced(text)) or text


def _parsed(source: str) -> Any:
    """As `ast.parse`, whose module would take several milliseconds to load."""
    tree: Any = compile(source, NAME, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    return tree


def _parses(text: str) -> bool:
    try:
        _parsed(text)
    except UNPARSABLE:
        return False
    return True


def _dedented(text: str) -> str:
    lines = text.split("\n")
    indents = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    common = min(indents, key=len, default="")
    return "\n".join(line.removeprefix(common) for line in lines)


def _fenced(text: str) -> list[str]:
    """The blocks between lines of three or more backticks or tildes; an unclosed last block counts."""
    blocks: list[str] = []
    fence = ""
    lines: list[str] = []
    for line in text.split("\n"):
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                blocks.append("\n".join(lines))
                fence, lines = "", []
            else:
                lines.append(line)
        elif bare.startswith(("```", "~~~")):
            fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
    return [*blocks, "\n".join(lines)] if fence else blocks


def run(code: str, given: dict[str, Any], show: Callable[[str], None]) -> int:
    """Run the code; the exit status. A last expression's value goes to `show`; nothing runs if it can't compile."""
    module = types.ModuleType("__main__")
    module.__dict__.update(given)
    sys.modules["__main__"] = module
    source = source_of(code)
    try:
        body, last = _compiled(source)
    except UNPARSABLE as error:
        _tell(_unparsable(error, source))
        return 1
    try:
        exec(body, module.__dict__)  # noqa: S102  what this process is for
        value = eval(last, module.__dict__) if last else None  # noqa: S307
        if value is not None:
            show(_shown(value)[:MAX_VALUE_CHARS])
        _join_threads()
    except SystemExit as error:
        return _status(error.code)
    except BaseException as error:  # noqa: BLE001  whatever the script raised is its own
        _tell(_told(error, source))
        return 1
    return 0


def _compiled(source: str) -> tuple[Any, Any]:
    """Statements, and the expression at the end if there is one."""
    tree = _parsed(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    value = compile(_ast.Expression(last.value), NAME, "eval") if isinstance(last, _ast.Expr) else None
    return compile(tree, NAME, "exec"), value


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple | int | float):
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            pass
    return repr(value)


def _join_threads() -> None:
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _tell(str(code))
    return 1


def _unparsable(error: BaseException, source: str) -> str:
    if not isinstance(error, SyntaxError):
        return f"{type(error).__name__}: the script can't be compiled: {error}"
    lines = source.split("\n")
    number = error.lineno or 0
    text = f"SyntaxError: line {number}: {error.msg}. Nothing was run."
    if 0 < number <= len(lines):
        caret = " " * max(0, min(error.offset or 1, 200) - 1) + "^"
        text += f"\n    {lines[number - 1][:200]}\n    {caret}"
    if "await" in str(error.msg):
        text += "\nCalls are plain functions, no await; use tools.gather or tools.map for calls side by side."
    return text


def _told(error: BaseException, source: str) -> str:
    """As Python tells it, for the script's own frames alone; the traceback module would need files and time."""
    lines = source.split("\n")
    text: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause is not error:
        text += [_words(cause), "", "then, while that was handled:", ""]
    text += ["Traceback (most recent call last):", *_frames(error, lines), _words(error)]
    return "\n".join(text)


def _frames(error: BaseException, lines: Sequence[str]) -> list[str]:
    found: list[tuple[int, str]] = []
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == NAME:
            found.append((step.tb_lineno, step.tb_frame.f_code.co_name))
        step = step.tb_next
    shown: list[str] = []
    for number, name in found[-MAX_FRAMES:]:
        shown.append(f"  line {number}, in {name}")
        if 0 < number <= len(lines):
            shown.append(f"    {lines[number - 1].strip()[:200]}")
    if len(found) > MAX_FRAMES:
        shown.insert(0, f"  [{len(found) - MAX_FRAMES} frames left out]")
    return shown


def _words(error: BaseException) -> str:
    try:
        words = str(error)
    except BaseException:  # noqa: BLE001  the script's own __str__ may do anything
        words = "(its message can't be shown)"
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _tell(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # it closed or replaced its stderr
        print(text, file=sys.stderr, flush=True)  # noqa: T201  the script's own output
