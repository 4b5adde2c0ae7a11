"""Readers of the outputs of sidon: each finds all figures and gives them to a checker.

The checker has these methods; scripts/figures-are-true implements them:

    figure(output, Shown)                        a figure with its kind
    plain(output, name, value)                   a number without a mark
    largest(output, table, keys, first, among)   a list of the heaviest keys
    skip(output, name)                           a figure that cannot be compared
    fail(output, name, shown, truth)             a wrong figure

The name of a figure is its path in the JSON report.
"""
import collections
import csv
import html.parser
import os
import re

LISTS = {"FLOW": "top_flows", "HOST": "top_hosts", "PORT": "top_ports"}
STATES = "S0 S1 SF REJ S2 S3 RSTO RSTR RSTOS0 RSTRH SH SHR OTH".split()

# A figure as an output shows it. `least` and `most` are None where the output prints no interval.
Shown = collections.namedtuple("Shown", "name kind value least most")
KINDS = {"=": "exact", "<=": "at_most", ">=": "at_least", "~": "estimate", "?": "unknown"}
FIGURE = r"(<=|>=|[=~?]) ([\d,]+)(?: \[([\d,]+), ([\d,]+)\])?"


def whole(text):
    return int(text.replace(",", "")) if text else None


def shown(name, groups):
    """The figure that FIGURE matched."""
    mark, *numbers = groups
    return Shown(name, KINDS[mark], *map(whole, numbers))


# ---- JSON ----


def figures_in(value, path=()):
    """All figures of a report, and as (path, number) all other numbers."""
    if isinstance(value, list):
        for item in (item for item in value if isinstance(item, dict)):
            names = [item[field] for field in ("kind", "key", "subnet", "host", "subject") if field in item]
            yield from figures_in(item, path + (" ".join(names),))
    elif isinstance(value, dict):
        for field, one in value.items():
            figure = value.get(f"{field}_figure")
            if figure is None and not field.endswith("_figure"):
                yield from figures_in(one, path + (field,))
            elif figure and "kind" in figure:
                yield Shown(path + (field,), figure["kind"], one, *figure["interval"])
            elif figure:
                for state, each in figure.items():
                    yield Shown(path + (field, state), each["kind"], one[state], *each["interval"])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def check_json(check, output, report):
    check.by_responder = "services" in report["ledger"]
    for one in figures_in(report):
        if isinstance(one, Shown):
            check.figure(output, one)
            continue
        path, value = one
        if path[-1] in ("lower", "packets_lower"):
            name = path[:-1] + ("packets" if path[-1] == "packets_lower" else "bytes",)
            if value > check.capture.truth(name) and (check.by_responder or name[0] != "top_ports"):
                check.fail(output, path, f"at_least {value}", check.capture.truth(name))
        elif path[0] not in ("audit", "schema") and "intervals_99" not in path:
            check.plain(output, path, value)
    for table in LISTS.values():
        keys = [row["key"] for row in report[table]]
        check.largest(output, table, keys, report[f"{table}_complete"], len(keys))
        for row in report[table]:
            if row["certainty"] != row["bytes_figure"]["kind"]:
                check.fail(output, (table, row["key"], "certainty"), row["certainty"], row["bytes_figure"])
    if report["new_sources_certainty"] != report["new_sources_total_figure"]["kind"]:
        check.fail(output, ("new_sources_certainty",), report["new_sources_certainty"], "another kind")
    intervals = dict(report["connections"].get("sampling", {}).get("intervals_99", {}))
    states = intervals.pop("by_state", {})
    for name, ends in [((n,), e) for n, e in intervals.items()] + [(("by_state", n), e) for n, e in states.items()]:
        name = ("connections", *name)
        check.figure(output, check.reported[name]._replace(least=ends[0], most=ends[1]))
    audit = report.get("audit", {"violations": 0})
    if audit["violations"]:
        check.wrong += [f"{output}: audit: {row}" for row in audit["rows"]]


def evidence(report):
    """The names of the figures of all alarms, in the order in which outputs print them."""
    return [(alarm, name) for alarm in report["alarms"] for name in alarm.get("evidence_figure", {})]


def check_alarms(check, output, report, text):
    """Compares the marked figures of a text about all alarms."""
    found, names = re.findall(FIGURE, text), evidence(report)
    if len(found) != len(names):
        check.fail(output, ("alarms",), f"{len(found)} figures", f"{len(names)} in JSON")
    for (alarm, name), groups in zip(names, found):
        path = ("alarms", f"{alarm['kind']} {alarm['subject']}", "evidence", name)
        check.figure(output, shown(path, groups))


# ---- CSV ----


def check_csv(check, directory):
    def rows(name):
        with open(os.path.join(directory, name), newline="") as file:
            yield from csv.DictReader(file)

    for table in ("flows", "hosts", "ports"):
        for row in rows(f"{table}.csv"):
            for what in ("bytes", "packets"):
                kind = row["certainty" if what == "bytes" else "packets_certainty"]
                value, least, most = int(row[what]), int(row[f"{what}_lower"]), whole(row[f"{what}_upper"])
                check.figure("csv", Shown((f"top_{table}", row["key"], what), kind, value, least, most))
    for row in rows("new_sources.csv"):
        name, value = ("new_sources", row["subnet"], "count"), int(row["new_addresses"])
        check.figure("csv", Shown(name, row["certainty"], value, int(row["least"]), whole(row["most"])))
    for row in rows("connections.csv"):
        name = ("connections", row["what"])
        if row["what"] in STATES:
            name = ("connections", "by_state", row["what"])
        elif row["what"].startswith("new_"):
            name = (row["what"],)
        interval = int(row["least"]), whole(row["most"])
        check.figure("csv", Shown(name, row["certainty"], int(row["count"]), *interval))
    for row in rows("ledger.csv"):
        check.plain("csv", ("ledger", row["what"]), int(row["packets"]))


# ---- the screen ----


def check_screen(check, output, text, report):
    """Reads a screen by its sections, which blank lines separate."""
    compared = 0

    def take(name, pattern, text):
        nonlocal compared
        found = re.search(pattern.replace("FIGURE", FIGURE), text)
        if found:
            compared += 1
            check.figure(output, shown(name, found.groups()))

    for index, section in enumerate(text.split("\n\n")):
        lines, words = section.split("\n"), " ".join(section.split())
        head = words.split(" ")[0]
        if index == 0:
            take(("packets",), "FIGURE packets", words)
            take(("bytes",), "FIGURE bytes", words)
            check_alarms(check, output, report, words.partition("ALARM")[2])
            compared += len(evidence(report))
        elif head in LISTS:
            keys, key = [], ""
            for line in lines[1:]:
                row = re.fullmatch(rf"(.*?) *{FIGURE} +{FIGURE}", line)
                key = f"{key} {(row[1] if row else line).strip()}".strip()
                if row:
                    compared += 2
                    key = key.removeprefix("BYTES PACKETS ")
                    check.figure(output, shown((LISTS[head], key, "bytes"), row.groups()[1:5]))
                    check.figure(output, shown((LISTS[head], key, "packets"), row.groups()[5:]))
                    keys, key = keys + [key], ""
            # `key` is now the note below the list.
            first = re.search(r"the first ([\d,]+) are", key)
            others = re.search(r"not listed has at most ([\d,]+)", key)
            certain = whole(first[1]) if first else len(keys) if "kept, certainly" in words else 0
            check.largest(output, LISTS[head], keys, certain, certain, whole(others[1]) if others else None)
            if not re.search(rf"top {len(keys):,} of", words):
                check.fail(output, (LISTS[head],), lines[0], f"{len(keys)} rows")
        elif head == "CONNECTIONS":
            labels = {"total": "CONNECTIONS FIGURE", "half_open": "FIGURE half open", "dont_know": "FIGURE don't know",
                      "peak_half_open": "FIGURE at the peak", "open": "FIGURE open at the end"}
            for name, pattern in labels.items():
                take(("connections", name), pattern, words)
            for state in STATES:
                take(("connections", "by_state", state), f" {state} FIGURE", words)
        elif head == "NEW":
            take(("new_sources_total",), "FIGURE addresses", words)
            take(("new_sources_subnets",), "FIGURE subnets", words)
            listed = re.findall(rf"(\S+/(?:24|64)) {FIGURE}", words)
            for net, *groups in listed:
                check.figure(output, shown(("new_sources", net, "count"), groups))
            more = re.search(f"and {FIGURE} more", words)
            if more:
                figure = shown(("new_sources_subnets",), more.groups())
                check.figure(output, figure._replace(value=figure.value + len(listed)))
            compared += len(listed) + bool(more)
        elif head == "LEDGER":
            for name in ("seen", "decoded"):
                check.plain(output, ("ledger", name), whole(re.search(rf"([\d,]+) {name}", words)[1]))
        elif head == "AUDIT" and "AUDIT 0 violations" not in words:
            check.wrong.append(f"{output}: {words}")
    marks = len(re.findall(FIGURE, " ".join(text.partition("LEDGER")[0].split())))
    if marks != compared:
        check.skip(output, ("figures of the screen without a known label",))


# ---- metrics and the page ----

METRICS = {
    "packets_total": ("packets",), "wire_bytes_total": ("bytes",), "new_sources_total": ("new_sources_total",),
    "connections": ("connections", "present_by_state"), "connections_ended_total": ("connections", "ended"),
    "half_open_connections": ("connections", "half_open"), "open_connections": ("connections", "open"),
    "half_open_connections_peak": ("connections", "peak_half_open"), "ledger_packets_total": ("ledger",),
    "connections_came_about_total": ("connections", "came_about"), "top_port_bytes": ("top_ports",),
    "top_flow_bytes": ("top_flows",),
}


def check_metrics(check, text, report):
    samples, kinds, ends = [], {}, collections.defaultdict(dict)
    for name, labels, value in re.findall(r"^sidon_(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if name.startswith("figure_"):
            of = (labels["figure"], labels.get("of", ""))
            kinds[of] = labels.get("kind", kinds.get(of))
            ends[of][name] = None if value == "+Inf" else int(float(value))
        else:
            samples.append((name, next(iter(labels.values()), ""), value))
    for name, of, value in samples:
        path = METRICS.get(name)
        if path is None or name.startswith("top_") and (name, of) not in kinds:
            check.skip("metrics", (name,))
            continue
        path += (of,) if of else ()
        if name.startswith("top_"):
            keys = [row["key"] for row in report[path[0]]]
            if of == "other":
                rows = sum(check.capture.amounts(path[0], key)[0] for key in keys[:10])
                check.capture.extra[path] = check.capture.bytes - rows
            else:
                path = (path[0], keys[int(of) - 1] if name == "top_flow_bytes" else of, "bytes")
        kind, interval = kinds.get((name, of)), ends[name, of]
        if kind is None and path[0] == "ledger":
            check.plain("metrics", path, int(float(value)))
        elif kind is None:
            check.fail("metrics", path, f"{value} without a kind", "a kind and an interval")
        else:
            interval = interval["figure_least"], interval["figure_most"]
            check.figure("metrics", Shown(path, kind, int(float(value)), *interval))


class Page(html.parser.HTMLParser):
    """The text of every element with an id, and the cells of every table body with one."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.rows = [], collections.defaultdict(str), collections.defaultdict(list)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("meta", "link", "img", "input", "br"):
            return
        self.open.append((tag, dict(attributes).get("id")))
        bodies = [name for tag, name in self.open if tag == "tbody"]
        if tag == "tr" and bodies:
            self.rows[bodies[0]].append([])
        elif tag == "td" and bodies:
            self.rows[bodies[0]][-1].append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for tag, name in self.open:
            self.texts[name] += data
            if tag == "tbody" and self.rows[name] and self.rows[name][-1]:
                self.rows[name][-1][-1] += data


def check_page(check, text, report):
    page = Page(text)

    def take(name, text):
        found = re.search(FIGURE, text)
        if found:
            check.figure("page", shown(name, found.groups()))
        else:
            check.fail("page", name, f"{text!r} without a mark", check.capture.truth(name))

    for place, name in {
        "updated": "packets", "t-half": "connections half_open", "t-peak": "connections peak_half_open",
        "t-open": "connections open", "t-came": "connections came_about", "t-new": "new_sources_total",
        "t-subnets": "new_sources_subnets", "stranger": "connections dont_know",
    }.items():
        take(tuple(name.split(" ")), page.texts[place])
    for table in ("flows", "hosts", "ports"):
        rows = page.rows[table]
        for row in rows:
            take((f"top_{table}", row[0], "bytes"), row[1])
            take((f"top_{table}", row[0], "packets"), row[-1])
            # Flows have a column of the least bytes, empty if that is the number of bytes.
            if len(row) == 4 and (whole(row[2]) or 0) > check.capture.amounts(f"top_{table}", row[0])[0]:
                check.fail("page", (f"top_{table}", row[0], "least bytes"), row[2], "less")
        caption, keys = page.texts[f"c-{table}"], [row["key"] for row in report[f"top_{table}"]]
        first = re.search(r"the ([\d,]+) largest", caption)
        first = whole(first[1]) if first else len(rows) if "certainly the largest" in caption else 0
        check.largest("page", f"top_{table}", keys[:len(rows)], min(first, len(rows)), len(rows))
        listed = re.search(r"top ([\d,]+) of|([\d,]+) in all", caption)
        if listed and whole(listed[1] or listed[2]) != len(rows):
            check.fail("page", (f"top_{table}",), caption, f"{len(rows)} rows")
    for name, _, now, of_all in page.rows["states"]:
        take(("connections", "present_by_state", name), now)
        take(("connections", "by_state", name), of_all)
    for net, count in page.rows["sources"]:
        take(("new_sources", net, "count"), count)
    take(("decoded",), page.rows["fates"][0][1])
    check_alarms(check, "page", report, page.texts["all-alarms"])
