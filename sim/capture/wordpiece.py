"""The uncased WordPiece tokenizer of BERT models."""

import unicodedata
from pathlib import Path

__all__ = ["WordPiece"]

_MAX_WORD_CHARS = 100
"""BERT gives up on longer words: they become the unknown token."""

_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))
"""Code points that BERT makes words of their own."""


def _is_punctuation(char):
    # Unlike Unicode, BERT counts every ASCII symbol ("$", "+", "~") as punctuation.
    is_ascii_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return is_ascii_symbol or unicodedata.category(char).startswith("P")


def _is_space(char):
    return char in "\t\n\r" or unicodedata.category(char).startswith("Z")


def _is_dropped(char):
    return char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co")


def _is_ideograph(char):
    return any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)


class WordPiece:
    """Splits text into the longest pieces that a vocabulary knows.

    Text is lower-cased and loses its accents; whitespace, punctuation and ideographs bound words.
    Each word is split greedily from its start, later pieces carrying the ``##`` prefix; a word
    with a part that no piece matches becomes one unknown token.

    Parameters
    ----------
    vocabulary : :class:`list` of :class:`str`
        Pieces in the order of their ids; must hold ``[CLS]``, ``[SEP]`` and ``[UNK]``.
    """

    def __init__(self, vocabulary):
        self._ids = {piece: index for index, piece in enumerate(vocabulary)}
        missing = [piece for piece in ("[CLS]", "[SEP]", "[UNK]") if piece not in self._ids]
        if missing:
            raise ValueError(f"Vocabulary must hold [CLS], [SEP] and [UNK], but lacks {missing!r}")
        self._pieces = tuple(vocabulary)

    @classmethod
    def from_file(cls, path):
        """Reads a vocabulary of one piece per line."""
        return cls(Path(path).read_text(encoding="utf-8").splitlines())

    @property
    def pieces(self):
        """Pieces in the order of their ids."""
        return self._pieces

    def encode(self, text, *, token_count=None):
        """Token ids of a text between ``[CLS]`` and ``[SEP]``.

        With ``token_count`` the text is cut so that exactly that many ids result; a text that is
        too short for it raises :exc:`ValueError`.
        """
        ids = [index for word in self._words(text) for index in self._split(word)]
        if token_count is not None:
            if len(ids) < token_count - 2:
                raise ValueError(f"Text must be at least {token_count - 2} tokens long, "
                                 f"not {len(ids)}")
            ids = ids[:token_count - 2]
        return [self._ids["[CLS]"], *ids, self._ids["[SEP]"]]

    def _words(self, text):
        text = "".join(" " if _is_space(char) else char for char in text)
        text = "".join(char for char in text if not _is_dropped(char))
        # Decomposed, an accented letter is a letter and its mark; the mark is left out.
        decomposed = unicodedata.normalize("NFD", text)
        # Lower-cased one by one: str.lower() would treat a sigma that ends a word differently.
        bare = "".join(char.lower() for char in decomposed if unicodedata.category(char) != "Mn")
        word = ""
        for char in bare:
            if char != " " and not _is_punctuation(char) and not _is_ideograph(char):
                word += char
                continue
            if word:
                yield word
                word = ""
            if char != " ":
                yield char
        if word:
            yield word

    def _split(self, word):
        if len(word) > _MAX_WORD_CHARS:
            return [self._ids["[UNK]"]]
        ids, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                index = self._ids.get(prefix + word[start:end])
                if index is not None:
                    break
            else:
                return [self._ids["[UNK]"]]
            ids.append(index)
            start = end
        return ids
