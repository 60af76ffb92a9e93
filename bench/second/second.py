#!/usr/bin/env python3
"""Measures the results of `condense compare` again, from docs/comparing-measures.md and the standard library alone.

    python3 second.py REPORT.json OUTPUTS.jsonl [GOLD-FOLDER]

REPORT.json is written by --save, OUTPUTS.jsonl by --outputs; GOLD-FOLDER has the conversations of evidence:FOLDER. It prints
as JSON how many verdicts of the report this program confirms:

  kept      is a gold turn or a line of an edit in the result? by question: the same number
  valid     does the result add faults, such as results without calls?
  value     anchors, user's words and shares of tokens at a cut: within 0.05
  ahead     is A better than B in needed text (or anchors, user's words): shown, the reverse shown, or neither

It shares no code and no table with the program. The table of common terms of 13 projects is left out, so single values of
the needed text differ; their differences between strategies are compared.
"""

import collections
import json
import math
import os
import random
import re
import sys

WORD = re.compile(r"\w+(?:[./-]\w+)*")
FUNCTION = set(
    """a about after all also an and any are as at be because been before but by can could did do does doing done for from
    had has have having he her here him his how i if in into is it its just let may me might more most must my no not now of
    off on one only or other our out over own per same she should so some such than that the their them then there these
    they this those through to too under until up very was we were what when where which while who why will with would you
    your""".split()
)


def folded(text):
    return " ".join(text.split())


def texts(message):
    return [p["text"] for p in message["parts"]]


def everything(messages):
    return "\n".join(t for m in messages for t in texts(m))


def words(line):
    return [w.lower() for w in WORD.findall(line)]


def grams(items, n):
    return [tuple(items[i : i + n]) for i in range(len(items) - n + 1)]


def lines_of(text):
    """Lines; the values of JSON that is one line count as lines, as do escaped line ends."""
    out = []
    for line in text.split("\n"):
        if len(line) > 200 and line[:1] in "{[":
            try:
                stack = [json.loads(line)]
            except ValueError:
                out.append(line)
                continue
            while stack:
                v = stack.pop()
                if isinstance(v, dict):
                    stack.extend(v.values())
                elif isinstance(v, list):
                    stack.extend(v)
                else:
                    out.extend(str(v).split("\n"))
            continue
        out.append(line)
    return out


def part_lines(part):
    """The lines of a part; of a call, those of the values of its arguments."""
    if part["type"] == "call":
        try:
            return lines_of_values(json.loads(part["text"]))
        except ValueError:
            pass
    return lines_of(part["text"])


def lines_of_values(v):
    if isinstance(v, dict):
        return [line for x in v.values() for line in lines_of_values(x)]
    if isinstance(v, list):
        return [line for x in v for line in lines_of_values(x)]
    return str(v).split("\n")


NAME = re.compile(r"(?:[\w.~@+-]*/)+[\w.@+-]+|[A-Za-z_][\w]*(?:[-.][\w]+)*|\b\d+(?:\.\d+)+\b|\b\d{3,}\b")


def names(line):
    """Paths by their base names, identifiers and numbers of a line."""
    for n in NAME.findall(line):
        n = n.strip(".-:")
        if "/" in n:
            base = n.rstrip("/").split("/")[-1]
            if len(base) >= 4:
                yield base
        elif n[:1].isdigit():
            yield n
        elif len(n) >= 4 and re.search(r"[a-z][A-Z]|[_\d]|\w[-.]\w", n):
            yield n


class Cut:
    """What the agent needed after a cut: names, runs of four words, rare words; and lines quoted by its next edits."""

    def __init__(self, session, at, end):
        messages = session["messages"]
        self.prefix, future = messages[:at], messages[at:end]
        df, lines_with, gram_df, word_df = (collections.Counter() for _ in range(4))
        self.lines, self.neighbours, self.trigrams = set(), {}, set()
        for m in self.prefix:
            n, g, w = set(), set(), set()
            for p in m["parts"]:
                ls = [k for k in (folded(x) for x in part_lines(p)) if k]
                for i, line in enumerate(ls):
                    self.lines.add(line)
                    self.neighbours.setdefault(line, (ls[i - 1] if i else None, ls[i + 1] if i + 1 < len(ls) else None))
                    ws = words(line)
                    n.update(names(line))
                    g.update(grams(ws, 4))
                    self.trigrams.update(grams(ws, 3))
                    w.update(ws)
            df.update(n), gram_df.update(g), word_df.update(w)
        size = max(1, len(self.prefix))
        idf = lambda k: min(1, max(0, math.log((1 + size) / (0.5 + k)) / math.log((1 + size) / 1.5)))
        seen_n, seen_g, seen_w = set(), set(), set()
        self.learn(session.get("system", "") + "\n" + "\n".join(session.get("tools") or []), seen_n, seen_g, seen_w)
        self.names, self.grams, self.rare = {}, set(), {}
        for m in future:
            weight, new = 0.0, 0
            for p in m["parts"]:
                if not (p.get("typed") or p.get("agent")):
                    continue
                for line in part_lines(p):
                    ws = words(line)
                    for n in names(line):
                        if n in df and n not in seen_n and n not in self.names:
                            w = min(idf(df[n]), max(0, 12 - weight))
                            weight += w
                            self.names[n] = w
                    for g in grams(ws, 4):
                        plain = sum(x in FUNCTION for x in g) <= 2
                        if 0 < gram_df[g] <= 3 and plain and g not in seen_g and g not in self.grams and new < 60:
                            self.grams.add(g)
                            new += 1
                    for x in ws:
                        if re.fullmatch(r"[a-z]{5,}", x) and x not in FUNCTION and x not in seen_w and x not in self.rare:
                            if 0 < word_df[x] <= max(2, size // 10):
                                self.rare[x] = idf(word_df[x])
            for t in texts(m):
                self.learn(t, seen_n, seen_g, seen_w)
        self.anchors = quoted_next(messages, at)
        self.said = []
        for m in self.prefix:
            for p in m["parts"]:
                if p["type"] == "text" and p.get("typed"):
                    for s in re.split(r"\n+|(?<=[.!?])\s+", p["text"]):
                        if len(words(s)) >= 3:
                            self.said.append(plain_words(s))
        self.faults = faults(self.prefix)

    @staticmethod
    def learn(text, n, g, w):
        for line in lines_of(text):
            ws = words(line)
            n.update(names(line)), g.update(grams(ws, 4)), w.update(ws)

    def measure(self, view):
        have = [k for m in view for p in m["parts"] for k in (folded(x) for x in part_lines(p)) if k]
        kept = set(have)
        credit, found = collections.defaultdict(float), set()
        there = set()
        for line in have:
            ws = words(line)
            there.update(grams(ws, 4))
            whole = line in self.lines
            if whole:
                before, after = self.neighbours[line]
                worth = 0.5 + 0.25 * (before is None or before in kept) + 0.25 * (after is None or after in kept)
                inside = ws
            else:
                worth, inside = run_worth(ws, self.trigrams)
            if worth:
                found.update(inside)
                text = line if whole else " ".join(inside)
                for n in names(line):
                    if n in self.names and (whole or n.lower() in text):
                        credit[n] = max(credit[n], worth)
        out = {"kept_characters": len(everything(view)) / max(1, len(everything(self.prefix)))}
        parts = []
        if self.names and sum(self.names.values()) > 0:
            parts.append(sum(w * credit[n] for n, w in self.names.items()) / sum(self.names.values()))
        if len(self.grams) >= 8:
            parts.append(len(self.grams & there) / len(self.grams))
        if len(self.rare) >= 5 and sum(self.rare.values()) > 0:
            parts.append(sum(w for x, w in self.rare.items() if x in found) / sum(self.rare.values()))
        if parts:
            out["panel"] = sum(parts) / len(parts)
        text = " ".join(folded(t) for m in view for t in texts(m))
        if len(self.anchors) >= 5:
            out["anchors"] = sum(a in text for a in self.anchors) / len(self.anchors)
        own = set(grams(plain_words("\n".join(p["text"] for m in view if m["role"] == "user" for p in m["parts"] if p["type"] == "text")), 3))
        if self.said:
            weight = lambda s: min(40, len(s))
            is_kept = lambda s: sum(g in own for g in grams(s, 3)) >= 0.8 * max(1, len(s) - 2)
            out["user"] = sum(weight(s) for s in self.said if is_kept(s)) / sum(weight(s) for s in self.said)
        out["faults"] = max(0, faults(view) - self.faults)
        return out


def plain_words(text):
    return re.findall(r"[^\W_]+", text.lower())


def run_worth(ws, trigrams):
    """The credit of the longest run of words whose 3-grams are known, and the words of the run."""
    best, start = (0, []), None
    tri = grams(ws, 3)
    for i in range(len(tri) + 1):
        if i < len(tri) and tri[i] in trigrams:
            start = i if start is None else start
        elif start is not None:
            run = ws[start : i + 2]
            if len(run) >= 6 and len(run) > len(best[1]):
                best = (0.25 + 0.75 * min(1, (len(run) - 6) / 16), run)
            start = None
    return best


OLD = ("old_string", "oldString", "old_str", "oldText")


def old_text(value, key=""):
    """The text that the arguments of an edit replace."""
    if isinstance(value, dict):
        return "".join(old_text(value[k], k) for k in value)
    if isinstance(value, list):
        return "".join(old_text(v, key) for v in value)
    if not isinstance(value, str):
        return ""
    if key in OLD:
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


def verdict(values_a, values_b, seed):
    """1 if a is shown to be above b, -1 if below, else 0: bootstrap over sessions, at least six."""
    sessions = collections.defaultdict(list)
    for key, a in values_a.items():
        if key in values_b:
            sessions[key[0]].append(a - values_b[key])
    means = [sum(v) / len(v) for v in sessions.values()]
    if len(means) < 6:
        return None
    r = random.Random(seed)
    draws = sorted(sum(r.choices(means, k=len(means))) / len(means) for _ in range(2000))
    shrink = math.sqrt(len(means) / (len(means) - 1)) * 1.96  # wider for few sessions
    tail = 2000 * 0.5 * math.erfc(shrink / math.sqrt(2))
    low, high = draws[int(tail)], draws[1999 - int(tail)]
    return 1 if low > 0 else -1 if high < 0 else 0


def main(args):
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

    mine = collections.defaultdict(dict)  # (budget, strategy, measure) -> (session, cut) -> value
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
                    mine[record["budget"], record["strategy"], m][name, record["cut"]] = values[m]
    opposite = 0
    for d in report.get("differences") or []:
        if d["mode"] or not d["budget"] or d["measure"] not in ("panel", "anchors", "user"):
            continue
        if d["b"] != f"smart/balanced~{d['a']}" and d["a"] != f"smart/balanced~{d['b']}":
            continue
        a, b = (mine.get((d["budget"], d[x], d["measure"])) for x in "ab")
        own = verdict(a, b, report["seed"]) if a and b else None
        if own is not None and d["sessions"] >= 6:
            theirs = (d["mean"] > 0) - (d["mean"] < 0) if d["shown"] else 0
            opposite += own * theirs < 0
            judge("ahead", own == theirs, d["budget"], d["measure"], d["a"], d["b"], own, theirs)
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
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1:])
