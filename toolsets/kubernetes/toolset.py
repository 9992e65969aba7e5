"""The toolset kind `kubernetes`: six tools that look, and none that changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agent.alert import clean
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.http import Http
from agent.tools import Arguments, Health, HealthState, JsonSchema, Tool, ToolContext, ToolResult, Toolset
from toolsets import arguments as read
from toolsets.configs import KubernetesConfig
from toolsets.kubernetes import events, grammar, logs, manifest, tables, top
from toolsets.kubernetes.access import connect
from toolsets.kubernetes.api import ApiError, Cluster, in_namespace, kubectl
from toolsets.kubernetes.describe import describe
from toolsets.kubernetes.fields import Object, namespace_of
from toolsets.kubernetes.kinds import Kind, well_known

Now = Callable[[], datetime]
INSTRUCTIONS = (
    "Kubernetes: times are UTC. Leave namespace out to look in all. describe shows a workload's roll-outs and what "
    "the last one changed. Why a container restarts is in the previous run's log. Events are kept about an hour."
)
REMEDY = "check url, token, certificate authority and network of this toolset"
READ_ONLY = "bind the service account to a role with get and list alone, without secrets (ClusterRole `view` is one)"


def build(name: str, config: KubernetesConfig, *, http: Http | None = None, now: Now | None = None) -> Toolset:
    """The toolset of one cluster. Raises `ConfigError`; opens no connection."""
    cluster = Cluster(http=http or connect(config), namespaces=frozenset(config.namespaces))
    look = _Look(cluster=cluster, now=now or (lambda: datetime.now(UTC)))
    acts: tuple[tuple[str, str, JsonSchema, Callable[[_Call], ToolResult]], ...] = (
        ("get", "List objects of a kind (custom resources too), unwell first. No namespace: all.", _GET, look.get),
        (
            "describe",
            "One object: state, last exits, limits, owners, roll-out changes, its events.",
            _NAMED,
            look.describe,
        ),
        ("yaml", "One object's full YAML.", _NAMED, look.yaml),
        ("events", "Events, newest last. name includes what it owns.", _EVENTS, look.events),
        ("logs", "Container logs: by pod name, workload (kind+name) or selector.", _LOGS, look.logs),
        ("top", "CPU and memory in use now, against limits.", _TOP, look.top),
    )
    return Toolset(
        name=name,
        instructions=INSTRUCTIONS,
        tools=tuple(
            Tool(name=f"{name}_{verb}", description=about, parameters=schema, run=_runner(schema, act))
            for verb, about, schema, act in acts
        ),
        check=lambda deadline: check(cluster, deadline),
    )


def _schema(*required: str, **properties: str) -> JsonSchema:
    """`name="string: what it is"`."""
    parts = {name: about.partition(": ") for name, about in properties.items()}
    return {
        "type": "object",
        "properties": {
            name: {"type": kind, **({"description": about} if about else {})}
            for name, (kind, _, about) in parts.items()
        },
        **({"required": list(required)} if required else {}),
    }


_GET = _schema("kind", kind="string", name="string", namespace="string", selector="string: labels, a=b,c!=d")
_NAMED = _schema("kind", "name", kind="string", name="string", namespace="string")
_SINCE = "string: 30m or RFC 3339 time"
_EVENTS = _schema(kind="string", name="string", namespace="string", since=_SINCE)
_LOGS = _schema(
    kind="string",
    name="string",
    namespace="string",
    selector="string",
    container="string",
    previous="boolean: the run before the last restart",
    since=_SINCE,
    tail="integer: lines, default 100",
    grep="string: regex, case ignored",
)
_TOP: JsonSchema = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["pods", "nodes"]},
        "namespace": {"type": "string"},
        "selector": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call's arguments, checked by grammar before anything else sees them."""

    arguments: Arguments
    deadline: Deadline
    kind: str
    name: str
    namespace: str
    selector: str

    @classmethod
    def of(cls, arguments: Arguments, deadline: Deadline) -> _Call:
        namespace = read.text(arguments, "namespace")
        return cls(
            arguments=arguments,
            deadline=deadline,
            kind=grammar.kind(read.text(arguments, "kind")),
            name=grammar.name(read.text(arguments, "name")),
            namespace="" if namespace in ("*", "all") else grammar.namespace(namespace),
            selector=grammar.selector(read.text(arguments, "selector")),
        )


def _runner(schema: JsonSchema, act: Callable[[_Call], ToolResult]) -> Callable[[Arguments, ToolContext], ToolResult]:
    def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        call = _Call.of(read.only_known(_unslashed(arguments), schema), context.deadline)
        try:
            result = act(call)
            return replace(result, data=clean(result.data))  # names are checked by the API; messages and values are not
        except ApiError as error:
            return ToolResult.failed(str(error), query=f"GET {error.path}")

    return run


def _unslashed(arguments: Arguments) -> Arguments:
    """With kubectl's own form, name `deployment/web`, taken apart."""
    name = read.text(arguments, "name") or read.text(arguments, "kind")
    if name.count("/") != 1:
        return arguments
    kind, name = name.split("/")
    return {**arguments, "kind": kind, "name": name}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What each tool does."""

    cluster: Cluster
    now: Now

    def get(self, call: _Call) -> ToolResult:
        kind = self.cluster.kinds.find(call.kind, call.deadline)
        if kind.name == "Event" and not call.name:
            return self.events(call)
        wide = kind.namespaced and not call.namespace
        query = _query("get", kind, call, "-o", "wide")
        if call.name:
            found = self._one(kind, call)
            if isinstance(found, ToolResult):
                return found
            shown = tables.objects(kind.familiar, [found], with_namespace=wide)
            return ToolResult.success(shown, query=_query("get", kind, _there(call, found), "-o", "wide"))
        own = kind.familiar in tables.COLUMNS
        listing = self.cluster.list(kind, call.namespace, call.deadline, selector=call.selector, table=not own)
        if not listing.items:
            return ToolResult.no_data(self._nothing(kind, call), query=query)
        if listing.table and not own:
            shown = tables.from_server(listing.table, with_namespace=wide)
        else:
            shown = tables.objects(kind.familiar, listing.items, with_namespace=wide)
        return ToolResult.success(listing.note + shown, query=query)

    def describe(self, call: _Call) -> ToolResult:
        kind = self.cluster.kinds.find(call.kind, call.deadline)
        found = self._one(kind, call)
        if isinstance(found, ToolResult):
            return found
        shown = describe(self.cluster, kind, found, call.deadline)
        return ToolResult.success(shown, query=_query("describe", kind, _there(call, found)))

    def yaml(self, call: _Call) -> ToolResult:
        kind = self.cluster.kinds.find(call.kind, call.deadline)
        found = self._one(kind, call)
        if isinstance(found, ToolResult):
            return found
        essential = manifest.essential(found)
        return ToolResult.success(
            manifest.as_yaml(essential), value=essential, query=_query("get", kind, _there(call, found), "-o", "yaml")
        )

    def events(self, call: _Call) -> ToolResult:
        kind = self.cluster.kinds.find(call.kind, call.deadline) if call.kind else None
        if kind and kind.name == "Event":
            kind = None
        about = events.About(kind=kind, name=call.name, since=self._since(call))
        found, note = events.read(self.cluster, call.namespace, about, call.deadline)
        event = well_known("Event")
        query = kubectl("get", "events", *in_namespace(event, call.namespace), "--sort-by=.lastTimestamp")
        query += f" | grep -e {call.name}" if call.name else ""
        if not found:
            of = call.name or (kind.shown if kind else "")
            about_it = f" about {of}" if of else ""
            return ToolResult.no_data(
                f"{note}no events{about_it}{self._where(event, call)}; they are kept about an hour", query=query
            )
        return ToolResult.success(note + events.table(found, with_namespace=not call.namespace), query=query)

    def logs(self, call: _Call) -> ToolResult:
        wanted = logs.Wanted(
            namespace=call.namespace,
            kind=self.cluster.kinds.find(call.kind or "pod", call.deadline),
            name=call.name,
            selector=call.selector,
            container=grammar.container(read.text(call.arguments, "container")),
            previous=read.flag(call.arguments, "previous"),
            since=self._since(call),
            tail=read.whole(call.arguments, "tail", default=100, low=1, high=logs.MAX_LINES),
            grep=read.text(call.arguments, "grep"),
        )
        found = logs.read(self.cluster, wanted, call.deadline)
        make = ToolResult.success if found.found else ToolResult.no_data
        return make(found.text, query=found.query)

    def top(self, call: _Call) -> ToolResult:
        nodes = call.kind.startswith("no")
        usage = top.read(self.cluster, "Node" if nodes else "Pod", call.namespace, call.selector, call.deadline)
        kind = well_known("Node" if nodes else "Pod")
        query = kubectl("top", kind.plural, *_flags(kind, call))
        if not usage.items:
            return ToolResult.no_data(f"no usage of {kind.plural} is measured{self._where(kind, call)}", query=query)
        if nodes:
            return ToolResult.success(usage.note + top.nodes_table(self.cluster, usage, call.deadline), query=query)
        shown = top.pods_table(self.cluster, usage, call.namespace, call.selector, call.deadline)
        return ToolResult.success(usage.note + shown, query=query)

    def _one(self, kind: Kind, call: _Call) -> Object | ToolResult:
        """The object; or, when there is none of that name, a result that says so and what there is."""
        if not call.name:
            raise ToolError("name is required; get lists the names there are")
        try:
            return self.cluster.object(kind, call.namespace, call.name, call.deadline)
        except ApiError as error:
            if error.status != 404:
                raise
            return ToolResult.no_data(str(error), query=_query("get", kind, call))

    def _since(self, call: _Call) -> datetime | None:
        return grammar.since(read.text(call.arguments, "since"), self.now())

    def _nothing(self, kind: Kind, call: _Call) -> str:
        matching = f" matching {call.selector}" if call.selector else ""
        return f"no {kind.shown}{matching}{self._where(kind, call)}"

    def _where(self, kind: Kind, call: _Call) -> str:
        if not kind.namespaced:
            return ""
        if not call.namespace:
            return " in any namespace"
        return f" in namespace {call.namespace}{self.cluster.missing_namespace(call.namespace, call.deadline)}"


def _flags(kind: Kind, call: _Call) -> tuple[str, ...]:
    return (*in_namespace(kind, call.namespace), *(("-l", call.selector) if call.selector else ()))


def _query(verb: str, kind: Kind, call: _Call, *more: str) -> str:
    namespace = call.namespace
    if call.name and not namespace and kind.namespaced:
        fields = f"--field-selector=metadata.name={call.name}"
        return kubectl(verb, kind.shown, "--all-namespaces", fields, *more)
    return kubectl(verb, kind.shown, call.name, *_flags(kind, call), *more)


def _there(call: _Call, found: Object) -> _Call:
    """The call with the namespace in which its object was found."""
    return replace(call, namespace=namespace_of(found))


def check(cluster: Cluster, deadline: Deadline) -> Health:
    """Whether the API answers and pods can be listed; a warning when the token may do more than it should.

    Only GET is used, so what else the token may write can't be asked; being able to list secrets is the sign.
    """
    try:
        version = cluster.get("/version", deadline)
        cluster.list(well_known("Pod"), "", deadline, fields="metadata.name=rootcaused-probe")
    except ApiError as error:
        return Health.failed(str(error), READ_ONLY if error.status == 403 else REMEDY)
    except ToolError as error:
        return Health.failed(str(error), REMEDY)
    running = f"Kubernetes {version.get('gitVersion', '?')}" if isinstance(version, dict) else "Kubernetes"
    try:
        # A name that no secret has: the answer tells whether we may list them, and holds none.
        cluster.list(well_known("Secret"), "", deadline, fields="metadata.name=rootcaused-probe")
    except ToolError:
        return Health.ok(running)
    return Health(
        state=HealthState.DEGRADED,
        reason=f"{running}; the credentials can read secrets, so they are wider than reading needs",
        remedy=READ_ONLY,
    )
