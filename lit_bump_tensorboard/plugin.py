"""The plugin: which routes it serves, and what it asks of TensorBoard.

A fault in here must never stop TensorBoard: what can fail at the start is caught, and the tab is then missing.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from tensorboard import errors, plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from lit_bump_tensorboard.series import PLUGIN, SeriesReader

STATIC = Path(__file__).resolve().parent / "static"
_application: Any = wrappers.Request.application
_KINDS = {".js": "application/javascript"}


class BumpPluginLoader(base_plugin.TBLoader):  # type: ignore[misc]
    """Make the plugin, and keep all its steps."""

    def fix_flags(self, flags: Any) -> None:
        """Ask for every step of our series, unless the user has asked for another number.

        TensorBoard keeps 10 or 100 steps of a series otherwise, whichever come.

        Args:
            flags: of the command line.

        """
        with contextlib.suppress(
            Exception
        ):  # flags of a form that we do not know: better fewer steps than no TensorBoard
            flags.samples_per_plugin.setdefault(PLUGIN, 0)

    def load(self, context: base_plugin.TBContext) -> BumpPlugin | None:
        """Return the plugin.

        Args:
            context: of TensorBoard.

        Returns:
            None where there is no data provider to read from.

        """
        return BumpPlugin(context) if getattr(context, "data_provider", None) is not None else None


class BumpPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serve the page and the numbers.

    Args:
        context: of TensorBoard.

    """

    plugin_name = PLUGIN

    def __init__(self, context: base_plugin.TBContext) -> None:
        super().__init__(context)
        self._reader = SeriesReader(context.data_provider)
        self._files = {path.name: path for path in STATIC.glob("*") if path.suffix in _KINDS} if STATIC.is_dir() else {}

    def get_plugin_apps(self) -> dict[str, Any]:
        """Return the routes."""
        return {"/changes": self._changes, "/detail": self._detail, "/static/*": self._static}

    def is_active(self) -> bool:
        """Return False: TensorBoard shows the tab by itself once there are series of ours."""
        return False

    def data_plugin_names(self) -> tuple[str, ...]:
        """Return whose series make the tab active."""
        return (PLUGIN,)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Return where the page begins."""
        return base_plugin.FrontendMetadata(es_module_path="/static/index.js", tab_name="Bump")

    @_application  # type: ignore[untyped-decorator,unused-ignore]
    def _changes(self, request: wrappers.Request) -> wrappers.Response:
        """Answer with what is newer than ``since``.

        Returns:
            JSON.

        """
        _only_get(request)
        since = _number(request, "since", 0.0)
        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        return _json(request, self._reader.changes(context, experiment, since))

    @_application  # type: ignore[untyped-decorator,unused-ignore]
    def _detail(self, request: wrappers.Request) -> wrappers.Response:
        """Answer with all rows of one series at one step.

        Returns:
            JSON.

        Raises:
            NotFoundError: if there is no such point.

        """
        _only_get(request)
        run, tag = request.args.get("run", ""), request.args.get("tag", "")
        step = int(_number(request, "step", -1))
        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        found = self._reader.detail(context, experiment, run, tag, step)
        if found is None:
            raise errors.NotFoundError("there is no such run, series or step")
        return _json(request, found)

    @_application  # type: ignore[untyped-decorator,unused-ignore]
    def _static(self, request: wrappers.Request) -> wrappers.Response:
        """Answer with one of our own files; no other path is ever opened.

        Returns:
            The file.

        Raises:
            NotFoundError: if it is none of ours.

        """
        _only_get(request)
        path = self._files.get(request.path.rpartition("/")[2])
        if path is None or not path.is_file():
            raise errors.NotFoundError("there is no such file")
        return _respond(request, path.read_text(encoding="utf-8"), _KINDS[path.suffix])


def _only_get(request: wrappers.Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise errors.InvalidArgumentError("only GET is served")


def _number(request: wrappers.Request, name: str, default: float) -> float:
    text = request.args.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError as error:
        raise errors.InvalidArgumentError(f"{name} is no number") from error
    if value != value or abs(value) > 1e15:
        raise errors.InvalidArgumentError(f"{name} is no such number")
    return value


def _json(request: wrappers.Request, value: Any) -> wrappers.Response:
    # Dumped here: TensorBoard's own way turns NaN into text, and takes ten times as long.
    return _respond(request, json.dumps(value, allow_nan=False, separators=(",", ":")), "application/json")


def _respond(request: wrappers.Request, content: str, kind: str) -> wrappers.Response:
    response: wrappers.Response = http_util.Respond(request, content, kind)  # compresses where that is accepted
    return response
