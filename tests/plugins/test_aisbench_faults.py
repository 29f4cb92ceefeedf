"""Side by side on AISBench's own classes: where its template fails on what its documents show, and ours."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from logging import getLogger
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import COMMAND_SECONDS, RETRIEVERS, SKELETONS, TEXT, retrieved, task_with_a_slot_of_no_column
from runner_present import need

from mmprompt.errors import MediaError, MMPromptError, TemplateError
from mmprompt.plugins.bridge.runner_builder import RunnerBuilder

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ais_bench.benchmark.models.api_models.base_api import APITemplateParser
    from ais_bench.benchmark.openicl.icl_prompt_template import MMPromptTemplate as StockMultimodal
    from ais_bench.benchmark.openicl.icl_prompt_template import PromptTemplate as StockText
    from ais_bench.benchmark.openicl.icl_retriever import ZeroRetriever
    from ais_bench.benchmark.registry import ICL_PROMPT_TEMPLATES, ICL_RETRIEVERS, LOAD_DATASET, MODELS
    from ais_bench.benchmark.utils.prompt import PromptList as RunnerList

    from mmprompt.plugins.aisbench import (
        MMPromptDataset,
        MMPromptMultimodal,
        MMPromptRetriever,
        MMPromptTask,
        MMPromptText,
    )
    from mmprompt.plugins.aisbench.chat_model import Parser

ROUND = [{"role": "HUMAN", "prompt_mm": SKELETONS}]
TAGGED = "<AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?<AIS_CONTENT_TAG>"
META = {
    "round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT", "generate": True}],
    "reserved_roles": [{"role": "SYSTEM", "api_role": "SYSTEM"}],
}


def said(prompt: Any) -> list[Any]:
    """What the roles say, media in short."""
    return [short(item.get("prompt_mm", item.get("prompt"))) for item in prompt if "role" in item]


def short(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [part.get("text") or part[part["type"]]["url"][:15] for part in content]


@pytest.fixture
def media(tour: Path) -> dict[str, Any]:
    return {"roots": [str(tour)]}


def multimodal(media: Any, round_: Any = ROUND, **options: Any) -> MMPromptMultimodal:
    return MMPromptMultimodal({"round": round_}, media=media, **options)


def test_the_short_names_are_registered_under_names_of_our_own() -> None:
    for registry, names in (
        (ICL_PROMPT_TEMPLATES, ("MMPromptText", "MMPromptMultimodal", "MMPromptMultiTurn", "MMPromptTask")),
        (ICL_RETRIEVERS, ("MMPromptRetriever",)),
        (LOAD_DATASET, ("MMPromptDataset",)),
        (MODELS, ("MMPromptChat",)),
    ):
        assert [registry.get(name).__module__.partition(".")[0] for name in names] == ["mmprompt"] * len(names)
    assert ICL_PROMPT_TEMPLATES.get("MMPromptTemplate") is StockMultimodal


@pytest.mark.parametrize("row", [{"question": TAGGED}, {"image": "media/coffee.jpg", "question": "What is it?"}])
def test_media_in_the_documented_columns(media: Any, row: dict[str, str]) -> None:
    with pytest.raises(KeyError, match="content"):
        StockMultimodal({"round": ROUND}).generate_item(row)
    [content] = said(multimodal(media).generate_item(row))
    assert sorted(content) == ["What is it?", "data:image/jpeg"]


def test_the_documented_mm_url(media: Any) -> None:
    prompt_mm = {"mm_url": "{image}", "text": {"type": "text", "text": "{question}"}}
    round_ = [{"role": "HUMAN", "prompt_mm": prompt_mm}]
    row = {"type": "image", "image": "media/coffee.jpg", "question": "What is it?"}
    with pytest.raises((KeyError, TypeError)):
        StockMultimodal({"round": round_}).generate_item({**row, "content": TAGGED})
    [content] = said(multimodal(media, round_).generate_item(row))
    assert sorted(content) == ["What is it?", "data:image/jpeg"]


def test_other_slots_of_the_text(media: Any) -> None:
    row = {"content": TAGGED, "hint": "Look closely."}
    round_ = [{"role": "HUMAN", "prompt_mm": {**SKELETONS, "text": {"type": "text", "text": "{question} {hint}"}}}]
    assert said(StockMultimodal({"round": round_}).generate_item(row))[0][1] == "What is it? {hint}"
    assert said(multimodal(media, round_).generate_item(row))[0][1] == "What is it? Look closely."


@pytest.mark.parametrize(
    ("source", "theirs", "ours"),
    [
        ("https://example.com/a.jpg", "file://https://", "https://example"),
        ("data:image/png;base64,iVBORw0KGgo=", "file://data:ima", "data:image/png;"),
        ("file://media/coffee.jpg", "file://file://m", "data:image/jpeg"),
    ],
)
def test_source_forms_under_the_documented_template(media: Any, source: str, theirs: str, ours: str) -> None:
    row = {"content": f"<AIS_IMAGE_START>{source}<AIS_CONTENT_TAG>"}
    assert said(StockMultimodal({"round": ROUND}).generate_item(row)) == [[theirs]]
    assert said(multimodal(media).generate_item(row)) == [[ours]]


def test_text_outside_the_tags(media: Any) -> None:
    row = {"content": "Look: <AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG> What is it?"}
    assert said(StockMultimodal({"round": ROUND}).generate_item(row)) == [[]]
    assert said(multimodal(media).generate_item(row)) == [["Look: ", "data:image/jpeg", " What is it?"]]
    assert said(StockMultimodal({"round": ROUND}).generate_item({"content": "No tags."})) == [[]]
    assert said(multimodal(media).generate_item({"content": "No tags."})) == ["No tags."]


def test_a_closing_tag_that_is_missing(media: Any) -> None:
    row = {"content": "<AIS_TEXT_START>a<AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG>"}
    assert said(StockMultimodal({"round": ROUND}).generate_item(row)) == [["a<AIS_IMAGE_START>media/coffee.jpg"]]
    with pytest.raises(MMPromptError, match="close the segment before it"):
        multimodal(media).generate_item(row)


def test_a_file_outside_the_roots(media: Any) -> None:
    row = {"content": "<AIS_IMAGE_START>/etc/passwd<AIS_CONTENT_TAG>"}
    assert said(StockMultimodal({"round": ROUND}).generate_item(row)) == [["file:///etc/pas"]]
    with pytest.raises(MediaError, match="outside the media roots"):
        multimodal(media).generate_item(row)


def test_the_words_of_other_roles_are_filled_too(media: Any) -> None:
    template = {"begin": [{"role": "SYSTEM", "prompt": "Speak {language}."}], "round": ROUND}
    row = {"content": TAGGED, "language": "Chinese"}
    assert said(StockMultimodal(template).generate_item(row))[0] == "Speak {language}."
    assert said(MMPromptMultimodal(template, media=media).generate_item(row))[0] == "Speak Chinese."


def test_examples_with_media(media: Any) -> None:
    row = {"content": TAGGED, "answer": "a cup"}
    with pytest.raises(Exception, match="does not supported"):
        StockMultimodal({"round": ROUND}).generate_ice_item(row, "a cup")
    round_ = [*ROUND, {"role": "BOT", "prompt": "{answer}"}]
    ice = RunnerList([]) + multimodal(media, round_).generate_ice_item(row, "a cup") + ""
    template = MMPromptMultimodal({"begin": ["</E>"], "round": round_}, ice_token="</E>", media=media)
    prompt = template.generate_item(row, "answer", "", ice)
    assert isinstance(prompt, RunnerList)
    shown = ["data:image/jpeg", "What is it?"]
    assert said(prompt) == [shown, "a cup", shown, ""]
    messages = APITemplateParser(META).parse_template(prompt, "gen")
    assert [short(m["prompt"]) for m in messages] == [shown, "a cup", shown]


def test_our_examples_keep_their_media_in_a_prompt_of_the_stock_template(media: Any) -> None:
    row = {"content": TAGGED, "answer": "a cup"}
    ice = RunnerList([]) + multimodal(media, [*ROUND, {"role": "BOT", "prompt": "{answer}"}]).generate_ice_item(row, "")
    template = {"begin": ["</E>"], "round": [{"role": "HUMAN", "prompt": "And {q}?"}]}
    prompt = StockText(template, ice_token="</E>").generate_item({"q": "this"}, None, "", ice)
    messages = APITemplateParser(META).parse_template(prompt, "gen")
    assert [short(m["prompt"]) for m in messages] == [["data:image/jpeg", "What is it?"], "a cup", "And this?"]


def test_a_slot_in_a_value_is_not_filled() -> None:
    row = {"question": "leak {answer}", "answer": "SECRET"}
    stock = StockText({"A": "{question}|{answer}"}).generate_label_prompt_item(row, "", "A")
    ours = MMPromptText({"A": "{question}|{answer}"}).generate_label_prompt_item(row, "", "A")
    assert (stock, ours) == ("leak SECRET|SECRET", "leak {answer}|SECRET")


def test_the_separator_of_an_example() -> None:
    options = {"template": "</E>Q: {q}</S>{a}", "ice_token": "</E>", "sep_token": "</S>"}
    row = {"q": "How are you?", "a": "Good."}
    assert StockText(**options).generate_ice_item(row, None) == "Q: How are you?</S>Good."
    assert MMPromptText(**options).generate_ice_item(row, None) == "Q: How are you?Good."


def test_the_documented_ice_template_alone_without_examples(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1=?", "answer": "2"}', encoding="utf-8")
    reader = {"input_columns": ["id"], "output_column": "answer"}
    dataset = MMPromptDataset(path=str(tmp_path / "rows.jsonl"), abbr="rows", reader_cfg=reader)
    template = {"template": "Q: {question}\nA: {answer}"}
    stock = ZeroRetriever(dataset, ice_template={"type": StockText, **template})
    with pytest.raises(Exception, match="ice_token"):
        stock.generate_prompt_for_generate_task(0, "")
    ours = ZeroRetriever(dataset, ice_template={"type": MMPromptText, **template})
    assert ours.generate_prompt_for_generate_task(0, "") == "Q: 1+1=?\nA: "


def test_a_prompt_list_as_the_documents_print_it() -> None:
    items = [{"role": "HUMAN", "prompt": "Question: 1+1=?"}, {"role": "BOT", "prompt": "Answer: "}]
    with pytest.raises(IndexError):
        APITemplateParser(META).parse_template(RunnerList(items), "gen")
    assert said(Parser(META, RunnerBuilder()).parse_template(RunnerList(items), "gen")) == ["Question: 1+1=?"]


def test_short_names_registered_as_documented_and_as_ours(tmp_path: Path) -> None:
    package = tmp_path / "documented" / "openicl" / "icl_prompt_template"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    lines = (
        "from ais_bench.benchmark.registry import ICL_PROMPT_TEMPLATES as R",
        "@R.register_module()",
        "class Documented: pass",
    )
    (package / "__init__.py").write_text("\n".join(lines), encoding="utf-8")
    metadata = tmp_path / "documented-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: documented\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[ais_bench.benchmark_plugins]\nd = documented\n", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "from ais_bench.benchmark.registry import ICL_PROMPT_TEMPLATES as R; import ais_bench.benchmark.models\n"
    code += "print([name for name in ('Documented', 'MMPromptText') if R.get(name)])"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    assert done.stdout.splitlines()[-1:] == ["['MMPromptText']"], done.stderr[-2000:]


def test_an_end_section_under_a_meta_template() -> None:
    round_ = [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "2"}]
    template = {"round": round_, "end": [{"role": "HUMAN", "prompt": "Be brief."}]}
    with pytest.raises(IndexError):
        APITemplateParser(META).parse_template(StockText(template).generate_item({"q": "1+1?"}), "ppl")
    ours = MMPromptText(template).generate_item({"q": "1+1?"})
    messages = Parser(META, RunnerBuilder()).parse_template(ours, "ppl")
    assert [message["prompt"] for message in messages] == ["1+1?", "2", "Be brief."]


def test_a_system_prompt_beside_media_for_a_model_without_system(media: Any) -> None:
    template = {"begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."}], "round": ROUND}
    prompt = MMPromptMultimodal(template, media=media).generate_item({"content": TAGGED})
    meta = {"round": META["round"]}
    with pytest.raises(TypeError):
        APITemplateParser(meta).parse_template(prompt, "gen")
    [message] = Parser(meta, RunnerBuilder()).parse_template(prompt, "gen")
    assert message["role"] in ("HUMAN", "user")
    assert [p["type"] for p in message["prompt"]] == ["text", "image_url", "text"]


def test_the_system_message_of_a_task_s_meta_template_goes_through_the_stock_model(tmp_path: Path) -> None:
    begin = [{"role": "SYSTEM", "prompt": "Be brief."}]
    template = {"begin": begin, "round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{answer}"}]}
    own = {"round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}], "reserved_roles": [{"role": "SYSTEM"}]}
    task = {"dataset": "rows.jsonl", "infer_cfg": {"prompt_template": {"template": template}}}
    (tmp_path / "task.json").write_text(json.dumps({**task, "model": {"meta_template": own}}), encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"q": "1+1=?", "answer": "2"}', encoding="utf-8")
    path = str(tmp_path / "task.json")
    row = MMPromptDataset(path=path, reader_cfg={"input_columns": ["id"], "output_column": "answer"}).test[0]
    prompt = MMPromptTask(path).generate_item(row)
    for parser in (APITemplateParser(META), Parser(None, RunnerBuilder())):
        assert [message["prompt"] for message in parser.parse_template(prompt, "gen")] == ["Be brief.", "1+1=?"]


def test_what_a_role_of_the_meta_template_says_around_media(media: Any) -> None:
    meta = {"round": [{"role": "HUMAN", "api_role": "HUMAN", "begin": "Q: "}, META["round"][1]]}
    prompt = multimodal(media).generate_item({"content": TAGGED})
    [theirs] = APITemplateParser(meta).parse_template(prompt, "gen")
    [ours] = Parser(meta, RunnerBuilder()).parse_template(prompt, "gen")
    assert short(theirs["prompt"]) == ["data:image/jpeg", "What is it?"]
    assert short(ours["prompt"]) == ["Q: ", "data:image/jpeg", "What is it?"]


def test_a_prompt_of_the_stock_template_goes_through_our_model(tour: Path) -> None:
    prompt = StockMultimodal({"round": ROUND}).generate_item({"content": TAGGED})
    [message] = Parser(None, RunnerBuilder({"roots": [str(tour)]})).parse_template(prompt, "gen")
    assert short(message["prompt"]) == ["data:image/jpeg", "What is it?"]


def test_a_template_that_cannot_be_filled_is_refused_when_it_is_made() -> None:
    wrong = {"round": [{"role": "HUMAN", "prompt_mm": {"images": {"type": "image_url", "image_url": "{image}"}}}]}
    StockMultimodal(wrong)
    with pytest.raises(TemplateError, match="images"):
        MMPromptMultimodal(wrong)


@pytest.mark.parametrize("kind", RETRIEVERS)
def test_a_retriever_picks_and_joins_as_the_core_does(tmp_path: Path, kind: str) -> None:
    def retriever(path: str, kind: str, arguments: dict[str, Any]) -> Any:
        reader = {"input_columns": ["question"], "output_column": "answer"}
        dataset = MMPromptDataset(path=path, abbr="rows", reader_cfg=reader)
        ice = {"type": "MMPromptText", "template": TEXT}
        return MMPromptRetriever(dataset=dataset, kind=kind, arguments=arguments, ice_template=ice)

    theirs, core = retrieved(tmp_path, kind, retriever)
    assert theirs == core


def test_what_mmprompt_warns_of_is_in_aisbench_s_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = task_with_a_slot_of_no_column(tmp_path)
    row = MMPromptDataset(path=task, reader_cfg={"input_columns": ["id"], "output_column": "answer"}).test[0]
    getLogger("ais_bench").addHandler(caplog.handler)
    try:
        MMPromptTask(task).generate_item(row)
    finally:
        getLogger("ais_bench").removeHandler(caplog.handler)
    said = [record.getMessage() for record in caplog.records if record.name == "ais_bench"]
    assert ["{quesion} in a template names no column" in text for text in said] == [True]
