"""A gateway sends the requests of one service to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Want
from agent.rules.observation import Fact, Observation, Thing, quote
from agent.rules.scene import Scene
from agent.rules.services import services

MIN_ROUTES = 4  # from fewer no custom of naming can be told
MIN_SHARE = 0.6


class Misroute:
    """Most routes lead to the service they are named for; one that leads elsewhere, while there is a service of its
    name, is an error. How the services are named is taken from the other routes."""

    name = "misroute"
    title = "a gateway sends requests to a wrong service"
    depth = 27

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        routes = list(scene.of(Fact.ROUTE))
        custom = _custom(routes)
        if custom is None:
            return
        known = services(scene).keys() | {route.values["host"] for route in routes}
        for route in routes:
            due = custom.replace("*", route.values["id"])
            if due != route.values["host"] and due in known:
                parts = {"host": route.values["host"], "path": route.values["path"], "gateway": route.about.name}
                sign = "the route of this service leads to another"
                found = Finding(sign=sign, weight="decisive", observation=route, quote=quote(route.text), parts=parts)
                gateway = frozenset({scene.owner(route.about).name})
                yield Hypothesis(
                    mechanism=self,
                    component=Thing("workload", due),
                    findings=(found, *_told(due, scene)),
                    affects=gateway,
                )

    def follow_ups(self, _hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield looks.get("services", scene)

    def account(self, hypothesis: Hypothesis, _scene: Scene) -> Account:
        path, host, gateway = (hypothesis.part(key) for key in ("path", "host", "gateway"))
        return Account(did="gets none of its requests", because=f"{gateway} sends {path} to {host}", trigger="config")

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        gateway = hypothesis.part("gateway")
        return [
            steps.look("Read the routes", f"kubectl get configmap {gateway}{steps.flag(scene)} -o yaml"),
            steps.change(
                "Correct the route",
                "requests reach a service that does not know them",
                risk="the gateway has to load its routes again",
                undo="put the former route back",
            ),
        ]


def _custom(routes: list[Observation]) -> str | None:
    """`*-service` or the like, with the route's id for the star; None where the routes follow none."""
    seen: Counter[str] = Counter()
    for route in routes:
        name, host = route.values["id"], route.values["host"]
        if name in host:
            seen[host.replace(name, "*", 1)] += 1
    if len(routes) < MIN_ROUTES or not seen:
        return None
    custom, count = seen.most_common(1)[0]
    return custom if count >= MIN_SHARE * len(routes) else None


def _told(name: str, scene: Scene) -> Iterable[Finding]:
    """Requests that monitoring says fail there."""
    for seen in scene.of(Fact.ANOMALY):
        if seen.about.name == name and seen.values["kind"] == "requests":
            yield Finding(sign="its requests fail", weight="supporting", observation=seen, quote=quote(seen.text))
            return


MISROUTE = Misroute()
