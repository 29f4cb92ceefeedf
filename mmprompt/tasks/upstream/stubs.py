"""Stand-ins for the classes and functions of a runner that a config names. The runner is not imported."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partialmethod
from typing import Any, NoReturn, Union

PACKAGES = ("opencompass", "ais_bench", "mmengine")
"""The packages whose names a config may mention although they are not installed."""

UpstreamValue = Union[
    None, bool, int, float, str, type, "RunnerStub", Sequence["UpstreamValue"], Mapping[str, "UpstreamValue"]
]
"""A value in a runner's config."""


class ConfigDict(dict[str, Any]):
    """A dict whose keys are also attributes, like the dicts that mmengine makes of imported configs."""

    def __getattr__(self, name: str) -> UpstreamValue:
        if name in self:
            value: UpstreamValue = self[name]
            return value
        raise AttributeError(f"the config has no {name!r}")

    def __setattr__(self, name: str, value: UpstreamValue) -> None:
        self[name] = value

    def deepcopy(self) -> ConfigDict:
        """Return a deep copy."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, object]) -> ConfigDict:
        return ConfigDict({copy.deepcopy(k, memo): copy.deepcopy(v, memo) for k, v in self.items()})

    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigDict, (dict(self),))


def as_config(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return nested data with each dict as a ``ConfigDict``. Lists are changed in place; shared objects stay shared."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    if type(value) in (dict, ConfigDict):
        made = seen[id(value)] = ConfigDict()
        made.update({k: as_config(v, seen) for k, v in value.items()})
        return made
    if type(value) is list:
        seen[id(value)] = value
        value[:] = [as_config(v, seen) for v in value]
    return value


class RunnerStub:
    """A name under one of ``PACKAGES``.

    It can be called, indexed, combined with operators, formatted, or entered as a context; the result is a stub again.
    Its value is unknown, so it has no length and cannot be iterated over. ``dotted`` is the name. ``stub_texts``
    collects the texts that stubs were formatted as.
    """

    __slots__ = ("__weakref__", "dotted", "stub_texts")
    dotted: str
    stub_texts: set[str]

    def __init__(self, dotted: str, stub_texts: set[str]) -> None:
        self.dotted = dotted
        self.stub_texts = stub_texts

    @property
    def short(self) -> str:
        """The last of its dotted words."""
        return self.dotted.rpartition(".")[2]

    def _derived(self, suffix: str) -> RunnerStub:
        return RunnerStub(self.dotted + suffix, self.stub_texts)

    def combined(self, symbol: str, other: UpstreamValue) -> RunnerStub:  # noqa: ARG002  # the result is unknown
        """Return the stub of what an operator gives."""
        return self._derived(symbol)

    def __getattr__(self, name: str) -> RunnerStub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"{self.dotted} has no {name}")
        return self._derived(f".{name}")

    def __call__(self, *args: Mapping[str, UpstreamValue], **kwargs: UpstreamValue) -> ConfigDict | RunnerStub:
        """Return a stub for the result; a call of ``ConfigDict`` returns the dict."""
        return ConfigDict(*args, **kwargs) if self.short == "ConfigDict" else self._derived("()")

    def __getitem__(self, key: UpstreamValue) -> RunnerStub:
        return self._derived("[]")

    def __enter__(self) -> RunnerStub:
        """Enter ``with read_base():``, which marks imports of other configs."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave; an exception passes through."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """Leave the stub out of the bases of a class."""
        return ()

    def __str__(self) -> str:
        """Return the name, and record that a text now holds it in place of a value."""
        text = f"<{self.dotted}>"
        self.stub_texts.add(text)
        return text

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return str(self)

    def __iter__(self) -> Iterator[RunnerStub]:
        """Refuse: a loop over nothing would silently change the config."""
        return self._unknown("iterated over")

    def __len__(self) -> int:
        return self._unknown("measured")

    def __bool__(self) -> bool:
        """Be true, like the class or function it stands for."""
        return True

    def _unknown(self, verb: str) -> NoReturn:
        what = f"{self.dotted} cannot be {verb}: a config is read without {self.dotted.partition('.')[0]}"
        raise TypeError(what)

    def __copy__(self) -> RunnerStub:
        return self

    def __deepcopy__(self, memo: object) -> RunnerStub:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (RunnerStub, (self.dotted, set(self.stub_texts)))


for _method, _symbol in {"or": "|", "and": "&", "add": "+", "sub": "-", "mul": "*", "mod": "%", "truediv": "/"}.items():
    for _side in ("", "r"):
        setattr(RunnerStub, f"__{_side}{_method}__", partialmethod(RunnerStub.combined, f"{_symbol}…"))
