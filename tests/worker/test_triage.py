"""Decisions on new alerts: pure functions, so no store here."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.alert import Alert, Severity, Status
from tests.support.alerts import NOON, alert
from worker.settings import Settings
from worker.triage import Decided, Group, Kin, View, decide, label_of, question, scope_of, sighting

MS = int(NOON.timestamp() * 1000)
SHOP = {"namespace": "shop", "alertname": "ErrorRate"}


def settings(**sections: Any) -> Settings:
    source = {"kind": "pagerduty", "token": "t", "from_email": "bot@example.test"}
    return Settings.model_validate({"sources": {"pd": source}, **sections})


def decided(
    one: Alert | None = None, view: View | None = None, *, now: datetime = NOON, kind: str = "", **sections: Any
) -> Decided:
    seen = sighting(one or alert(labels=SHOP), now, kind)
    return decide(seen, settings(**sections), view or View(version="7"))


def group(**changes: Any) -> Group:
    return Group(**{"lead": "pd:L", "state": "queued", "first": MS - 30_000, "last": MS - 30_000, **changes})


def kin(**changes: Any) -> Kin:
    return Kin(**{"key": "pd:Q0", "at": MS - 600_000, "state": "written", "outcome": "likely", **changes})


def grouped_with(*groups: Group, kin: tuple[Kin, ...] = (), **changes: Any) -> str:
    return decided(alert(labels=SHOP, **changes), View(version="7", groups=groups, kin=kin)).plan.lead


# -- the view and the rules --------------------------------------------------------------------------------------------


def test_an_alert_that_no_rule_applies_to_is_investigated_and_counts() -> None:
    found = decided()
    assert (found.plan.skip, found.plan.lead, found.plan.counts, found.plan.version) == ("", "", True, "7")
    assert [ruling.rule for ruling in found.rulings] == [
        "resolved",
        "filter",
        "maintenance",
        "flapping",
        "cooldown",
        "group",
        "storm",
        "investigate",
    ]


def test_every_ruling_tells_its_inputs_and_is_kept_as_json() -> None:
    found = decided(view=View(version="7", groups=(group(state="skipped"),), kin=(kin(),)))
    assert all(ruling.says and isinstance(ruling.inputs, dict) for ruling in found.rulings)
    kept = json.loads(found.plan.why)
    assert [one["rule"] for one in kept["rulings"]] == [ruling.rule for ruling in found.rulings]
    refused = next(one for one in kept["rulings"] if one["rule"] == "group")["inputs"]["refused"]
    assert refused == {"pd:L": "its lead was skipped"}


def test_an_empty_lua_table_is_no_groups() -> None:
    assert View.model_validate_json('{"version": "1", "groups": {}, "storm": {}, "kin": {}}').groups == ()


def test_a_resolved_alert_is_skipped() -> None:
    assert decided(alert(status=Status.RESOLVED)).plan.skip == "resolved"


# -- places ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "service", "kind", "scope"),
    [
        ({"namespace": "shop"}, "cart", "alertmanager", '["","shop"]'),
        ({"namespace": "shop", "cluster": "eu1"}, "cart", "alertmanager", '["eu1","shop"]'),
        ({"kube_namespace": "shop", "kube_cluster_name": "eu1"}, "", "opsgenie", '["eu1","shop"]'),
        ({"cluster": "eu1"}, "cart", "pagerduty", '["eu1","service cart"]'),
        ({}, "cart", "pagerduty", '["","service cart"]'),
        ({"cluster": "eu1"}, "", "alertmanager", ""),
        ({}, "", "alertmanager", ""),
        ({"namespace": "shop"}, "cart", "jira", ""),
        ({"namespace": "shop"}, "cart", "github", ""),
    ],
)
def test_the_place_is_cluster_and_namespace_and_the_service_stands_in(
    labels: dict[str, str], service: str, kind: str, scope: str
) -> None:
    assert scope_of(sighting(alert(labels=labels, service=service), NOON, kind), settings()) == scope


def test_configured_labels_make_the_place() -> None:
    seen = sighting(alert(labels={"region": "eu", "team": "pay"}), NOON)
    assert scope_of(seen, settings(grouping={"labels": ["region", "team"]})) == '["eu","pay"]'
    assert scope_of(seen, settings(grouping={"enabled": False})) == ""


def test_two_pairs_of_values_never_make_the_same_place() -> None:
    pairs = [("a|", "b"), ("a", "|b"), ('a","b', "c"), ("a", 'b","c'), ("", "*"), ("a" * 500, "b"), ("a" * 501, "b")]
    seen = [sighting(alert(labels={"cluster": one, "namespace": two}), NOON) for one, two in pairs]
    scopes = {scope_of(one, settings()) for one in seen}
    assert len(scopes | {"*"}) == len(pairs) + 1
    assert max(map(len, scopes)) <= 200


def test_alerts_of_a_kind_share_their_label() -> None:
    assert label_of(alert(labels=SHOP, title="pod a-1")) == label_of(alert(labels=SHOP, title="pod a-2"))


# -- groups ------------------------------------------------------------------------------------------------------------


def test_an_alert_joins_the_open_group_of_its_place() -> None:
    found = decided(view=View(version="7", groups=(group(),)))
    assert (found.plan.lead, found.plan.reason, found.plan.counts) == ("pd:L", "same incident as pd:L", False)


@pytest.mark.parametrize(
    ("first", "last", "joins"),
    [
        (-30, -30, True),
        (-120, -120, True),
        (-121, -121, False),
        (-290, -60, True),
        (-301, -10, False),
        (+60, +60, True),  # the lead fired later and was seen first
        (+121, +200, False),
    ],
)
def test_a_group_is_over_when_it_is_quiet_or_its_window_has_ended(first: int, last: int, joins: bool) -> None:
    lead = grouped_with(group(first=MS + first * 1000, last=MS + last * 1000))
    assert bool(lead) is joins


@pytest.mark.parametrize("state", ["skipped", "failed"])
def test_a_group_whose_lead_came_to_nothing_is_not_joined(state: str) -> None:
    assert grouped_with(group(state=state)) == ""
    assert grouped_with(group(state=state), group(lead="pd:M")) == "pd:M"


def test_a_critical_alert_does_not_wait_for_a_less_urgent_one() -> None:
    assert grouped_with(group(), severity=Severity.CRITICAL) == ""
    assert grouped_with(group(critical=True), severity=Severity.CRITICAL) == "pd:L"
    assert grouped_with(group(critical=True), severity=Severity.WARNING) == "pd:L"


def test_a_refire_after_the_report_is_investigated_and_before_it_joins() -> None:
    again = (kin(key="pd:L", at=MS - 30_000),)
    assert grouped_with(group(state="written"), kin=again) == ""
    assert grouped_with(group(state="reported"), kin=again) == ""
    assert grouped_with(group(state="investigating"), kin=again) == "pd:L"
    other_kind_of_the_group = (kin(key="pd:F", lead="pd:L", at=MS - 20_000),)
    assert grouped_with(group(state="written"), kin=other_kind_of_the_group) == ""
    assert grouped_with(group(state="written")) == "pd:L"


def test_late_polls_decide_as_early_ones() -> None:
    view = View(version="7", groups=(group(),))
    late = decided(view=view, now=NOON + timedelta(hours=3))
    assert late.plan.lead == "pd:L"


def test_a_time_in_the_future_or_none_counts_as_now() -> None:
    assert sighting(alert(starts_at=NOON + timedelta(days=1)), NOON).at == NOON
    assert sighting(alert(starts_at=None), NOON).at == NOON


def test_what_a_ticket_system_reopens_keeps_its_own_report() -> None:
    view = View(version="7", state="written", groups=(group(),), started=99)
    assert decided(view=view).plan.lead == ""
    assert decided(view=view).plan.scope != "*"


# -- storms ------------------------------------------------------------------------------------------------------------


def test_past_the_rate_one_alert_stands_for_the_storm_and_waits() -> None:
    found = decided(view=View(version="7", started=20))
    assert (found.plan.scope, found.plan.lead, found.plan.hold, found.plan.counts) == ("*", "", 30_000, True)


def test_further_alerts_join_the_storm_and_still_count() -> None:
    found = decided(view=View(version="7", started=20, storm=(group(),)))
    assert (found.plan.lead, found.plan.counts) == ("pd:L", True)


@pytest.mark.parametrize(
    ("started", "storm", "joins"),
    [(19, group(), False), (20, group(state="failed"), False), (20, group(first=MS - 1_801_000), False)],
)
def test_a_storm_ends_with_its_rate_its_window_or_its_lead(started: int, storm: Group, joins: bool) -> None:
    assert bool(decided(view=View(version="7", started=started, storm=(storm,))).plan.lead) is joins


def test_a_storm_can_be_turned_off() -> None:
    assert decided(view=View(version="7", started=10_000), storm={"enabled": False}).plan.hold == 0


# -- cooldown and flapping ---------------------------------------------------------------------------------------------


def test_without_a_cooldown_a_refire_is_investigated() -> None:
    assert decided(view=View(version="7", kin=(kin(),))).plan.lead == ""


def test_within_the_cooldown_a_refire_gets_the_earlier_report() -> None:
    view = View(version="7", kin=(kin(key="pd:F", lead="pd:Q0"), kin()), today=2)
    found = decided(view=view, noise={"cooldown_seconds": 900})
    assert (found.plan.lead, found.plan.follows) == ("pd:Q0", "same cause as pd:Q0, 3rd time today")


@pytest.mark.parametrize(
    "earlier",
    [
        kin(at=MS - 901_000),
        kin(outcome="inconclusive"),
        kin(severity="warning"),
        kin(state="failed"),
        kin(state="skipped"),
    ],
)
def test_the_cooldown_lets_through_what_is_old_changed_or_unanswered(earlier: Kin) -> None:
    one = alert(labels=SHOP, severity=Severity.CRITICAL)
    found = decided(one, View(version="7", kin=(earlier,)), noise={"cooldown_seconds": 900})
    assert found.plan.lead == ""


def test_flapping_is_damped_by_default() -> None:
    assert decided(view=View(version="7", kin=(kin(),), recent=3)).plan.lead == ""
    found = decided(view=View(version="7", kin=(kin(),), recent=4))
    assert (found.plan.lead, found.plan.reason) == ("pd:Q0", "flapping: 5th time in 30 min, same as pd:Q0")
    assert decided(view=View(version="7", kin=(kin(),), recent=99), noise={"flapping_times": 0}).plan.lead == ""


def test_flapping_without_a_report_on_its_kind_is_investigated() -> None:
    assert decided(view=View(version="7", kin=(kin(state="failed"),), recent=99)).plan.lead == ""


# -- filters and maintenance -------------------------------------------------------------------------------------------


def test_a_filter_skips_with_its_reason() -> None:
    rule = {"matchers": ["namespace=shop"], "reason": "not ours"}
    assert decided(filters=[rule]).plan.skip == "filtered: not ours"
    assert decided(filters=[{"matchers": ["namespace=~sh.p"]}]).plan.skip == "filtered: namespace=~sh.p"
    assert decided(filters=[{"matchers": ["namespace=pay"]}]).plan.skip == ""


def test_a_filter_may_be_for_one_source() -> None:
    rule = {"matchers": ["namespace=shop"], "sources": ["pd"]}
    assert decided(alert(source="pd", labels=SHOP), filters=[rule]).plan.skip
    assert not decided(alert(source="am", labels=SHOP), filters=[rule]).plan.skip


@pytest.mark.parametrize(
    ("now", "skipped"),
    [
        ("2031-02-03T12:00:00", True),
        ("2031-02-03T13:29:59", True),
        ("2031-02-03T13:30:00", False),
        ("2031-02-03T11:59:59", False),
    ],
)
def test_maintenance_skips_until_the_window_ends(now: str, skipped: bool) -> None:
    window = {"weekly": {"crontab": "0 12 * * mon", "minutes": 90, "matchers": ["namespace=shop"]}}
    at = datetime.fromisoformat(f"{now}+00:00")
    found = decided(alert(labels=SHOP, starts_at=at), now=at, maintenance=window)
    assert bool(found.plan.skip) is skipped
    if skipped:
        assert found.plan.skip == "maintenance weekly until 2031-02-03 13:30 UTC"
        assert found.plan.skip_until == MS + 90 * 60_000


def test_maintenance_leaves_other_alerts_alone() -> None:
    window = {"weekly": {"crontab": "* * * * *", "minutes": 90, "matchers": ["namespace=pay"]}}
    assert decided(maintenance=window).plan.skip == ""


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"filters": [{"matchers": []}]}, "at least 1"),
        ({"filters": [{"matchers": ["nonsense"]}]}, "'nonsense' is not a matcher"),
        ({"filters": [{"matchers": ["a=b"], "sources": ["nobody"]}]}, "no source named 'nobody'"),
        ({"maintenance": {"w": {"crontab": "61 * * * *", "minutes": 5}}}, "crontab"),
        ({"maintenance": {"w": {"crontab": "0 * * * *", "minutes": 0}}}, "greater than 0"),
        ({"maintenance": {"w": {"crontab": "0 * * * *", "minutes": 5, "sources": ["nobody"]}}}, "no source named"),
        ({"grouping": {"labels": []}}, "at least 1"),
    ],
)
def test_a_rule_that_can_not_work_is_refused_at_start(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        settings(**sections)


def test_the_question_asks_for_the_windows_of_the_settings() -> None:
    plan = question(sighting(alert(labels=SHOP), NOON), settings(noise={"flapping_seconds": 60}, storm={"seconds": 30}))
    assert (plan.at, plan.recent_since, plan.storm_since, plan.midnight) == (
        MS,
        MS - 60_000,
        MS - 30_000,
        MS - 12 * 3_600_000,
    )
