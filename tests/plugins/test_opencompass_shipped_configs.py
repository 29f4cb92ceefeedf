"""The dataset configs that OpenCompass and AISBench ship are tasks, but for those that are refused for a named reason."""

from __future__ import annotations

import re

import pytest
from runner_present import need
from shipped_configs import classes, survey

need("opencompass", "opencompass")
need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

FAULTS_OF_THE_CONFIG = (
    "does not exist",  # it imports a file that is not shipped
    "has no '",  # or a name that the file does not have
    "has no infer_cfg",
    "has tuple as reader_cfg",  # a comma too many
    "takes no argument 'prompt'",
    "needs ice_template",  # both runners stop there too
)
REFUSED_BY_US = (
    "multiround='True'",  # it asks the model turn by turn, within one sample
    "TopkRetriever takes either vectors or embed",  # the runner downloads a model for it
    "there are in-context examples and the template has no place for them",  # the runners leave them out silently
)


def test_what_is_refused_is_a_fault_of_the_config_or_refused_by_name() -> None:
    found = survey()
    assert found.files > 1500
    assert found.taken > 0.98 * found.datasets
    both = classes("opencompass") & classes("ais_bench")
    assert {"GenInferencer", "FixKRetriever", "PromptTemplate"} <= both
    for refusal in found.refused:
        unknown = re.search(r"has unknown type '(\w+)'", refusal.what)
        named = any(words in refusal.what for words in (*FAULTS_OF_THE_CONFIG, *REFUSED_BY_US))
        assert named or (unknown is not None and unknown[1] not in both), refusal
