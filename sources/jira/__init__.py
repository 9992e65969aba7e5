"""Jira Cloud (v3) and Data Center (v2), Service Management too: issues in by REST and webhook, comments out."""
