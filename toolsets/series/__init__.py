"""Time series put into few words: statistics, change points, common labels."""
