"""What an investigation can look at; read-only by missing capability."""
