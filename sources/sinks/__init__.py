"""Where a report goes when the alert came from a system without tickets."""
