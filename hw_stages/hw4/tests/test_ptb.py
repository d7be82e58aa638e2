"""Dictionary, Corpus, batchify and get_batch on short texts made for the test."""

import tempfile
from pathlib import Path

import numpy as np

from needle_course.testing import close, equal, graded

TRAIN = " the cat sat \n\n on the  mat\nthe end"  # an empty line, no newline at the end
TEST = "the dog sat\nthe cat\n"


def corpus_in(ndl, texts, max_lines=None):
    """Return a Corpus of two texts, written to a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(("train.txt", "test.txt"), texts, strict=True):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        if max_lines is None:
            return ndl.data.Corpus(folder)
        return ndl.data.Corpus(folder, max_lines=max_lines)


def numbered(texts, max_lines=None):
    """Return the words in the order of their first sight, and each text's numbers."""
    words, parts = [], []
    for text in texts:
        part = []
        for line in text.splitlines()[:max_lines]:
            for word in [*line.split(), "<eos>"]:
                if word not in words:
                    words.append(word)
                part.append(words.index(word))
        parts.append(part)
    return words, *parts


@graded("hw4.ptb::dictionary")
class Words:
    """add_word numbers words in the order of their first sight and says known numbers again."""

    def inputs(rng):
        return {"letters": rng.integers(0, 8, 40)}

    def probe(ndl, inputs):
        dictionary = ndl.data.Dictionary()
        words = [f"word{letter}" for letter in inputs["letters"]]
        lengths = [len(dictionary)]
        numbers = [dictionary.add_word(word) for word in words]
        return {
            "numbers": numbers,
            "lengths": [*lengths, len(dictionary)],
            "idx2word": dictionary.idx2word,
            "word2idx": dictionary.word2idx,
        }

    def check(inputs, outputs):
        words = list(dict.fromkeys(f"word{letter}" for letter in inputs["letters"]))
        expected = [words.index(f"word{letter}") for letter in inputs["letters"]]
        equal("the numbers that add_word returned", outputs["numbers"], expected)
        equal("the lengths before and after", outputs["lengths"], [0, len(words)])
        equal("idx2word", outputs["idx2word"], words)
        equal("word2idx", outputs["word2idx"], {word: i for i, word in enumerate(words)})


@graded("hw4.ptb::corpus")
class CorpusOfTwoTexts:
    """Every line ends in <eos>, the empty and the last one too; both texts share numbers."""

    def inputs(rng):
        return {}

    def probe(ndl, inputs):
        corpus = corpus_in(ndl, (TRAIN, TEST))
        return {
            "train": corpus.train,
            "test": corpus.test,
            "words": corpus.dictionary.idx2word,
            "count": len(corpus.dictionary),
        }

    def check(inputs, outputs):
        words, train, test = numbered((TRAIN, TEST))
        equal("the words", outputs["words"], words)
        equal("len(dictionary)", outputs["count"], len(words))
        equal("train", outputs["train"], train)
        equal("test", outputs["test"], test)


@graded("hw4.ptb::max_lines")
class MaxLines:
    """max_lines counts the lines of each file that are read."""

    def inputs(rng):
        return {}

    def probe(ndl, inputs):
        one, three = (corpus_in(ndl, (TRAIN, TEST), lines) for lines in (1, 3))
        return {"one": (one.train, one.test), "three": (three.train, three.test)}

    def check(inputs, outputs):
        equal("one line of each", outputs["one"], numbered((TRAIN, TEST), 1)[1:])
        equal("three lines of each", outputs["three"], numbered((TRAIN, TEST), 3)[1:])


@graded("hw4.ptb::batchify")
class Batchify:
    """Each column reads on as text; what does not fill a row is left out."""

    def inputs(rng):
        return {"data": [int(number) for number in rng.permutation(26)]}

    def probe(ndl, inputs):
        batchify = ndl.data.batchify
        place = {"device": ndl.cpu(), "dtype": "float32"}
        return {
            "alphabet": batchify(list(range(26)), 4, **place),
            "random": batchify(inputs["data"], 3, **place),
            "one": batchify(inputs["data"], 1, **place),
            "is_numpy": isinstance(batchify(inputs["data"], 2, **place), np.ndarray),
        }

    def check(inputs, outputs):
        equal("that it is a numpy array", outputs["is_numpy"], True)
        expected = np.arange(24).reshape(4, 6).T
        close("26 words in 4 columns", outputs["alphabet"], expected, dtype="float32")
        data = np.array(inputs["data"])
        close("26 words in 3 columns", outputs["random"], data[:24].reshape(3, 8).T)
        close("26 words in 1 column", outputs["one"], data.reshape(26, 1))


@graded("hw4.ptb::get_batch")
class GetBatch:
    """Inputs are rows i to i + L, targets the rows below them; the last window is short."""

    def inputs(rng):
        return {"data": rng.permutation(26)[:24].reshape(4, 6).T.astype(np.float32)}

    def probe(ndl, inputs):
        outputs = {}
        for name, i, bptt in (("first", 0, 4), ("middle", 1, 3), ("last", 4, 4), ("long", 0, 90)):
            x, y = ndl.data.get_batch(inputs["data"], i, bptt, device=ndl.cpu(), dtype="float32")
            outputs[name] = x.numpy(), y.numpy()
        outputs["kinds"] = isinstance(x, ndl.Tensor), isinstance(y, ndl.Tensor), x.dtype
        return outputs

    def check(inputs, outputs):
        data = inputs["data"]
        equal("that both are Tensors, and the dtype", outputs["kinds"], (True, True, "float32"))
        for name, i, stop in (("first", 0, 4), ("middle", 1, 4), ("last", 4, 5), ("long", 0, 5)):
            x, y = outputs[name]
            close(f"the inputs of the {name} window", x, data[i:stop])
            close(f"the targets of the {name} window", y, data[i + 1 : stop + 1].reshape(-1))
