"""PagerDuty: incidents in by REST v2 and webhooks v3, notes out by REST."""
