"""From a report to what each system shows best."""
