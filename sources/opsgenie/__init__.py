"""OpsGenie and Jira Service Management Operations: alerts in by REST and webhook, notes out by REST."""
