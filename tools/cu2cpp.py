"""Rewrite CUDA C++ so that an ordinary C++ compiler takes it: `cu2cpp.py INPUT OUTPUT`.

Kernel launches become calls of the emulator's runtime, `__shared__` variables references into a
block's shared memory; all else stays as it is, on the same lines. src/cuda_emulator/README.md shows
what comes out; include/cuda_emulator/launch.h declares what the rewritten code calls.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUNTIME = "::needle::emulator::"
PREFIX = "needle_"  # of names that are made here

# Longer alternatives first. Comments, white space and `#error` texts are no tokens; an apostrophe
# that opens no character stands alone, as in the text that an #if leaves out.
TOKEN = re.compile(
    r"""
    (?P<skip>   \s+ | \\\r?\n
              | //(?:\\\r?\n|[^\n])*
              | /\*.*?\*/
              | ^[ \t]*\#[ \t]*(?:error|warning|pragma)\b(?:\\\r?\n|[^\n])* )
  | (?P<string> (?:u8|[uUL])?R"(?P<fence>[^()\\\s"]*)\(.*?\)(?P=fence)"
              | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
  | (?P<char>   (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
  | (?P<number> \.?[0-9](?:[eEpP][+-]|'?[\w.])* )
  | (?P<word>   [A-Za-z_$][\w$]* )
  | (?P<sign>   <<< | >>> | :: | -> | . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

CLOSING = {"(": ")", "[": "]", "{": "}"}
OPENING = {closing: opening for opening, closing in CLOSING.items()}

# Words of a declaration that parentheses may follow; the variable's name is none of them.
WORDS_WITH_PARENTHESES = {"__attribute__", "__align__", "alignas", "decltype", "typeof"}


class SourceError(Exception):
    """Text that cannot be rewritten, with its file and line."""


@dataclass(frozen=True)
class Token:
    """One token, and where it stands in the text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Edit:
    """A replacement of text[start:end]."""

    start: int
    end: int
    text: str


class Source:
    """The tokens of one file, and the edits made so far."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.edits: list[Edit] = []
        self.tokens = list(self._read())
        self.partner = self._match_brackets()

    def error(self, position: int, message: str) -> SourceError:
        """Return the error `path:line: message` for a place in the text."""
        line = self.text.count("\n", 0, position) + 1
        return SourceError(f"{self.path}:{line}: {message}")

    def _read(self) -> Iterator[Token]:
        position = 0
        while position < len(self.text):
            match = TOKEN.match(self.text, position)
            if match is None or match.lastgroup is None:  # the last alternative takes anything
                raise self.error(position, "no token begins here")
            kind = "string" if match.lastgroup == "fence" else match.lastgroup
            if kind == "sign" and match[0] == '"':
                raise self.error(position, "this string is not closed")
            if kind == "sign" and self.text.startswith("/*", position):
                raise self.error(position, "this comment is not closed")
            if kind != "skip":
                yield Token(kind, match[0], position, match.end())
            position = match.end()

    def _match_brackets(self) -> dict[int, int]:
        """Pair each bracket's token with its partner's, leaving out those that have none.

        Both branches of an #if may open the same bracket: only a launch or a declaration that needs
        the partner makes a missing one an error.
        """
        partner = {}
        open_brackets: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in CLOSING:
                open_brackets.append(i)
            elif token.text in OPENING:
                for at in range(len(open_brackets) - 1, -1, -1):
                    if self.tokens[open_brackets[at]].text == OPENING[token.text]:
                        partner[i] = open_brackets[at]
                        partner[open_brackets[at]] = i
                        del open_brackets[at:]
                        break
        return partner

    def is_sign(self, i: int, *texts: str) -> bool:
        """Tell whether token i is one of these signs; False beyond either end."""
        return (
            0 <= i < len(self.tokens)
            and self.tokens[i].kind == "sign"
            and self.tokens[i].text in texts
        )

    def is_word(self, i: int, *texts: str) -> bool:
        """Tell whether token i is a word (one of these, if any are given)."""
        if not 0 <= i < len(self.tokens) or self.tokens[i].kind != "word":
            return False
        return not texts or self.tokens[i].text in texts

    def between(self, first: int, last: int) -> str:
        """Return the text from token `first` to token `last` on one line, without comments."""
        parts = []
        for i in range(first, last + 1):
            token = self.tokens[i]
            if i > first and self.tokens[i - 1].end < token.start:
                parts.append(" ")
            parts.append(token.text)
        return "".join(parts)

    def newlines(self, start: int, end: int) -> str:
        """Return the line ends of a stretch of text, each with the backslash that it has there."""
        return "".join(re.findall(r"\\?\r?\n", self.text[start:end]))

    def result(self) -> str:
        """Return the text with all edits."""
        parts = []
        position = 0
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end)):
            if edit.start < position:
                raise self.error(edit.start, "a launch inside a launch")
            parts += [self.text[position : edit.start], edit.text]
            position = edit.end
        parts.append(self.text[position:])
        return "".join(parts)


# --- launches -------------------------------------------------------------------------------------


def start_of_template_arguments(source: Source, last: int) -> int:
    """Return the token `<` that belongs to the `>` (or the `>>>`) at token `last`."""
    depth = 0
    i = last
    while i >= 0:
        if source.is_sign(i, ")", "]", "}"):
            i = source.partner.get(i, -1)
        elif source.is_sign(i, ">", ">>>"):
            depth += len(source.tokens[i].text)
        elif source.is_sign(i, "<"):
            depth -= 1
            if depth == 0:
                return i
        elif source.is_sign(i, ";", "{", "<<<"):
            break
        i -= 1
    raise source.error(source.tokens[last].start, "no `<` belongs to the `>` before `<<<`")


def start_of_kernel(source: Source, launch: int) -> int:
    """Return the first token of the kernel's name before the `<<<` at token `launch`."""
    i = launch - 1
    if source.is_sign(i, ")"):  # (*pointer)<<<...>>>(...)
        opening = source.partner.get(i)
        if opening is None or source.is_word(opening - 1):
            raise source.error(source.tokens[launch].start, "`<<<` needs a kernel's name before it")
        return opening
    while True:
        if source.is_sign(i, ">", ">>>"):
            i = start_of_template_arguments(source, i) - 1
        if not source.is_word(i):
            raise source.error(source.tokens[launch].start, "`<<<` needs a kernel's name before it")
        if source.is_word(i - 1, "template"):  # traits::template kernel<T>
            i -= 1
        if not source.is_sign(i - 1, "::"):
            return i
        if not (source.is_word(i - 2) or source.is_sign(i - 2, ">")):
            return i - 1  # ::kernel
        if source.is_word(i - 2, "return", "else", "do"):
            return i - 1
        i -= 2


def end_of_shape(source: Source, launch: int) -> int:
    """Return the `>>>` that closes the `<<<` at token `launch`: the first outside of brackets."""
    i = launch + 1
    while i < len(source.tokens):
        if source.is_sign(i, "(", "[", "{"):
            i = source.partner.get(i, len(source.tokens))
        elif source.is_sign(i, ">>>") and source.is_sign(i + 1, "("):
            return i
        elif source.is_sign(i, ";", ")", "}", "<<<"):
            break
        i += 1
    raise source.error(
        source.tokens[launch].start, "`<<<` has no `>>>` with the arguments in (...) behind it"
    )


def rewrite_launch(source: Source, launch: int) -> None:
    """Turn `kernel<T><<<shape>>>(arguments)` into a call of the runtime."""
    first = start_of_kernel(source, launch)
    closing = end_of_shape(source, launch)
    opening = closing + 1
    end = source.partner.get(opening)
    tokens = source.tokens
    if end is None:
        raise source.error(tokens[opening].start, "this launch's `(` is not closed")
    if closing == launch + 1:
        raise source.error(tokens[launch].start, "`<<<>>>` needs a grid and a block")
    kernel = source.between(first, launch - 1)
    lines = source.newlines(tokens[first].start, tokens[launch].end)
    before = (
        f"{RUNTIME}launch({{NEEDLE_EMULATOR_TEXT({kernel}), __FILE__, __LINE__}}, "
        f"{RUNTIME}LaunchShape({lines}"
    )
    # The first lambda calls the kernel, deducing template arguments as the launch would; the second
    # gives its address where the name alone tells which function is meant.
    behind = (
        f"), [=](const auto&... {PREFIX}argument) {{ {kernel}({PREFIX}argument...); }}, "
        f"[=](auto {PREFIX}address) -> decltype({PREFIX}address({kernel})) "
        f"{{ return {PREFIX}address({kernel}); }}"
    )
    arguments = "" if end == opening + 1 else ", "
    gap = source.newlines(tokens[closing].end, tokens[opening].end)
    source.edits.append(Edit(tokens[first].start, tokens[launch].end, before))
    source.edits.append(Edit(tokens[closing].start, tokens[opening].end, behind + gap + arguments))


# --- shared memory --------------------------------------------------------------------------------


def function_scopes(source: Source) -> list[bool]:
    """Tell for each token whether it stands inside of a function."""
    inside = []
    scopes: list[tuple[int, bool]] = []  # the token that closes it; whether it is a function's
    for i in range(len(source.tokens)):
        while scopes and i >= scopes[-1][0]:
            scopes.pop()
        in_function = bool(scopes) and scopes[-1][1]
        inside.append(in_function)
        if source.is_sign(i, "{"):
            body = in_function or not opens_declarations(source, i)
            scopes.append((source.partner.get(i, len(source.tokens)), body))
    return inside


def opens_declarations(source: Source, brace: int) -> bool:
    """Tell whether a `{` belongs to a namespace, an extern "C" or a class."""
    i = brace - 1
    while i >= 0 and not source.is_sign(i, ";", "{", "}"):
        if source.is_sign(i, ")"):  # a function's parameters, or alignas(...) of a class
            opening = source.partner.get(i, 0)
            if not source.is_word(opening - 1, *WORDS_WITH_PARENTHESES):
                return False
            i = opening
        elif source.is_word(i, "namespace", "class", "struct", "union", "enum"):
            return True
        elif source.is_word(i, "extern"):
            return source.tokens[i + 1].kind == "string"
        i -= 1
    return False


def start_of_declaration(source: Source, shared: int) -> int:
    """Return the first token of the declaration that `__shared__` at this token is part of."""
    i = shared
    while source.is_word(i - 1, "extern", "static", "volatile", "const"):
        i -= 1
    if i > 0 and not source.is_sign(i - 1, ";", "{", "}", ":", ")"):
        raise source.error(
            source.tokens[shared].start, "`__shared__` must begin the declaration of a variable"
        )
    return i


def end_of_declaration(source: Source, shared: int) -> int:
    """Return the `;` of the declaration that `__shared__` at this token is part of."""
    i = shared + 1
    while i < len(source.tokens) and not source.is_sign(i, ";"):
        if source.is_sign(i, "(", "[", "{"):
            i = source.partner.get(i, len(source.tokens))
        elif source.is_sign(i, ")", "]", "}") or source.is_word(i, "__shared__"):
            break
        i += 1
    if not source.is_sign(i, ";"):
        raise source.error(source.tokens[shared].start, "no `;` ends this `__shared__` declaration")
    return i


def variable_names(source: Source, shared: int, end: int) -> list[int]:
    """Return the tokens that name the variables of a `__shared__` declaration."""
    names: list[int] = []
    name = None  # the latest word that may be a name
    i = shared + 1
    while i <= end:
        if source.is_word(i, *WORDS_WITH_PARENTHESES) and source.is_sign(i + 1, "("):
            i = source.partner[i + 1]
        elif source.is_word(i):
            name = i
        elif source.is_sign(i, "<") and not names:  # template arguments, in the type only
            i = end_of_template_arguments(source, i)
            name = None
        elif source.is_sign(i, "=", "{"):
            raise source.error(
                source.tokens[i].start,
                "a `__shared__` variable cannot be initialised; let one thread assign it, "
                "then call __syncthreads()",
            )
        elif source.is_sign(i, "[", ",", ";"):
            if name is not None:
                names.append(name)
            name = None
            if source.is_sign(i, "["):
                i = source.partner[i]
        i += 1
    if not names:
        raise source.error(source.tokens[shared].start, "this `__shared__` declares no variable")
    return names


def end_of_template_arguments(source: Source, first: int) -> int:
    """Return the token `>` that belongs to the `<` at token `first`."""
    depth = 0
    i = first
    while i < len(source.tokens) and not source.is_sign(i, ";"):
        if source.is_sign(i, "(", "[", "{"):
            i = source.partner.get(i, len(source.tokens))
        elif source.is_sign(i, "<"):
            depth += 1
        elif source.is_sign(i, ">", ">>>"):
            depth -= len(source.tokens[i].text)
            if depth <= 0:
                return i
        i += 1
    raise source.error(source.tokens[first].start, "no `>` belongs to this `<`")


def rewrite_shared(source: Source, shared: int, in_function: bool) -> None:
    """Turn a `__shared__` declaration into types, and references into the block's memory."""
    tokens = source.tokens
    if not in_function:
        raise source.error(
            tokens[shared].start,
            "`__shared__` outside of a function; declare the variable inside the kernel",
        )
    first = start_of_declaration(source, shared)
    end = end_of_declaration(source, shared)
    names = variable_names(source, shared, end)
    dynamic = any(source.is_word(i, "extern") for i in range(first, shared))
    for i in names:
        check_size(source, i, dynamic)
    statements = [typedef(source, first, end, names)]
    statements += [reference(tokens[i].text, dynamic) for i in names]
    lines = source.newlines(tokens[first].start, tokens[end].end)
    source.edits.append(Edit(tokens[first].start, tokens[end].end, " ".join(statements) + lines))


def check_size(source: Source, name: int, dynamic: bool) -> None:
    """Refuse `extern` with a size, and `[]` without `extern`."""
    unsized = source.is_sign(name + 1, "[") and source.is_sign(name + 2, "]")
    if dynamic == unsized:
        return
    token = source.tokens[name]
    if dynamic:
        raise source.error(token.start, f"`extern __shared__` needs an empty size: {token.text}[]")
    raise source.error(
        token.start, f"`__shared__ {token.text}[]` needs a size, or `extern` for dynamic memory"
    )


def typedef(source: Source, first: int, end: int, names: list[int]) -> str:
    """Return the declaration as one of types, each with the variable's name after a prefix."""
    words = ["typedef"]
    i = first
    while i < end:
        if source.is_word(i, "alignas"):  # a typedef has no room for it
            closing = source.partner[i + 1]
            words.append(f"__attribute__((aligned{source.between(i + 1, closing)}))")
            i = closing
        elif not source.is_word(i, "extern", "static", "__shared__"):
            words.append((PREFIX if i in names else "") + source.tokens[i].text)
        i += 1
    return " ".join(words) + ";"


def reference(name: str, dynamic: bool) -> str:
    """Return the declaration of one variable, a reference of the type that was made for it."""
    kind = f"{PREFIX}{name}"
    if dynamic:
        return f"{kind}& {name} = *static_cast<{kind}*>({RUNTIME}dynamic_shared());"
    place = f"{PREFIX}place_of_{name}"
    return (
        f'static {RUNTIME}SharedVariable {place}{{"{name}", sizeof({kind}), alignof({kind})}}; '
        f"{kind}& {name} = *static_cast<{kind}*>({place}.address());"
    )


# --- whole files ----------------------------------------------------------------------------------


def rewrite(text: str, path: str) -> str:
    """Return CUDA C++ as C++; `path` is the name that messages of the compiler will show.

    Raises SourceError for text that it does not understand.
    """
    source = Source(text, path)
    inside: list[bool] | None = None
    for i in range(len(source.tokens)):
        if source.is_sign(i, "<<<"):
            rewrite_launch(source, i)
        elif source.is_word(i, "__shared__"):
            if inside is None:
                inside = function_scopes(source)
            rewrite_shared(source, i, inside[i])
        elif source.is_word(i, "__noinline__") and not source.is_sign(i - 1, "("):
            # No macro can stand for this word: the standard library uses it in attributes.
            token = source.tokens[i]
            source.edits.append(Edit(token.start, token.end, "__attribute__((noinline))"))
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{quoted}"\n' + source.result()


def main(arguments: list[str] | None = None) -> int:
    """Rewrite one file; the exit code is 1 if that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args(arguments)
    try:
        text = rewrite(options.input.read_text(encoding="utf-8"), str(options.input))
    except (OSError, SourceError) as error:
        sys.stderr.write(f"cu2cpp: {error}\n")
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
