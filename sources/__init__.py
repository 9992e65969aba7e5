"""Where alerts come from and where reports go back to; one adapter a module."""
