"""What an alert, a report and a tool are, and the loop that turns one into the other."""
