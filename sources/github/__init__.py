"""GitHub issues (github.com and Enterprise Server): issues in by REST and webhooks, comments out by REST."""
