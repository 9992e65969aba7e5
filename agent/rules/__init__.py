"""The rules analyst: a deterministic model that investigates by mechanism, with no language model."""
