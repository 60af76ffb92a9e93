"""Settings: their description by a strategy, and the values of a user."""

import dataclasses
import json
import re
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from . import condense_pb2 as pb


ABILITIES = ("hides", "rewrites", "inserts", "asks_models", "keeps_words")


class Problem(NamedTuple):
    """A fault of a setting, described for the user."""

    key: str  # empty if it concerns several
    message: str


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting. Its type is that of its default."""

    name: str
    default: Any  # as json.loads would return it
    doc: str
    enum: Sequence[str] = ()  # the allowed values, if they are few
    was: Sequence[str] = ()  # its former names, which are read as well


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A way to shorten conversations.

    condense is called with a Call and the settings, a dict with all of them, from many
    threads at the same time. check returns the Problems of settings that have the right
    types. estimate, if set, is called like condense: it sets call.usage to the most that the
    call would cost in language models, and neither asks one nor edits.
    """

    name: str
    version: str
    doc: str
    condense: Callable[[Any, dict], None]
    settings: Sequence[Setting] = ()
    abilities: Sequence[str] = ()
    check: Callable[[dict], List[Problem]] = lambda settings: []
    estimate: Optional[Callable[[Any, dict], None]] = None

    def __post_init__(self):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"name {self.name!r}: want lower-case letters, digits and underscores, beginning with a letter")
        for s in self.settings:
            type_name(s.default)
        for ability in self.abilities:
            if ability not in ABILITIES:
                raise ValueError(f"{self.name} declares the ability {ability!r}; there are {', '.join(ABILITIES)}")

    def describe(self):
        """Returns the description for the host."""
        return pb.DescribeResponse(
            name=self.name,
            version=self.version,
            doc=self.doc,
            abilities=self.abilities,
            settings=[
                pb.Setting(
                    name=s.name,
                    type=type_name(s.default),
                    default=json.dumps(s.default).encode(),
                    doc=s.doc,
                    enum=s.enum,
                    was=s.was,
                )
                for s in self.settings
            ],
        )

    def configure(self, data):
        """Applies data, JSON or nothing, to the defaults; returns the settings and the problems."""
        try:
            given = json.loads(data) if data.strip() else {}
        except ValueError as err:
            return {}, [Problem("", f"not JSON: {err}")]
        if not isinstance(given, dict):
            return {}, [Problem("", "not a JSON object")]
        known = {s.name: s for s in self.settings}
        former = {was: s.name for s in self.settings for was in s.was}
        settings = {s.name: s.default for s in self.settings}
        problems = []
        for key, value in given.items():
            if former.get(key) in given:
                problems.append(Problem(key, f"is the former name of {former[key]}, which is set as well"))
                continue
            setting = known.get(former.get(key, key))
            if setting is None:
                problems.append(Problem(key, f"unknown; there are {', '.join(known) or 'no settings'}"))
                continue
            want, have = type_name(setting.default), type_name(value)
            if have != want and (want, have) != ("number", "integer"):
                problems.append(Problem(key, f"want {want}, have {have}"))
            elif setting.enum and value not in setting.enum:
                problems.append(Problem(key, f"{json.dumps(value)} is none of {', '.join(setting.enum)}"))
            else:
                settings[setting.name] = value
        return settings, problems or list(self.check(settings))


def type_name(value):
    """Returns the type of a value of JSON, as JSON Schema names it."""
    for types, name in (
        (bool, "boolean"),  # before integer: it is one
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
        (type(None), "null"),
    ):
        if isinstance(value, types):
            return name
    raise TypeError(f"{value!r} is not a value of JSON")
