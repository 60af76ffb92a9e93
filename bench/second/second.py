#!/usr/bin/env python3
"""Measures the results of `condense compare` again, from bench/measures.md and the standard library alone.

    python3 second.py [--arena ARENA.json] REPORT.json OUTPUTS.jsonl [GOLD-FOLDER]

REPORT.json is written by --save, OUTPUTS.jsonl by --outputs; GOLD-FOLDER has the conversations of evidence:FOLDER. It prints
as JSON how many verdicts of the report, and of the pairs in ARENA.json, this program confirms:

  kept      is a gold turn or a line of an edit in the result? by question: the same number
  valid     does the result add faults, such as results without calls?
  value     anchors, user's words and shares of tokens at a cut: within 0.05
  ahead     is a program ahead of smart in needed text, user's words, lines edited next or gold turns: shown, the reverse
            shown, or neither; see ahead below

It shares no code with the program; the lists of function words and of extensions follow the program's, and how common a term is
comes with the session. Single values of the needed text differ by some hundredths; their differences are compared.
"""

import collections
import functools
import json
import math
import os
import re
import sys

FUNCTION = set(
    """a an the this that these those each every either neither some any no all both few many much more most other another such
    own same i me my mine we us our you your he him his she her it its they them their who whom whose which what where when why how
    there here am is are was were be been being have has had having do does did doing done will would shall should can could may
    might must and or but nor so yet for if then else than as because since while though although until unless whether of in on at
    by to from with without within into onto upon about above below under over between among through during before after against
    across along around behind near off out up down per via like not only also too very just now still again already ever never
    always often yes ok let s t re ve ll d m cannot""".split()
)
EXTENSIONS = set(
    """go py js ts tsx jsx mjs cjs rs c h cc cpp hpp cs java kt swift rb php pl sh bash lua r scala ex exs erl hs ml md txt rst json
    jsonl yaml yml toml ini cfg conf xml html htm css scss less svg csv sql proto vue svelte ipynb tf lock log env mod sum gz zip tar
    png jpg jpeg gif pdf patch diff snap tmpl mk gradle""".split()
)
CJK = "\u2e80-\ua4cf"
WORD = re.compile(rf"[{CJK}]|(?:(?![{CJK}])\w)+(?:[./-](?=[A-Za-z0-9_])(?:(?![{CJK}])\w)+)*")
SILENT = str.maketrans("", "", " \t\r\v\f\"'`{}[](),:;\\")


def folded(text):
    return " ".join(text.split())


@functools.cache
def same(line):
    """What two equal lines have in common; empty if there is no word in it."""
    out = line.translate(SILENT)
    return out if re.search(r"\w", out) else ""


def texts(message):
    return [p["text"] for p in message["parts"]]


def everything(messages):
    return "\n".join(t for m in messages for t in texts(m))


@functools.cache
def words(line):
    return [w.lower() for w in WORD.findall(line)]


def grams(items, n):
    return [tuple(items[i : i + n]) for i in range(len(items) - n + 1)]


@functools.cache
def lines_of(text):
    """Lines. JSON at the end of a line is a line for each value, with its key; a long line is several."""
    out = []
    for line in text.split("\n"):
        end = line.rstrip(" \r\t")
        at = min((i for i in (end.find("{"), end.find("[")) if i >= 0), default=-1)
        if len(end) >= 8 and end[-1] in "}]" and at >= 0 and '"' in end[at:]:
            try:
                value = json.loads(end[at:], object_pairs_hook=Pairs, parse_int=str, parse_float=str)
            except (ValueError, RecursionError):
                value = None
            if value is not None:
                if line[:at].strip():
                    out.append(line[:at].strip())
                for v in scalars(value, ""):
                    out.extend(lines_of(v))
                continue
        out.extend(pieces(line))
    return out


class Pairs(list):
    """The members of an object in order, repeated keys too."""


def scalars(value, key):
    if isinstance(value, Pairs):
        for k, v in value:
            yield from scalars(v, k + ": ")
    elif isinstance(value, list):
        for v in value:
            yield from scalars(v, "")
    else:
        yield key + {True: "true", False: "false", None: "null"}.get(value, value) if not isinstance(value, str) else key + value


def pieces(line):
    """A line above 400 bytes is cut after 160 to 320: at an escaped line end, a sentence, a clause, a word."""
    while len(line.encode()) > 400:
        head = line[:320]
        at = head.find("\\n")
        if at >= 0:
            yield head[:at]
            line = line[at + 2 :]
            continue
        cut = next((i for i in range(160, len(head)) if head[i - 1] in ";>" or head[i - 1] == "." and line[i : i + 1] == " "), 0)
        cut = cut or next((i for i in range(160, len(head)) if head[i - 1] in " ,"), 0) or len(head)
        yield line[:cut]
        line = line[cut:]
    if line:
        yield line


def part_lines(part):
    """The lines of a part; a call has its name before them."""
    return ([part["name"]] if part["type"] == "call" else []) + lines_of(part["text"])


CHUNK = re.compile(r"[A-Za-z0-9_./~@+#:\\-]+")
QUOTED = re.compile(r"""(?<![A-Za-z0-9_])(["'`])(.{3,99}?)\1""")


def path_of(chunk):
    """The base name of a path, of a folder its last two parts; None if it is no path."""
    i = chunk.find(":")
    if i > 1 and chunk[i : i + 3] != "://":
        chunk = chunk[:i]
    chunk = chunk.rstrip("/\\.")
    parts = re.split(r"[/\\]", chunk)
    base = parts[-1]
    if len(base) < 2 or not re.search("[A-Za-z]", base):
        return None
    stem, dot, ext = base.rpartition(".")
    if len(parts) == 1:
        return base if stem and ext in EXTENSIONS else None
    if stem and 0 < len(ext) <= 5 or not parts[-2]:
        return base
    return parts[-2] + "/" + base


@functools.cache
def units(line):
    return list(names_in(line))


def names_in(line):
    """The names of a line with their kinds and places: paths, identifiers, numbers, capitalised names, quoted phrases."""
    for c in CHUNK.finditer(line):
        text = c.group().rstrip(".:-#+@~\\")
        start = c.start() + len(text) - len(text.lstrip(":-#+@"))
        text = text.lstrip(":-#+@")
        if len(text) < 3:
            continue
        path = path_of(text)
        if path:
            yield ("path", path), start, start + len(text)
            continue
        if re.fullmatch(r"v?\d+(\.\d+)+", text):
            yield ("number", text.removeprefix("v")), start, start + len(text)
            continue
        for n in re.finditer(r"[A-Za-z0-9_][A-Za-z0-9_-]*", text):
            kind = name_of(n.group().rstrip("-"), line[: start + n.start()])
            if kind:
                yield kind, start + n.start(), start + n.end()
    for q in QUOTED.finditer(line):
        ws = words(q.group(2))
        if 2 <= len(ws) <= 8:
            yield ("quoted", " ".join(ws)), q.start(2), q.end(2)


def name_of(n, before):
    if re.fullmatch(r"\d{3,}", n) or not re.search("[A-Za-z]", n) and sum(c.isdigit() for c in n) >= 6:
        return "number", n
    if not re.search("[A-Za-z]", n):
        return None
    if re.fullmatch(r"(?=.*\d)[0-9a-f]{7,64}", n):
        return "number", n[:7]
    if len(n) >= 4 and re.search(r"[a-z][A-Z]|\d|[A-Za-z0-9]_[A-Za-z0-9_]|-", n):
        return "identifier", n
    if re.fullmatch(r"[A-Z][a-z]{2,}", n) and re.search(r"[A-Za-z0-9_,] +$", before):
        return "capitalised", n
    return None


class Cut:
    """What the agent needed after a cut: names, runs of four words, rare words; and lines quoted by its next edits."""

    def __init__(self, session, at, end):
        messages = session["messages"]
        self.prefix, future = messages[:at], messages[at:end]
        df = collections.Counter()
        self.places, self.trigrams, near = collections.defaultdict(list), set(), collections.defaultdict(set)
        for m in self.prefix:
            have = set()
            for p in m["parts"]:
                ls = [(same(x), x) for x in part_lines(p)]
                ls = [(k, x, words(x)) for k, x in ls if k]
                for i, (k, line, ws) in enumerate(ls):
                    if len(self.places[k]) < 32:
                        self.places[k].append((ls[i - 1][0] if i else None, ls[i + 1][0] if i + 1 < len(ls) else None))
                    names = {u for u, _, _ in units(line)}
                    have.update(names, grams(ws, 4), re.findall(r"\b[a-z]{5,}\b", line))
                    around = {w for j in range(max(0, i - 1), min(len(ls), i + 2)) for w in ls[j][2] if w not in FUNCTION} if names else ()
                    for n in names:
                        near[n].update(around)
                run = [w for _, _, ws in ls for w in ws]
                self.trigrams.update(grams(run, 3))
            df.update(have)
        size = max(1, len(self.prefix))
        idf = lambda k: min(1, max(0, math.log((1 + size) / (0.5 + k)) / math.log((1 + size) / 1.5)))
        seen, common = set(), session.get("common") or {}
        self.learn("\n".join([session.get("system", ""), *(session.get("tools") or [])]), seen)
        self.names, self.grams, self.rare = {}, set(), {}
        for m in future:
            found, new = {}, 0
            for p in m["parts"]:
                if not (p.get("typed") or p.get("agent")):
                    continue
                for line in lines_of(p["text"]):
                    ws = words(line)
                    for n, _, _ in units(line):
                        if n not in seen:
                            seen.add(n)
                            others = common.get(f"{n[0][0]}:{n[1]}", 0)
                            if df[n]:
                                found[n] = idf(df[n]) * (0.5 if n[0] == "capitalised" else 1) * max(0, 1 - others / 4)
                    for g in grams(ws, 4):
                        if g not in seen and sum(x in FUNCTION for x in g) <= 2:
                            seen.add(g)
                            if 0 < df[g] <= 3 and new < 60:
                                self.grams.add(g)
                                new += 1
                    for w in WORD.findall(line):
                        if w not in seen and re.fullmatch("[a-z]{5,}", w) and w not in FUNCTION:
                            seen.add(w)
                            if 0 < df[w] <= max(2, size / 10) and idf(df[w]) and common.get(w, 0) < 4:
                                self.rare[w] = idf(df[w])
            scale = min(1, 12 / max(1e-9, sum(found.values())))
            self.names.update((n, w * scale) for n, w in found.items() if w)
            for p in m["parts"]:
                self.learn("\n".join([p.get("name", ""), p["text"]]), seen)
        self.near = {n: near[n] for n in self.names}
        self.anchors = quoted_next(messages, at)
        self.said = []
        for m in self.prefix:
            for p in m["parts"]:
                if p["type"] == "text" and p.get("typed"):
                    for line in lines_of(p["text"]):
                        for sentence in re.split(r"(?<=[.!?])(?= |$)", line):
                            if len(words(sentence)) >= 3:
                                self.said.append(words(sentence))
        self.faults = faults(self.prefix)

    @staticmethod
    def learn(text, seen):
        for line in lines_of(text):
            seen.update((u for u, _, _ in units(line)), grams(words(line), 4), (w for w in WORD.findall(line) if re.fullmatch("[a-z]{5,}", w)))

    def measure(self, view):
        credit, found, there = collections.defaultdict(float), set(), set()
        for m in view:
            for p in m["parts"]:
                ls = [(same(x), x) for x in part_lines(p)]
                for _, x in ls:
                    there.update(g for g in grams(words(x), 4) if g in self.grams)
                ls = [(k, x) for k, x in ls if k]
                for i, (k, line) in enumerate(ls):
                    if k in self.places:
                        around = (ls[i - 1][0] if i else "", ls[i + 1][0] if i + 1 < len(ls) else "")
                        self.verbatim(k, line, around, credit, found)
                    else:
                        self.other(line, credit, found)
        out = {"kept_characters": len(everything(view)) / max(1, len(everything(self.prefix)))}
        parts = []
        if self.names:
            parts.append(sum(w * credit[n] for n, w in self.names.items()) / sum(self.names.values()))
        if len(self.grams) >= 8:
            parts.append(len(there) / len(self.grams))
        if len(self.rare) >= 5:
            parts.append(sum(w for x, w in self.rare.items() if x in found) / sum(self.rare.values()))
        if parts:
            out["panel"] = sum(parts) / len(parts)
        text = " ".join(folded(t) for m in view for t in texts(m))
        if len(self.anchors) >= 5:
            out["anchors"] = sum(a in text for a in self.anchors) / len(self.anchors)
        own = set()
        for m in view:
            for p in m["parts"]:
                if m["role"] == "user" and p["type"] == "text":
                    own.update(grams([w for line in lines_of(p["text"]) for w in words(line)], 3))
        if self.said:
            weight = lambda s: min(40, len(s))
            is_kept = lambda s: sum(g in own for g in grams(s, 3)) >= 0.8 * max(1, len(s) - 2)
            out["user"] = sum(weight(s) for s in self.said if is_kept(s)) / sum(weight(s) for s in self.said)
        out["faults"] = max(0, faults(view) - self.faults)
        return out

    def verbatim(self, key, line, around, credit, found):
        """A line of the prefix."""
        found.update(w for w in WORD.findall(line) if w in self.rare)
        best = run_credit(len(words(line)))
        for before, after in self.places[key]:
            best = max(best, 0.5 + 0.25 * (before is None or before == around[0]) + 0.25 * (after is None or after == around[1]))
        for n, _, _ in units(line):
            credit[n] = max(credit[n], best)

    def other(self, line, credit, found):
        """A line with runs of words of the prefix, or natural sentences."""
        spans = [(w.start(), w.end(), w.group()) for w in WORD.finditer(line)]
        low = [w.lower() for _, _, w in spans]
        known = [i for i, g in enumerate(grams(low, 3)) if g in self.trigrams]
        runs = []
        for i in known:
            if runs and runs[-1][1] == i + 1:
                runs[-1][1] = i + 2
            else:
                runs.append([i, i + 2])
        found.update(spans[j][2] for a, b in runs for j in range(a, b + 1) if spans[j][2] in self.rare)
        names = units(line)
        for a, b in runs:
            for n, start, end in names:
                if start >= spans[a][0] and end <= spans[b][1]:
                    credit[n] = max(credit[n], run_credit(b - a + 1))
        start = 0
        for stop in [*(e.end() for e in re.finditer(r"[.!?](?= |$)", line)), len(line)]:
            inside = [(a, b, w) for a, b, w in spans if a >= start and b <= stop]
            at = lambda a, b: any(s <= a and b <= e for _, s, e in names)
            if (
                len(inside) >= 8
                and 2 * sum(at(a, b) for a, b, _ in inside) <= len(inside)
                and 8 * sum(w.lower() in FUNCTION for _, _, w in inside) >= len(inside)
            ):
                found.update(w for _, _, w in inside if w in self.rare)
                for n, a, b in names:
                    if a < start or b > stop or n not in self.near:
                        continue
                    others = [w.lower() for s, e, w in inside if not (s >= a and e <= b) and w.lower() not in FUNCTION]
                    if sum(w in self.near[n] for w in others) >= 2:
                        credit[n] = 1
            start = stop


def run_credit(n):
    return 0.25 + 0.75 * min(1, (n - 6) / 16) if n >= 6 else 0


def plain_words(text):
    return re.findall(r"[^\W_]+", text.lower())


# Lower case, without hyphens and underscores.
OLD = ("oldstring", "oldstr", "oldtext", "oldsource", "oldcontent", "targetcontent", "search")


def old_text(value, key=""):
    """The text that the arguments of an edit replace."""
    if isinstance(value, dict):
        return "".join(old_text(value[k], k) for k in value)
    if isinstance(value, list):
        return "".join(old_text(v, key) for v in value)
    if not isinstance(value, str):
        return ""
    if key.lower().replace("_", "").replace("-", "") in OLD:
        return value + "\n"
    out, search = [], False
    patch = "*** Begin Patch" in value or "\n@@ " in value
    for line in value.split("\n"):
        if line.startswith("<<<<<<< SEARCH"):
            search = True
        elif line.startswith("======="):
            search = False
        elif search:
            out.append(line)
        elif patch and line[:1] in ("-", " ") and line and not line.startswith("---"):
            out.append(line[1:])
    return "".join(x + "\n" for x in out)


def quoted_next(messages, at):
    shown = lambda m: " ".join(folded(p["text"]) for p in m["parts"] if p["type"] != "call")
    before = " ".join(shown(m) for m in messages[:at])
    again, out = "", []
    for m in messages[at : at + 120]:
        for p in m["parts"]:
            if p["type"] != "call":
                continue
            try:
                old = old_text(json.loads(p["text"]))
            except ValueError:
                continue
            for line in map(folded, old.split("\n")):
                if len(line) >= 14 and line in before and line not in again and line not in out:
                    out.append(line)
        again += " " + shown(m)
    return out


def faults(messages):
    """Calls without results, results without calls before them, repeated identifiers, blank messages."""
    n, calls, results = 0, [], []
    for m in messages:
        if not any(p["text"].strip() or p["type"] != "text" for p in m["parts"]):
            n += 1
        for p in m["parts"]:
            if p["type"] == "call":
                n += p["id"] in calls
                calls.append(p["id"])
            elif p["type"] == "result":
                n += p["id"] not in calls or p["id"] in results
                results.append(p["id"])
    return n + sum(c not in results for c in set(calls))


def evidence(gold, view):
    """The number of gold turns or lines of each question that are in the result."""
    shown = lambda m: "\n".join(p["text"] for p in m["parts"] if p["type"] != "call")
    have, text = set(), " ".join(folded(shown(m)) for m in view)
    for m in view:
        ws = plain_words(shown(m))
        for n in (1, 2, 3):
            have.update(grams(ws, n))
    by_id = {m["id"]: m for m in gold["messages"]}
    out = {}
    for q in gold["questions"]:
        kept = sum(folded(line) in text for line in q.get("lines", []))
        for i in q.get("evidence", []):
            ws = plain_words(by_id[i]["text"])
            want = grams(ws, min(3, max(1, len(ws))))
            kept += sum(g in have for g in want) >= 0.8 * len(want)
        out[q["id"]] = kept
    return out


def project_of(session):
    base = os.path.basename(session)
    project, dashes, _ = base.partition("--")
    return project if dashes and project else base


def ahead(values_a, values_b):
    """1 if a is ahead of b, -1 if behind, 0 if no difference is shown; None without pairs.

    The mean of a session, then of a project; then the means of all subsets of the projects that are not empty, sorted: the
    interval is from the k-th lowest to the k-th highest, k a fortieth of 2^n. Projects beyond 14, by name, share groups.
    """
    sessions = collections.defaultdict(list)
    for key, a in values_a.items():
        if key in values_b:
            sessions[key[0]].append(a - values_b[key])
    projects = collections.defaultdict(list)
    for session, v in sessions.items():
        projects[project_of(session)].append(sum(v) / len(v))
    means = [sum(projects[k]) / len(projects[k]) for k in sorted(projects)]
    if not means:
        return None
    n = min(14, len(means))
    values = [sum(means[i::n]) / len(means[i::n]) for i in range(n)]
    subsets = [(0.0, 0)]
    for v in values:
        subsets += [(total + v, count + 1) for total, count in subsets]
    all_means = sorted(total / count for total, count in subsets[1:])
    k = max(1, 2**n // 40)
    low, high = all_means[k - 1], all_means[-k]
    return 0 if len(means) < 6 else 1 if low > 1e-9 else -1 if high < -1e-9 else 0


def main(args):
    pairs = []
    if args[0] == "--arena":
        with open(args[1], encoding="utf-8") as f:
            pairs = json.load(f)["pairs"]
        args = args[2:]
    with open(args[0], encoding="utf-8") as f:
        report = json.load(f)
    rows = {(r["session"], r["budget"], r["cut"], r["strategy"]): r for r in report.get("rows", [])}
    asked = {(e["session"], e["budget"], e["strategy"]): e for e in report.get("evidence") or []}
    gold = {}
    if len(args) > 2:
        for name in os.listdir(args[2]):
            with open(os.path.join(args[2], name), encoding="utf-8") as f:
                g = json.load(f)
            gold[name] = gold[name.removesuffix(".json")] = gold[g["id"]] = g
    agreed, total, off = collections.Counter(), collections.Counter(), []

    def judge(kind, same, *what):
        total[kind] += 1
        agreed[kind] += bool(same)
        if not same and len(off) < int(os.environ.get("SECOND_EXAMPLES", "40")):
            off.append([kind, *what])

    mine = collections.defaultdict(dict)  # (strategy, measure) -> (session, place) -> value
    sessions, cuts = {}, {}
    with open(args[1], encoding="utf-8") as f:
        for record in map(json.loads, f):
            if record["record"] == "session":
                sessions, cuts = {record["session"]: record, **sessions}, cuts
                continue
            name = record["session"]
            e = asked.get((name, record["budget"], record["strategy"]))
            if e is not None:
                g = gold.get(os.path.basename(name.removeprefix("evidence:")))
                if g is not None:
                    kept = evidence(g, record["messages"])
                    for q in e.get("questions") or []:
                        if sum(q["gold"].values()):
                            at = mine[record["strategy"], os.path.basename(args[0]).removesuffix(".json")]
                            at[name, q["id"]] = kept[q["id"]] / sum(q["gold"].values())
                        judge("kept", kept.get(q["id"]) == sum(q["kept"].values()), name, record["strategy"], q["id"], kept.get(q["id"]), q["kept"])
                continue
            row = rows.get((name, record["budget"], record["cut"], record["strategy"]))
            if row is None or row.get("runs"):
                continue
            key = (name, record["at"], record["end"])
            if key not in cuts:
                cuts[key] = Cut(sessions[name], record["at"], record["end"])
            values = cuts[key].measure(record["messages"])
            theirs = row["values"]
            judge("valid", (values["faults"] > 0) == (theirs.get("faults", 0) > 0), name, record["strategy"], values["faults"], theirs.get("faults"))
            judge("value", abs(record["after"] / max(1, record["before"]) - theirs["kept"]) < 0.05, name, record["strategy"], "kept")
            for m in ("anchors", "user"):
                if m in theirs and m in values:
                    judge("value", abs(values[m] - theirs[m]) < 0.05, name, record["strategy"], m, round(values[m], 3), round(theirs[m], 3))
            for m in ("panel", "anchors", "user"):
                if m in values:
                    mine[record["strategy"], m][name, record["cut"]] = values[m]
    opposite = 0
    step = os.path.basename(args[0]).removesuffix(".json")
    for pair in pairs:
        measure = pair["measure"]
        if measure not in (("panel", "user") if step == "cuts" else (step,)):
            continue
        a, b = (mine.get((pair[x], measure)) for x in ("peer", "ours"))
        own = ahead(a, b) if a and b else None
        if own is not None:
            opposite += own * pair["ahead"] < 0
            judge("ahead", own == pair["ahead"], measure, pair["peer"], pair["ours"], own, pair["ahead"])
    result = {
        "report": os.path.basename(args[0]),
        "verdicts": sum(total.values()),
        "agreed": sum(agreed.values()),
        "share": round(sum(agreed.values()) / max(1, sum(total.values())), 4),
        "by_kind": {k: {"verdicts": total[k], "agreed": agreed[k]} for k in sorted(total)},
        "opposite": opposite,  # of "ahead"
        "examples_of_disagreement": off,
    }
    json.dump(result, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4, 5, 6):
        sys.exit(__doc__)
    main(sys.argv[1:])
