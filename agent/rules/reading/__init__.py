"""From the text a tool returned to typed observations, each with the verbatim lines it rests on."""
