"""When a crontab comes due next; Celery's own type reads it."""

from __future__ import annotations

from datetime import UTC, datetime

from celery.schedules import ParseException, crontab

from agent.errors import ConfigError


def next_time(text: str, last: float) -> float:
    """Unix time of the first moment after `last` that a five-field crontab (UTC) names. Raises `ConfigError`."""
    start = datetime.fromtimestamp(last, UTC)
    try:
        minute, hour, day_of_month, month, day_of_week = text.split()
        schedule = crontab(
            minute=minute,
            hour=hour,
            day_of_month=day_of_month,
            month_of_year=month,
            day_of_week=day_of_week,
            nowfun=lambda: start,
        )
        return last + float(schedule.remaining_estimate(start).total_seconds())
    except (ValueError, ParseException) as error:
        raise ConfigError(f"{text!r} is not a crontab of five fields: {error}") from error
