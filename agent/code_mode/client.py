"""The `tools` object a script sees: one function a tool, and calls that run side by side. Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from agent.code_mode.wire import Wire

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from agent.code_mode.wire import Frame

IN_FLIGHT = 128  # of one gather or map; the parent runs fewer at a time and leaves the rest unread
TYPES = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "array": "list", "object": "dict"}


class ToolError(Exception):
    """Raised by a call that failed or was refused; the message says why and what to try."""


class NoData(str):  # noqa: SLOT000  its message needs a place
    """The result of a call that looked and found nothing: empty, false, and `.message` says what was looked for."""

    message: str

    def __new__(cls, message: str) -> Self:
        self = super().__new__(cls, "")
        self.message = message
        return self

    def __repr__(self) -> str:
        return f"NoData({self.message!r})"

    def get(self, _key: Any, default: Any = None) -> Any:
        return default

    def keys(self) -> Iterator[Any]:
        return iter(())

    values = items = keys


class Deferred:
    """A call that is made when `tools.gather` runs it."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool, self.arguments = tool, arguments

    def __repr__(self) -> str:
        return f"<deferred {self.tool}>"


class ToolFunction:
    """`tools.name`: call it; `help(tools.name)` shows parameters and types; `.defer(...)` is a call for `gather`."""

    def __init__(self, wire: Wire, spec: dict[str, Any]) -> None:
        self._wire, self._spec = wire, spec
        self.__name__ = self.__qualname__ = str(spec["name"])
        self.__doc__ = str(spec.get("description") or "")
        self._parameters: dict[str, Any] = (spec.get("parameters") or {}).get("properties") or {}
        self._required: list[str] = list((spec.get("parameters") or {}).get("required") or ())
        self._order = [*self._required, *(name for name in self._parameters if name not in self._required)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return answer(self._wire.reply(self._wire.ask(self.__name__, self.arguments(args, kwargs))))

    def defer(self, *args: Any, **kwargs: Any) -> Deferred:
        return Deferred(self.__name__, self.arguments(args, kwargs))

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """By name; what stands without a name is taken in the order of the signature, required ones first."""
        if len(args) > len(self._order):
            raise TypeError(f"{self.signature()} takes at most {len(self._order)} arguments")
        given = dict(zip(self._order, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"{self.signature()} got {', '.join(twice)} twice")
        return {**given, **kwargs}

    def signature(self) -> str:
        parts = [self._parameter(name) for name in self._order]
        return f"{self.__name__}({', '.join(parts)})"

    def _parameter(self, name: str) -> str:
        kind = self._parameters.get(name, {}).get("type")
        text = f"{name}: {TYPES.get(kind, 'object') if isinstance(kind, str) else 'object'}"
        return text if name in self._required else f"{text} = None"

    @property
    def __signature__(self) -> Any:
        """For `inspect.signature`, which has loaded the module when it asks."""
        inspect = sys.modules["inspect"]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(name, kind, default=inspect.Parameter.empty if name in self._required else None)
            for name in self._order
            if name.isidentifier()
        ]
        return inspect.Signature(parameters)

    def help(self) -> str:
        lines = [self.signature(), "", f"    {self.__doc__}"]
        for name in self._order:
            schema = self._parameters.get(name) or {}
            words = [str(schema.get("description") or "")]
            words += [f"one of {schema['enum']}"] if schema.get("enum") else []
            lines.append(f"    {self._parameter(name)}  {'; '.join(filter(None, words))}".rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<tool {self.signature()}>"


class Tools:
    """The enabled tools as functions, by attribute or by `tools["name"]`."""

    def __init__(self, wire: Wire, specs: list[dict[str, Any]]) -> None:
        self._wire = wire
        self._specs = {str(spec["name"]): spec for spec in specs}
        self._alias = {"".join(c if c.isalnum() else "_" for c in name): name for name in self._specs}
        self._made: dict[str, ToolFunction] = {}

    def __getattr__(self, name: str) -> ToolFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> ToolFunction:
        known = name if name in self._specs else self._alias.get(name)
        if known is None:  # the parent knows why: not there, restricted, part of the loop
            return ToolFunction(self._wire, {"name": name, "parameters": {}})
        if known not in self._made:
            self._made[known] = ToolFunction(self._wire, self._specs[known])
        return self._made[known]

    def __dir__(self) -> list[str]:
        return sorted([*self._alias, "gather", "map"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs or name in self._alias

    def __repr__(self) -> str:
        return f"<tools: {', '.join(self._specs)}>"

    def gather(self, *calls: Any, return_exceptions: bool = False) -> list[Any]:
        """Run calls side by side; results in order. A call is `tools.name.defer(...)` or `("name", {...})`.

        What is neither is taken for a result. The first failure is raised when all are done, or each stands in
        the list where `return_exceptions`.
        """
        if len(calls) == 1 and isinstance(calls[0], list | tuple | Iterator) and not _is_pair(calls[0]):
            calls = tuple(calls[0])
        return self._all([self._deferred(call) for call in calls], return_exceptions)

    def map(self, tool: Any, arguments: Iterable[Any], return_exceptions: bool = False) -> list[Any]:
        """One tool with many arguments, side by side: each a dict, or the value of the first parameter."""
        function = tool if isinstance(tool, ToolFunction) else self[str(tool)]
        return self._all(
            [function.defer(**one) if isinstance(one, dict) else function.defer(one) for one in arguments],
            return_exceptions,
        )

    def _deferred(self, call: Any) -> Any:
        if _is_pair(call):
            function = call[0] if isinstance(call[0], ToolFunction) else self[call[0]]
            return function.defer(**call[1])
        inner = getattr(call, "func", None)  # functools.partial
        if isinstance(inner, ToolFunction):
            return inner.defer(*call.args, **call.keywords)
        return call() if callable(call) and not isinstance(call, ToolFunction) else call

    def _all(self, calls: list[Any], return_exceptions: bool) -> list[Any]:
        results: list[Any] = [None] * len(calls)
        waiting: list[tuple[int, int]] = []  # place, number
        for place, call in enumerate(calls):
            if not isinstance(call, Deferred):
                results[place] = call
                continue
            if len(waiting) >= IN_FLIGHT:
                self._collect(waiting.pop(0), results)
            waiting.append((place, self._wire.ask(call.tool, call.arguments)))
        for one in waiting:
            self._collect(one, results)
        failed = next((result for result in results if isinstance(result, ToolError)), None)
        if failed is not None and not return_exceptions:
            raise failed
        return results

    def _collect(self, waiting: tuple[int, int], results: list[Any]) -> None:
        place, number = waiting
        try:
            results[place] = answer(self._wire.reply(number))
        except ToolError as error:
            results[place] = error


def _is_pair(call: Any) -> bool:
    return (
        isinstance(call, tuple)
        and len(call) == 2
        and isinstance(call[0], str | ToolFunction)
        and isinstance(call[1], dict)
    )


def answer(frame: Frame) -> Any:
    """What a reply stands for. Raises `ToolError`."""
    if "e" in frame:
        raise ToolError(str(frame["e"]))
    return NoData(str(frame["n"])) if "n" in frame else frame.get("r")


def help_of(tools: Tools) -> Callable[..., None]:
    """The script's `help`: the tools' signatures, and docstrings of anything else, without pager."""

    def show(what: Any = None) -> None:
        if what is None or isinstance(what, Tools):
            print("\n".join(tools[name].signature() for name in tools))  # noqa: T201  the script's output
            print("tools.gather(tools.name.defer(...), ...)  tools.map(name, [{...}, ...])")  # noqa: T201
        elif isinstance(what, ToolFunction):
            print(what.help())  # noqa: T201
        else:
            print(getattr(what, "__doc__", None) or repr(what))  # noqa: T201

    return show
