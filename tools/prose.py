# SPDX-License-Identifier: Apache-2.0
"""The prose of the tree: comments and Markdown, and what is plainly wrong in it.

The rules about words are only for patterns that no careful writer uses, for example a bare "who" as the subject. What
needs judgement is left to readers.
"""

import io
import re
import tokenize
from bisect import bisect_right
from pathlib import Path

WIDTH = 120

WORDS = [(re.compile(pattern), what) for pattern, what in (
    # A question or "those who ..." is none of these.
    (r"(?:^|[.;:!]\s)\s*[Ww]ho\b(?![^.;]*\?)", "a bare `who` as the subject: a thread that, whoever"),
    # "Of the user's word" is no double possessive: a noun follows.
    (r"\b[Oo]f the \w+'s(?=$|[,.;:)]|\s\(|\s(?:and|or|but|that|which|is|are|was|were|has|have|had|in|at|on)\b)",
     "a double possessive: `of the caller`, not `of the caller's`"),
    (r"\bthe library's own\b(?! sources)", "`the library's own`: say whose it is in another way"),
    (r"\b[Nn]ot promised: that\b", "`Not promised: that`: say what may happen"),
    (r"\b(?:goes|go|went|gone) on\b", "`goes on`: continues, resumes, returns"),
    # What went in may have come out.
    (r"\bha(?:s|ve) come\b(?! (?:out|back|from)\b)", "`has come`: is there, has passed, has arrived"),
    (r"\b(?:is|are|was|were|be|been) to be had\b|\b(?:is|are|was|were|been) had\b", "`is (to be) had`: is available, is claimed"),
    (r"\bstands (?:in|at|on|there|here|behind|beside|above|below|alone|under)\b", "`stands` for `is`"),
    # What is beside a thing is next to it.
    (r"\bbeside (?:sockets|(?:local )?events|semaphores|timers|channels|others?|another|everything|threading)\b",
     "`beside`: alongside, together with"),
    (r"\b(?:anew|in vain)\b", "`anew`, `in vain`: again, without effect"),
    (r"\blets go\b", "`lets go`: releases, has released"),
    (r"\bby itself\b", "`by itself`: on its own, automatically"),
    (r"\balso[.;]", "`also` at the end"),
    (r"\b[Mm]eanwhile[^.;]*:", "`meanwhile ...:`: say while what"),
)]
# How invariants were cited before they were named after their files. Not matched: P1, P2 ... are the proofs of
# docs/proofs.md, and C11 is the language.
OLD_LABEL = re.compile(r"(?<![\w.'\"-])(?!C11\b)[A-OQ-Z][1-9]\d?(?![\w.'\"+-]*\w)")

# Names that the library no longer uses, so that no comment explains a thing by them.
OLD_NAME = re.compile(r"\b(errands?|many_wait|member_set|bucket_lock|critical_section|standing[ _]polls?|one_copy|"
                      r"sleeper_slots|errno_kept|resuming_later|alarm_clock|unpin(?:s|ned)?|async_waiting|call_off|"
                      r"look_room|polling_room|async_room|wait_list|waiting_list|listed_wait|turn_credit|yield_credit|"
                      r"activity_scope|shared_view|kept_token_wait)\b")

CITATION = re.compile(r"(?<![\w./-])([a-z][a-z0-9_]*)-([1-9]\d?)(?![\w./-]*\w)")
NAMED_PATH = re.compile(
    r"(?<![\w/.-])((?:docs|src|include|tests|tools|cmake|lab|examples|proofs)/[\w./*-]*"
    r"(?:\.(?:cpp|hpp|h|py|md|txt|cmake|toml|json|pml|js|html)(?!\w|\.\w)|(?<=docs/)[\w-]+\b|(?<=docs/decisions/)[\w-]+\b))")
C_TOKEN = re.compile(
    r"R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|(//[^\n]*)|(/\*.*?\*/)", re.DOTALL)
HASH_COMMENT = re.compile(r"(?:^|\s)#+(?!!)\s?(.*)$")
NAME = re.compile(r'P\d+\."(.*?)" = ')
FENCE = re.compile(r"^\s*(```|~~~)")
BULLET = re.compile(r"^\s*(?:[-*]|\d+[.)])\s")
CODE = re.compile(r"`[^`]*`")
TARGET = re.compile(r"\]\([^)]*\)")


def c_comments(text):
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for match in C_TOKEN.finditer(text):
        body = match[2] or match[3]
        if body:
            number = bisect_right(starts, match.start())
            for offset, line in enumerate(body.removesuffix("*/").split("\n")):
                own_line = offset > 0 or not text[starts[number - 1]:match.start()].strip()
                yield number + offset, re.sub(r"^\s*(?://+|/?\*+)\s?", "", line), own_line


def python_comments(text):
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.string.lstrip("# "), not token.line[:token.start[1]].strip()
        elif token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.ENCODING):
            for offset, line in enumerate(token.string.strip("\"'").split("\n")):
                yield token.start[0] + offset, line.strip(), True
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type


def hash_comments(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = HASH_COMMENT.search(line)
        if match:
            yield number, match[1], not line[:match.start()].strip()


def toml_prose(text):
    """Comments, and the names of mutants, which are sentences."""
    for number, line in enumerate(text.splitlines(), 1):
        match = NAME.match(line) or re.match(r"#\s?(.*)$", line)
        if match:
            yield number, match[1], not NAME.match(line)


def markdown_prose(text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    ./") and not line.lstrip().startswith("<!--"):
            yield number, line, True


READERS = {".cpp": c_comments, ".hpp": c_comments, ".h": c_comments, ".pml": c_comments, ".js": c_comments,
           ".rs": c_comments, ".go": c_comments, ".java": c_comments, ".cs": c_comments,
           ".py": python_comments, ".md": markdown_prose, ".cmake": hash_comments, ".txt": hash_comments,
           ".toml": toml_prose}


def prose_of(path, text):
    """(line, text, whether nothing else is in that line) of each line of prose in a file."""
    if path.suffix == "" and not text.startswith("#!"):
        return []
    reader = READERS.get(path.suffix, hash_comments if path.suffix == "" else None)
    return list(reader(text)) if reader else []


def paragraphs(lines):
    """Lines that are one text, joined: (text, the line of each position as a function)."""
    group = []

    def done():
        offsets, position = [], 0
        for _, line in group:
            offsets.append(position)
            position += len(line) + 1
        numbers = [number for number, _ in group]
        return " ".join(line for _, line in group), lambda at: numbers[bisect_right(offsets, at) - 1]

    for number, line, own_line in lines:
        follows = group and own_line and number == group[-1][0] + 1 and not BULLET.match(line)
        if group and not follows:
            yield done()
            group = []
        if line.strip():
            group.append((number, line.strip()))
        elif group:
            yield done()
            group = []
    if group:
        yield done()


def words_of(line):
    return TARGET.sub("]", CODE.sub("`", line))


def check_words(path, text):
    """What is plainly wrong in the words of a file's prose, and lines of prose that are too long."""
    lines = prose_of(path, text)
    for paragraph, line_at in paragraphs([(number, words_of(line), own) for number, line, own in lines]):
        reported = set()
        for pattern, what in WORDS:
            for match in pattern.finditer(paragraph):
                number = line_at(match.end() - 1)
                if number not in reported:
                    reported.add(number)
                    yield number, what
    all_lines = text.splitlines()
    for number in sorted({number for number, _, _ in lines}):
        line = all_lines[number - 1]
        if len(line) > WIDTH and not line.lstrip().startswith("|") and " " in line[:WIDTH].strip():
            yield number, f"prose of more than {WIDTH} columns"


# Invariants


def labels_of(name):
    """What an invariant of this file may be called by: its stem, and the stem with its folder's name before it. A
    folder `src` inside another takes the name of the other."""
    path = Path(name)
    folder = path.parent.parent if path.parent.name == "src" else path.parent
    return {path.stem, f"{folder.name}_{path.stem}"}


def invariants_in(name, text):
    """The numbered invariants that a file defines, in the comment that it begins with: (label, line)."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("//"):
            return
        match = re.match(r"//\s+([a-z][a-z0-9_]*)-([1-9]\d?)(?=[\s:.])", line)
        if match and match[1] in labels_of(name):
            yield f"{match[1]}-{match[2]}", number


def check_citations(path, text, known, names):
    """Citations that resolve to no invariant. `names` are all that an invariant could be called by."""
    for number, line, _ in prose_of(path, text):
        for match in CITATION.finditer(line):
            if match[1] in names and match[0] not in known:
                yield number, f"cites {match[0]}, which no file of that name states"


def check_old_names(path, text):
    for number, line, _ in prose_of(path, text):
        for match in OLD_NAME.finditer(line):
            yield number, f"the old name {match[0]}"


def check_old_labels(path, text):
    for number, line, _ in prose_of(path, text):
        for match in OLD_LABEL.finditer(words_of(line)):
            yield number, f"the label {match[0]}: invariants are cited as `lot-3`, by file and number"


# Paths


def check_paths(path, text, root):
    """Files that prose names, by their paths in the tree, and that are not there."""
    for number, line, _ in prose_of(path, text):
        for match in NAMED_PATH.finditer(line):
            named = match[1].rstrip(".")
            found = any(root.glob(named)) if "*" in named else (root / named).exists()
            if not found and not (path.parent / named).exists():
                yield number, f"names {named}, which is not there"


# Links


def anchors_of(text):
    """The anchors that a Markdown page has, as GitHub makes them of its headings."""
    seen, anchors = {}, set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for _, line, _ in markdown_prose(text):
        match = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if match:
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            seen[slug] = seen.get(slug, -1) + 1
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
    return anchors


LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)")


def check_links(path, text):
    """Relative links of a page that lead nowhere."""
    for number, line, _ in markdown_prose(text):
        for target, anchor in LINK.findall(CODE.sub("", line)):
            page = path.parent / target if target else path
            if not page.exists():
                yield number, f"a link to {target}, which is not there"
            elif anchor and page.suffix == ".md" and anchor not in anchors_of(page.read_text()):
                yield number, f"a link to {target}#{anchor}, a heading that is not there"
