"""Code mode: one script of the model's composes many tools in a sealed process and prints only what matters."""
