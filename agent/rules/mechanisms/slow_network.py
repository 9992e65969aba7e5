"""The network of a pod or of a node is slow or loses packets: what is left when callers and callees are all slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agent.report import NextStep, Weight
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign, Want, finding
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene
from agent.rules.toolbox import Act

SLOW = 1.0  # a rise by as much again
MIN_PART = 0.1  # of the time that a caller lost; it may call more than once
MIN_RISE_PART = 1 / 8
MOST = 0.6  # of the slow workloads
LOSSY = 2.0  # retransmissions; a few come with any slow peer
MAX_ASKED = 10


def _rise(observation: Observation) -> float:
    return observation.number("rise") or 0.0


def _slow(scene: Scene) -> Mapping[str, Observation]:
    """The workloads whose latency rose, with the line that shows the most of it."""
    found: dict[str, Observation] = {}
    for seen in scene.of(Fact.ANOMALY):
        told = seen.about.kind == "workload" and seen.values["kind"] == "latency" and seen.number("normal")
        known = found.get(seen.about.name)
        if told and _rise(seen) >= SLOW and (known is None or _rise(seen) > _rise(known)):
            found[seen.about.name] = seen
    return found


class NetworkDelay:
    """Of all that are slow, the one whose own slowness explains the others: its callers wait for it, and what it
    calls is waited for by it. A slow program would show in its CPU; that is another mechanism, and a deeper one."""

    name = "network_delay"
    title = "a pod's network is slow"
    depth = 10

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        slow = _slow(scene)
        best, sure = _culprit(slow, scene)
        if best:
            others = sorted(slow.keys() - {best}, key=lambda name: -_rise(slow[name]))
            weight: Weight = "decisive" if sure else "supporting"
            findings = [
                finding("its latency rose, and that explains the others", slow[best], weight, slow[best].values)
            ]
            findings += [finding("latency rose with it", slow[name], "supporting") for name in others[:3]]
            component = Thing("workload", best)
            yield Hypothesis(mechanism=self, component=component, findings=tuple(findings), affects=frozenset(others))

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        for name in list(_slow(scene))[:MAX_ASKED]:
            yield Want(act=Act.DEPENDENCIES, arguments={"name": name})
        yield from looks.series("throttled", "cpu_by_pod")(hypothesis, scene)
        yield from looks.logs(hypothesis, scene)

    def account(self, hypothesis: Hypothesis, _scene: Scene) -> Account:
        normal, current, unit = (hypothesis.part(key) for key in ("normal", "current", "unit"))
        because = f"its network is delayed: latency rose from {normal} to {current} {unit}".rstrip()
        return Account(did="answers late", because=because, trigger="unknown")

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        pods = looks.worst_pods(hypothesis.component, scene)[:1]
        return [
            *[
                steps.look("Measure from inside the pod", f"kubectl exec {pod}{steps.flag(scene)} -- ping -c 5 <peer>")
                for pod in pods
            ],
            steps.look("See whether traffic is shaped", "tc qdisc show; iptables -L -n | head"),
        ]


def _culprit(slow: Mapping[str, Observation], scene: Scene) -> tuple[str, bool]:
    """Who makes the others slow, and whether that explains all of them.

    First one whose callers are all that is slow beside it; else one that is slow together with what it calls, as when
    all its own traffic is delayed. The innermost of several: callers wait for it, not it for them.
    """
    if not slow:
        return "", False
    bearing = {name for name in slow if _bears(name, slow, scene)} or set(slow)
    called = {name for name in bearing if slow.keys() <= {name, *scene.upstream(name)}}
    among = {name for name in bearing if slow.keys() <= {name, *scene.upstream(name), *scene.calls.get(name, ())}}
    if found := called or among:
        return _innermost(found, slow, scene), True
    share = {name: len({name, *scene.upstream(name), *scene.calls.get(name, ())} & slow.keys()) for name in bearing}
    best = {name for name in bearing if share[name] == max(share.values())}
    return _innermost(best, slow, scene), 2 * max(share.values()) > len(slow)


def _bears(name: str, slow: Mapping[str, Observation], scene: Scene) -> bool:
    """Whether it rose enough to be what its slow callers wait for."""
    callers = [slow[caller] for caller in slow if name in scene.calls.get(caller, ()) and caller != name]
    return all(
        _added(slow[name]) >= MIN_PART * _added(caller) and _rise(slow[name]) >= MIN_RISE_PART * _rise(caller)
        for caller in callers
    )


def _added(seen: Observation) -> float:
    return (seen.number("current") or 0.0) - (seen.number("normal") or 0.0)


def _innermost(names: set[str], slow: Mapping[str, Observation], scene: Scene) -> str:
    outer = {caller for name in names for caller in scene.upstream(name)}
    return max(sorted(names - outer or names), key=lambda name: _rise(slow[name]))


NETWORK_DELAY = NetworkDelay()


def _loses(observation: Observation, _match: Match, scene: Scene) -> bool:
    """The node on which the most is sent again: its peers send again a little as well."""
    told = [seen for seen in scene.of(Fact.ANOMALY) if seen.values["kind"] == "retransmission"]
    return (
        observation in told
        and (observation.number("current") or 0.0) >= LOSSY
        and observation == max(told, key=lambda seen: seen.number("current") or 0.0)
    )


NODE_LOSS = Rule(
    name="node_network",
    title="a node's network loses packets",
    depth=18,
    signs=(
        Sign(
            name="packets are sent again far more often",
            weight="decisive",
            facts=(Fact.ANOMALY,),
            holds=_loses,
            component=lambda observation, _match, _scene: observation.about,
        ),
    ),
    affects=lambda _findings, scene: frozenset(_slow(scene)),
    tells=lambda _hypothesis, _scene: Account(
        did="loses packets", because="its connections send again far more than usual", trigger="unknown", variant="loss"
    ),
    steps=lambda hypothesis, _scene: [
        steps.look(f"Look at the interfaces of {hypothesis.component.name}", "ip -s link; ethtool -S <interface>")
    ],
)


def _resent(observation: Observation, _match: Match, scene: Scene) -> bool:
    """A few packets sent again, and no node that loses many: the peers of a node that is slow."""
    told = [seen for seen in scene.of(Fact.ANOMALY) if seen.values["kind"] == "retransmission"]
    return observation in told and all((seen.number("current") or 0.0) < LOSSY for seen in told)


def _slow_node(_observation: Observation, _match: Match, scene: Scene) -> Thing:
    """The one node that has most of what is slow, where it has more than one of them."""
    nodes = Counter(pod.node for name in _slow(scene) for pod in scene.pods_of(name)[:1] if pod.node)
    name, count = nodes.most_common(1)[0] if nodes else ("", 0)
    return Thing("node", name) if count > 1 and count > MOST * sum(nodes.values()) else NOTHING


NODE_DELAY = Rule(
    name="node_network",
    title="a node's network is slow",
    depth=18,
    signs=(
        Sign(
            name="packets are sent again, and what is slow runs on one node",
            weight="decisive",
            facts=(Fact.ANOMALY,),
            holds=_resent,
            component=_slow_node,
        ),
    ),
    affects=lambda _findings, scene: frozenset(_slow(scene)),
    tells=lambda _hypothesis, _scene: Account(
        did="has a slow network", because="what runs on it is slow and its peers send again", variant="delay"
    ),
    steps=lambda hypothesis, _scene: [
        steps.look(f"Measure to {hypothesis.component.name} from another node", "ping -c 20 <node>; tc qdisc show")
    ],
)


def _hot(observation: Observation, _match: Match, scene: Scene) -> bool:
    """CPU that rose together with throttling: either alone is ordinary."""
    kinds = {
        seen.values["kind"] for seen in scene.of(Fact.ANOMALY) if seen.about == observation.about and _notable(seen)
    }
    return observation.values["kind"] in ("cpu", "throttled") and {"cpu", "throttled"} <= kinds


def _notable(seen: Observation) -> bool:
    return seen.values["kind"] == "throttled" or _rise(seen) >= SLOW


CPU_OVERLOAD = Rule(
    name="cpu_overload",
    title="a program needs more CPU than it may use",
    depth=20,
    signs=(
        Sign(
            name="its CPU use rose to its limit",
            weight="decisive",
            facts=(Fact.ANOMALY,),
            holds=_hot,
            component=lambda observation, _match, scene: scene.owner(observation.about),
        ),
    ),
    looks=(looks.describe_pods, looks.series("throttled", "cpu_by_pod")),
    tells=lambda _hypothesis, _scene: Account(
        did="is slow", because="it uses all the CPU it may and is throttled", trigger="load"
    ),
    steps=lambda hypothesis, scene: [
        steps.look("Compare use with the limit", f"kubectl top pods{steps.flag(scene)} --containers"),
        steps.history(hypothesis, scene),
    ],
)


def slow_services(scene: Scene) -> Iterator[str]:
    """The workloads that monitoring says something of, those with failing requests first."""
    told = sorted(scene.of(Fact.ANOMALY), key=lambda seen: seen.values["kind"] != "requests")
    yield from dict.fromkeys(seen.about.name for seen in told if seen.about.kind == "workload")
