"""Prompt templates, by name or from a file, and the rendering of problems with them."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from data import Problem
from data.environments.spec import tools_of
from reasoner.config.other_names import did_you_mean
from reasoner.types import Prompt
from verifiers.extract import check_extraction

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# DeepSeek-AI 2025, DeepSeek-R1, table 1.
R1_ZERO = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The "
    "assistant first thinks about the reasoning process in the mind and then provides the user with the "
    "answer. The reasoning process and answer are enclosed within <think> </think> and <answer> </answer> "
    "tags, respectively, i.e., <think> reasoning process here </think> <answer> answer here </answer>. User: "
    "{question}\nAssistant:"
)

_INSTRUCTION = (
    "First think about the reasoning process, then give the answer. Enclose the reasoning within <think> "
    "</think> and the answer within <answer> </answer> tags, i.e., <think> reasoning process here </think> "
    "<answer> answer here </answer>."
)


_WITH_PROGRAMS = (
    "Please integrate natural language reasoning with programs to solve the problem above, and put your final answer "
    "within \\boxed{}."
)
_BOXED = "Please reason step by step, and put your final answer within \\boxed{}."


# Three worked examples, whose calculations belong to the training problems of data.one_step.
_FEW_SHOT = (
    "Question: What is 25 + 14?\nAnswer: 25 + 14 = 39. \\boxed{39}\n\n"
    "Question: Sam has 30 marbles and loses 12. How many marbles are left?\nAnswer: 30 - 12 = 18. \\boxed{18}\n\n"
    "Question: Each of 4 children eats 12 nuts. How many nuts do they eat together?\n"
    "Answer: 12 * 4 = 48. \\boxed{48}\n\nQuestion: {question}\nAnswer:"
)


@dataclass(frozen=True, slots=True)
class Template:
    """How a question becomes a prompt, what ends a completion, and how its answer is extracted."""

    text: str  # with {question}
    prefill: str = ""  # beginning of the response, part of the graded text
    stop: tuple[str, ...] = ()  # texts that end a completion, besides the end token; kept in the text
    chat: bool = False  # `text` is the user's turn in the tokenizer's own chat template
    system: str = ""  # the system message of a chat
    extract: str = "strict"  # how the answer is extracted (verifiers.extract.EXTRACTORS)

    def __post_init__(self) -> None:
        if "{question}" not in self.text:
            raise ValueError(f"a prompt must contain {{question}}; this one is {self.text[:60]!r}")
        check_extraction(self.extract)
        for text in self.stop:
            if not isinstance(text, str) or not text:
                raise ValueError(f"stop has {text!r}; it takes texts that are not empty")

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all its parts."""
        return hashlib.sha256(json.dumps(asdict(self), ensure_ascii=False).encode()).hexdigest()


def _qwen_math(system: str) -> Template:
    """Qwen2.5-Math's own chat as text, for base models too: they know it from pretraining."""
    turns = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{{question}}<|im_end|>\n<|im_start|>assistant\n"
    return Template(turns, stop=("<|im_end|>", "<|endoftext|>"), extract="boxed")


TEMPLATES: dict[str, Template] = {
    "r1-zero": Template(R1_ZERO, stop=("</answer>",)),
    "qwen-math": _qwen_math(_BOXED),
    "qwen-math-tool": _qwen_math(_WITH_PROGRAMS),  # its tool-integrated reasoning: --tools python
    "boxed": Template("{question}\n" + _BOXED, chat=True, extract="boxed"),
    "chat": Template(_INSTRUCTION + "\n\n{question}", stop=("</answer>",), chat=True),
    "few-shot": Template(_FEW_SHOT, stop=("\n\n",), extract="boxed"),  # for small models, which follow examples
    "none": Template("{question}", extract="lenient"),
}


def load_template(name: str) -> Template:
    """Return the template of that name, or the one in a .txt or .toml file. ValueError for an unknown name."""
    if Path(name).suffix in (".txt", ".toml"):
        return read_template(Path(name))
    if name not in TEMPLATES:
        hint = did_you_mean(name, TEMPLATES)
        raise ValueError(f"unknown prompt style {name!r}; known are {', '.join(TEMPLATES)}, or a .txt or .toml{hint}")
    return TEMPLATES[name]


def read_template(path: Path) -> Template:
    """Read a template from a .txt file that contains {question}, or from a .toml file with the fields of Template.

    A .txt template has lenient extraction. ValueError naming the file and the problem.
    """
    try:
        text = path.read_text("utf-8-sig")  # some programs write a byte order mark
        if path.suffix == ".txt":
            return Template(text, extract="lenient")
        values = tomllib.loads(text)
        kinds = {field.name: type(field.default) if field.name != "text" else str for field in fields(Template)}
        for name, value in values.items():
            if name not in kinds:
                raise ValueError(f"unknown field {name!r}; known are {', '.join(kinds)}")
            if not isinstance(value, list if kinds[name] is tuple else kinds[name]):
                raise ValueError(f"{name} is {value!r}; it must be a {kinds[name].__name__}")
        if "text" not in values:
            raise ValueError("no text")
        return Template(**{**values, "stop": tuple(values.get("stop", ()))})
    except (OSError, ValueError) as error:
        raise ValueError(f"prompt {path}: {getattr(error, 'strerror', None) or error}") from error


def up_to_stop_text(text: str, stop_texts: Sequence[str]) -> str:
    """Cut the text after the stop text that ends first."""
    ends = [text.index(stop) + len(stop) for stop in stop_texts if stop in text]
    return text[: min(ends)] if ends else text


def check_text(text: str, what: str) -> None:
    """Raise ValueError for half of a surrogate pair, which JSON may contain ("\\ud83d") and no tokenizer can encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        place = f"character {error.start + 1}"
        raise ValueError(f"{what} holds half of a surrogate pair ({text[error.start]!r}) at {place}") from error


def render(problem: Problem, template: Template, tokenizer: PreTrainedTokenizerBase) -> Prompt:
    """Render the problem as text and token ids. Special tokens are added once: by chat template or tokenizer. Tools of
    its environment stand in the system message, in a text before the question.

    ValueError for a chat template on a tokenizer without one or whose one refuses the messages, for a text that begins
    with the begin token which the tokenizer adds, and for a question that is not valid Unicode.
    """
    check_text(problem.question, f"the question of problem {problem.id!r}")
    question, system, tools = problem.question, template.system, tools_of(problem)
    if tools and template.chat:
        system = with_tools_message(system, tools)
    elif tools:
        question = f"{with_tools_message('', tools)}\n\n{question}"
    text = template.text.replace("{question}", question)
    if template.chat and not tokenizer.chat_template:
        styles = "use r1-zero, qwen-math or none"
        raise ValueError(f"this prompt is a chat, and the model's tokenizer has no chat template; {styles}")
    if template.chat:
        messages = [{"role": "system", "content": system}] if system else []
        text = render_chat([*messages, {"role": "user", "content": text}], tokenizer)
    prefill = opened_thinking(text) + template.prefill
    text += template.prefill
    ids = tokenizer(text, add_special_tokens=not template.chat)["input_ids"]
    if not template.chat and tokenizer.bos_token_id is not None and ids[:2] == [tokenizer.bos_token_id] * 2:
        raise ValueError(
            f"the prompt of problem {problem.id!r} begins with {tokenizer.bos_token!r}, which the tokenizer adds too; "
            "remove it from the prompt template"
        )
    if ids and ids[-1] == tokenizer.eos_token_id:  # some tokenizers end every text
        ids = ids[:-1]
    return Prompt(problem, text, prefill, tuple(ids), template.extract)


def opened_thinking(prompt: str) -> str:
    """The <think> at the end of a prompt, as chat templates of reasoning models open it (DeepSeek-R1's distills, QwQ,
    Qwen3-Thinking): the response begins with it, though it is not sampled. Empty without one.
    """
    match = _OPENED.search(prompt)
    return match[0] if match else ""


_OPENED = re.compile(r"<think>\s*\Z")


def without_prefill(response: str, prefill: str) -> str:
    """The response behind what its prompt prefills, which may have other white space around it there."""
    if response.startswith(prefill):
        return response[len(prefill) :]
    stripped, start = response.lstrip(), prefill.strip()
    return stripped[len(start) :].lstrip() if start and stripped.startswith(start) else response


_TOOLS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function "
    "signatures within <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\nFor each function call, return a json "
    "object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)


def with_tools_message(system: str, tools: str) -> str:
    """A system message, and in it the tools, lines of JSON, as chat templates of Qwen2.5 and Qwen3 show them."""
    return "\n\n".join(filter(None, [system, _TOOLS.format(tools=tools)]))


def reply_frame(template: Template, tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """What stands before and after a reply to a turn of the model's: that of a message of the user's. In a text, what
    names a question, such as "User: ", and all that follows it.
    """
    if template.chat:
        turns = [("user", "?"), ("assistant", _TURN), ("user", "{question}")]
        text = render_chat([{"role": role, "content": content} for role, content in turns], tokenizer)
        before, _, after = text.rpartition(_TURN)[2].partition("{question}")
    else:
        head, _, after = template.text.rpartition("{question}")
        name = _NAME_OF_QUESTION.search(head)
        before, after = "\n" + (name[0] if name else ""), after or "\n"
    return before, after + template.prefill


_TURN = "(turn)"
_NAME_OF_QUESTION = re.compile(r"(<\|im_start\|>\w+\n|\w+: ?)$")


_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


def check_teacher_prompt(text: str) -> None:
    """ValueError for a teacher.prompt without the question, or with nothing that the policy does not read."""
    names = set(_PLACEHOLDER.findall(text))
    if text and ("question" not in names or names == {"question"}):
        raise ValueError(
            f"teacher.prompt is {text!r:.80}; it takes {{question}} and {{answer}}, the gold answer, or a column of "
            "the data such as {solution}"
        )


def with_teacher_prompt(prompt: Prompt, text: str, template: Template, tokenizer: PreTrainedTokenizerBase) -> Prompt:
    """The prompt with the ids that the teacher reads: of the template with `text` (teacher.prompt) as its question.

    ValueError naming the problem for a column that it lacks.
    """
    problem = prompt.problem
    values = {**problem.columns, "question": problem.question, "answer": problem.answer}

    def value(match: re.Match[str]) -> str:
        content = values.get(match[1])
        if not isinstance(content, str) or not content.strip():
            known = ", ".join(name for name, one in values.items() if isinstance(one, str) and one.strip())
            raise ValueError(
                f"teacher.prompt names {match[0]}, and problem {problem.id!r} of data.train has no text of that name; "
                f"it has {known}"
            )
        return content

    question = _PLACEHOLDER.sub(value, text)
    return replace(prompt, teacher_ids=render(replace(problem, question=question), template, tokenizer).token_ids)


def render_chat(
    messages: Sequence[Mapping[str, str]], tokenizer: PreTrainedTokenizerBase, *, add_generation_prompt: bool = True
) -> str:
    """The messages in the tokenizer's chat template, and by default the beginning of the model's answer. Where the
    template writes the date (Llama 3.2, SmolLM3) it is CHAT_DATE: a prompt must not depend on the day.

    ValueError for messages that the template refuses.
    """
    from jinja2 import TemplateError

    try:
        return str(
            tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                strftime_now=CHAT_DATE.strftime,
            )
        )
    except (TemplateError, TypeError) as error:  # many refuse a system message, or two of the same role
        roles = " and ".join(dict.fromkeys(message["role"] for message in messages))
        name = tokenizer.name_or_path or type(tokenizer).__name__
        raise ValueError(f"the chat template of {name} refuses messages of the {roles}: {error}") from error


CHAT_DATE = date(2024, 7, 26)  # that of Llama 3.2's chat template where it cannot ask for one


def turn_end(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that ends a turn of the model's in the chat template; None where there is none. Of base models
    it is often not the end token: of Qwen2.5's <|im_end|>.
    """
    turns = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "@@"}]
    try:
        text = render_chat(turns, tokenizer, add_generation_prompt=False) if tokenizer.chat_template else ""
    except ValueError:  # it refuses these messages
        return None
    after: list[int] = tokenizer(text.rpartition("@@")[2].strip(), add_special_tokens=False)["input_ids"][:1]
    added = tokenizer.added_tokens_decoder
    return next((i for i in after if i in added and added[i].special), None)
