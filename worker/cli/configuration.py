"""`config`: make, check and show the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.exits import Misused
from worker.cli.options import AsJson, ConfigFile, file_of, settings_for_people, settings_of
from worker.cli.terminal import say, show, show_json

STARTER = """\
# rootcaused. `rootcaused config schema` prints every key; `rootcaused doctor` checks what stands here.
# ${NAME} is an environment variable, ${NAME:-text} one with a default, ${file:/run/secrets/x} the content of a file.

state_dir: ./rootcaused-state       # the embedded Redis keeps its append-only file here
redis: {}
#  url: redis://:${REDIS_PASSWORD}@127.0.0.1:6379/0    # instead of the embedded one

model:
  name: rules                       # the built-in analyst, or any LiteLLM name such as openai/gpt-5
  # api_key: ${MODEL_API_KEY}

server:
  host: 127.0.0.1                   # any other address needs a token
  port: 8080
  # token: ${ROOTCAUSED_TOKEN}

sources: {}
#  pagerduty:
#    kind: pagerduty
#    token: ${PAGERDUTY_TOKEN}
#    from_email: rootcaused@example.com
#    webhook_secrets: ["${PAGERDUTY_WEBHOOK_SECRET}"]
#  alertmanager:
#    kind: alertmanager
#    url: http://127.0.0.1:9093
#    webhook_token: ${ALERTMANAGER_WEBHOOK_TOKEN}
#    write_to: oncall

sinks: {}
#  oncall:
#    kind: slack
#    url: ${SLACK_WEBHOOK_URL}

toolsets:
  plan: {kind: plan}
#  kubernetes: {kind: kubernetes, kubeconfig: /home/you/.kube/config}
#  prometheus: {kind: prometheus, url: "http://127.0.0.1:9090"}
#  loki: {kind: loki, url: "http://127.0.0.1:3100"}
"""

app = typer.Typer(help="Make, check and show the configuration.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("rootcaused.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a configuration to start from."""
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(STARTER)
        path.chmod(0o600)  # people will write secrets into it
    except FileExistsError as error:
        raise Misused(f"{path} is there already; --force overwrites it") from error
    except OSError as error:
        raise Misused(f"{path}: {error.strerror}") from error
    say(f"wrote {path}; next: edit it, then `rootcaused doctor`, then `rootcaused run`")


@app.command()
def validate(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Check the file. Reaches no network; `rootcaused doctor` does."""
    from worker.receiver import check_bind
    from worker.wiring import build_destinations, build_sources

    file, settings = file_of(config), settings_of(config)
    check_bind(settings.server)
    build_destinations(settings, build_sources(settings))
    parts = {part: sorted(getattr(settings, part)) for part in ("sources", "sinks", "toolsets", "sweeps")}
    if as_json:
        show_json({"file": str(file) if file else None, **parts})
        return
    show(f"{file or 'no file, so the defaults'}: valid")
    for part, names in parts.items():
        show(f"  {part}: {', '.join(names) or 'none'}")


@app.command("show")
def show_settings(config: ConfigFile = None) -> None:
    """Print the settings in force as YAML, without secrets."""
    from worker.config import redacted

    show(redacted(settings_for_people(config)).rstrip())


@app.command()
def schema() -> None:
    """Print the JSON schema of the file."""
    from worker.config import json_schema

    show_json(json_schema())
