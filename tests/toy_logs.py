"""Logs of runs that nobody trained."""

import json


def write_log(
    folder,
    returns,
    env="Pong",
    env_type=None,
    minutes=None,
    versions=None,
    described=None,
    **settings,
):
    """Writes the log of a run whose episodes have 100 agent steps and take a minute.

    Args:
        folder: where; an algorithm's other settings make its config.json.
        returns: of its episodes, a row of progress.csv for each.
        env: the environment.
        env_type: its type.
        minutes: when each episode ended; None for minute 1, 2 ...
        versions, described: as in config.json.
        settings: ``alg``, ``seed`` and others, as in config.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_monitor(folder / "0.0.monitor.csv", returns, env, minutes=minutes)
    rows = [
        f"{value},{100 * (i + 1)},2,{value / 10}" for i, value in enumerate(returns)
    ]
    text = "\n".join(["eprewmean,total_timesteps,fps,loss", *rows, ""])
    (folder / "progress.csv").write_text(text)
    arguments = {"alg": "dqn", "env": env, "env_type": env_type, "seed": 0, **settings}
    config = {"arguments": arguments, "settings": {}, "ranks": 1, "resumed": []}
    config |= {"log_formats": ["csv"], "versions": versions or {}}
    config |= {"described": described or {}}
    (folder / "config.json").write_text(json.dumps(config))


def write_monitor(path, returns, env="Pong", t_start=1000.0, minutes=None):
    """Writes a monitor file; for the arguments, see ``write_log``."""
    minutes = minutes or range(1, len(returns) + 1)
    rows = [f"{value},100,{60.0 * t}\r\n" for value, t in zip(returns, minutes)]
    header = json.dumps({"t_start": t_start, "env_id": env})
    path.write_text("".join([f"# {header} \n", "r,l,t\r\n", *rows]), newline="")
