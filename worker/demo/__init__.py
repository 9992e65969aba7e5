"""The demonstration: a whole daemon against a local stand-in for everything it talks to."""
