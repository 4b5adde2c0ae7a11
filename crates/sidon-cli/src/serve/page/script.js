// The page: fetches the report once a second and writes figures in place. It sets text as text, never
// as HTML. Rows are kept from one second to the next, so the page does not flicker or lose focus.
"use strict";

const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const whole = (n) => number.format(Math.round(n));

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit + 1 < units.length) { n /= 1024; unit += 1; }
  return `${unit ? n.toFixed(n < 10 ? 2 : 1) : n} ${units[unit]}`;
}

function bits(n) {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let unit = 0;
  while (n >= 1000 && unit + 1 < units.length) { n /= 1000; unit += 1; }
  return `${n.toFixed(n < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

// ---- figures ----

const MARKS = { at_most: "<=", at_least: ">=", estimate: "~", unknown: "?" };

// A figure as text. `certainty` is {kind, interval: [least, most or null]} as the server sends it; a
// number without it gets no mark. The mark = needs an interval that holds the number alone. A script
// rounds numbers beyond 2^53, so those are estimates here.
function figure(value, certainty, form = whole) {
  if (!certainty) return { text: form(value), interval: "", words: "" };
  const [least, most] = certainty.interval;
  const mark = MARKS[certainty.kind] || (least !== value || most !== value ? "?" : Number.isSafeInteger(value) ? "=" : "~");
  const ends = most === null ? `${form(least)} or more` : least === most ? form(least) : `between ${form(least)} and ${form(most)}`;
  const likely = mark === "~" ? "probably " : "";
  return {
    text: `${mark} ${form(value)}`,
    interval: mark === "~" && most !== null && least !== most ? `[${form(least)}, ${form(most)}]` : "",
    words: mark === "?" ? "No bound is known." : `The true number is ${likely}${ends}.`,
  };
}

// Writes texts and figures one after the other into a node.
function put(node, ...parts) {
  const shown = JSON.stringify(parts);
  if (node.shown === shown) return;
  node.shown = shown;
  node.replaceChildren(...parts.filter((part) => part !== "").map((part) => {
    if (part.text === undefined) return part;
    const span = make("span", undefined, "figure");
    span.title = part.words;
    span.append(make("span", part.text));
    if (part.interval) span.append(" ", make("small", part.interval, "interval"));
    return span;
  }));
}

function make(name, words, kind) {
  const node = document.createElement(name);
  if (words !== undefined) node.textContent = words;
  if (kind) node.className = kind;
  return node;
}

// ---- requests ----

let token = sessionStorage.getItem("sidon-token") || "";

async function get(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return fetch(path, { headers, cache: "no-store" });
}

// ---- light and dark ----

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  return localStorage.getItem("sidon-theme") || (prefersDark.matches ? "dark" : "light");
}

function showTheme() {
  const dark = theme() === "dark";
  document.documentElement.dataset.theme = theme();
  $("theme").setAttribute("aria-pressed", String(dark));
}

$("theme").addEventListener("click", () => {
  localStorage.setItem("sidon-theme", theme() === "dark" ? "light" : "dark");
  showTheme();
  drawCharts();
});
prefersDark.addEventListener("change", () => { showTheme(); drawCharts(); });
showTheme();

// ---- tabs ----

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab, focus) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    $(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
  if (tab.id === "tab-overview") drawCharts();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab, false));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(tabs[to % tabs.length], true);
  });
}
const asked = tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash);
if (asked) choose(asked, false);

// ---- tables and lists, written in place ----

// The two ends of a flow are never broken, so a key takes one line or two.
function keyParts(key) {
  const ends = key.match(/^(\S+ <?->) (.*)$/);
  return ends ? [make("span", ends[1]), " ", make("span", ends[2])] : [make("span", key)];
}

// A row is a list of cells. A cell is a text, {n: text or figure} for a number or {key: text}.
function rows(body, list) {
  const heads = [...body.parentNode.tHead.rows[0].cells].map((cell) => cell.textContent);
  while (body.rows.length > list.length) body.deleteRow(-1);
  list.forEach((cells, i) => {
    const row = body.rows[i] || body.insertRow();
    cells.forEach((cell, j) => {
      const at = row.cells[j] || row.insertCell();
      at.dataset.label = heads[j];
      if (cell.key !== undefined) {
        if (!at.firstChild || at.firstChild.nodeName !== "BUTTON") {
          const button = make("button");
          button.type = "button";
          button.title = "Look this up";
          button.addEventListener("click", () => ask(button.textContent, true));
          at.replaceChildren(button);
          at.className = "key";
        }
        const button = at.firstChild;
        if (button.textContent !== cell.key) button.replaceChildren(...keyParts(cell.key));
        button.classList.toggle("long", cell.key.length > 60);
      } else if (cell.n !== undefined) {
        at.className = "n";
        put(at, cell.n);
      } else {
        text(at, cell);
      }
    });
    while (row.cells.length > cells.length) row.deleteCell(-1);
  });
  if (!list.length) {
    const row = body.insertRow();
    row.insertCell().textContent = "none yet";
  }
}

function complete(count, list, kept) {
  if (!list.length) return "";
  const of = kept > list.length ? `top ${whole(list.length)} of ${whole(kept)} kept` : `${whole(list.length)} in all`;
  if (count === list.length) return `${of}, certainly the largest`;
  return `${of}; the ${whole(count)} largest are certainly listed`;
}

// The evidence of an alarm. The server sends mark, number, interval and label of each as one text.
function evidence(alarm) {
  const before = alarm.from < alarm.opened ? "in the last period: " : "";
  return [before + alarm.evidence_text.join("; ")];
}

const clock = (iso) => iso.slice(11, 19);
const moment = (iso) => (iso ? `${iso.slice(0, 10)} ${clock(iso)} UTC` : "");

// The severities, the highest first, and the name of the network of a subject.
const SEVERITIES = ["critical", "high", "medium", "low"];
const place = (alarm) => (alarm.network ? ` (${alarm.network})` : "");

function alarmList(list, alarms) {
  if (list.dataset.empty === "yes" || alarms.length === 0) list.replaceChildren();
  list.dataset.empty = alarms.length ? "no" : "yes";
  if (!alarms.length) {
    list.append(make("li", "No alarm so far."));
    return;
  }
  while (list.children.length > alarms.length) list.lastChild.remove();
  alarms.forEach((alarm, i) => {
    let item = list.children[i];
    if (!item) {
      item = make("li");
      item.append(make("b"), make("p"), make("code"));
      list.append(item);
    }
    item.className = alarm.closed || alarm.earlier ? "" : "holds";
    const active = alarm.earlier ? "active at the end of its period" : "active now";
    const until = alarm.closed ? `until ${clock(alarm.closed)}` : active;
    text(item.children[0], `${alarm.severity}: ${alarm.text}${place(alarm)}, from ${clock(alarm.from)}, ${until}`);
    put(item.children[1], ...evidence(alarm));
    text(item.children[2], `tcpdump '${alarm.filter}'`);
  });
}

const MEANINGS = {
  S0: "SYN without an answer", S1: "established, no end seen", SF: "established and closed", REJ: "rejected",
  S2: "closed by the opener only", S3: "closed by the responder only", RSTO: "reset by the opener",
  RSTR: "reset by the responder", RSTOS0: "SYN, then reset by the opener",
  RSTRH: "SYN-ACK, then reset; no SYN seen", SH: "SYN, then FIN; no answer seen",
  SHR: "SYN-ACK, then FIN; no SYN seen", OTH: "no SYN seen",
};

// ---- the report ----

let latest = null;
let announced = null;

function show(all) {
  const report = all.report;
  latest = all;
  text($("source"), all.source.name);
  document.title = `Sidon: ${all.source.name}`;
  text($("status"), all.source.status === "running" ? "running" : "ended");
  $("status").className = `pill ${all.source.status}`;
  $("status").title = all.source.detail || "";
  const since = all.saved && report.first ? ` since ${clock(report.first)}` : "";
  put($("updated"), figure(report.packets, report.packets_figure), ` packets${since}, ${clock(all.time)} UTC`);

  text($("t-pps"), whole(all.rates.packets_per_second));
  text($("t-bps"), bits(all.rates.bits_per_second));
  text($("t-memory"), bytes(report.memory.allocated));
  const resident = all.process.resident_bytes;
  text($("t-budget"), `fixed${resident ? `; process ${bytes(resident)}` : ""}`);
  const total = figure(report.new_sources_total, report.new_sources_total_figure);
  put($("t-new"), total);
  put($("t-subnets"), "subnets ", figure(report.new_sources_subnets, report.new_sources_subnets_figure));

  showPeriod(all);
  showAlarms(all);
  showTraffic(report);
  showConnections(report);
  showLedger(report);
  showExporters(all.source.exporters);
  showSaved(all.saved);
}

// With --save-dir: which figures are of the current period, and how they follow from it.
function showPeriod(all) {
  $("period").hidden = !all.saved;
  const since = all.report.first ? ` since ${moment(all.report.first)}` : "";
  text($("period"), `All figures are of the current period${since}. Half open and open: the number now. Peak: the maximum of the period. Other counts: the sum over the period.`);
}

// Incidents of the current period in the order of the report, then those of earlier periods, the most
// severe first. An alarm that was active at the end of a period and is raised again in the next one is one
// alarm: `from` is the time it was first raised.
function stories(all) {
  const period = (alarm) => Math.floor(Date.parse(alarm.opened) / 1000 / (all.saved ? all.saved.period_seconds : 1));
  const same = (one, two) => one.kind === two.kind && one.subject === two.subject;
  const past = [];
  const told = (alarm) => {
    const before = past.findIndex((one) => !one.closed && same(one, alarm) && period(one) + 1 === period(alarm));
    const from = before < 0 ? alarm.opened : past[before].from;
    if (before >= 0) past.splice(before, 1);
    return { ...alarm, from };
  };
  for (const alarm of all.earlier_alarms) past.push({ ...told(alarm), earlier: true });
  const now = all.report.incidents.map(told);
  const rank = (alarm) => SEVERITIES.indexOf(alarm.severity);
  past.reverse();
  // The sort is stable: incidents of one severity stay in the order of time.
  return [...now, ...past.sort((one, two) => rank(one) - rank(two))];
}

function showAlarms(all) {
  const alarms = stories(all);
  const holding = all.report.alarms.filter((alarm) => !alarm.closed);
  text($("t-alarms"), whole(holding.length));
  text($("t-raised"), `${whole(all.alarms_total)} raised${all.saved ? ", sum of all periods" : " so far"}`);
  $("tile-alarms").classList.toggle("holds", holding.length > 0);
  $("n-alarms").hidden = holding.length === 0;
  text($("n-alarms"), whole(holding.length));
  alarmList($("latest"), alarms.slice(0, 3));
  alarmList($("all-alarms"), alarms);
  // Screen readers read new alarms only, and not those of the first report.
  const newest = alarms.reduce((newest, alarm) => (newest && newest.opened >= alarm.opened ? newest : alarm), null);
  if (announced !== null && all.alarms_total > announced && newest) text($("announce"), `Alarm: ${newest.text}`);
  announced = all.alarms_total;
}

function showTraffic(report) {
  const amounts = (one) => [{ n: figure(one.bytes, one.bytes_figure) }, { n: figure(one.packets, one.packets_figure) }];
  rows($("flows"), report.top_flows.map((flow) => {
    const [size, packets] = amounts(flow);
    return [{ key: flow.key }, size, { n: flow.lower === flow.bytes ? "" : whole(flow.lower) }, packets];
  }));
  for (const kind of ["hosts", "ports"]) {
    rows($(kind), report[`top_${kind}`].map((one) => [{ key: one.key }, ...amounts(one)]));
  }
  for (const kind of ["flows", "hosts", "ports"]) {
    const list = report[`top_${kind}`];
    text($(`c-${kind}`), complete(report[`top_${kind}_complete`], list, report[`top_${kind}_kept`]));
  }
  showPeers(report.p2p);
}

function showConnections(report) {
  const tcp = report.connections;
  put($("t-half"), figure(tcp.half_open, tcp.half_open_figure));
  put($("t-peak"), "peak at one time ", figure(tcp.peak_half_open, tcp.peak_half_open_figure));
  put($("t-open"), figure(tcp.open, tcp.open_figure));
  put($("t-came"), "handshakes completed ", figure(tcp.came_about, tcp.came_about_figure));
  const states = Object.keys(tcp.by_state).filter((name) => tcp.by_state[name] > 0);
  const count = (field, name) => ({ n: figure(tcp[field][name], (tcp[`${field}_figure`] || {})[name]) });
  rows($("states"), states.map((name) => [
    name, MEANINGS[name] || "", count("present_by_state", name), count("by_state", name)]));
  $("sampling").hidden = !tcp.sampling;
  if (tcp.sampling) {
    const { one_in: now, one_in_most: most, since } = tcp.sampling;
    text($("sampling"), `Sampled since ${clock(since)}: one new connection in ${whole(now)} is followed now, one in ${whole(most)} at the peak.`);
  }
  const odds = tcp.stranger_rate > 0 ? `one in ${whole(1 / tcp.stranger_rate)}` : "none";
  put($("stranger"), figure(tcp.dont_know, tcp.dont_know_figure), ` connections cannot be distinguished. Chance that a new connection is mistaken for another: ${odds}.`);
  rows($("sources"), report.new_sources.slice(0, 20).map((one) => [one.subnet, { n: figure(one.count, one.count_figure) }]));
  const subnets = figure(report.new_sources_subnets, report.new_sources_subnets_figure);
  put($("c-sources"), ...(report.new_sources_subnets > 20 ? ["top 20 of ", subnets] : [""]));
}

const RULES = {
  syn: "its SYN", first_sender: "its first sender", registered_port: "a registered port", lower_port: "the lower port",
};

function showLedger(report) {
  const ledger = report.ledger;
  const undecoded = Object.entries(ledger.undecoded);
  const parts = [`${whole(ledger.decoded)} decoded`];
  if (ledger.filtered) parts.push(`${whole(ledger.filtered)} filtered`);
  for (const [name, n] of undecoded) parts.push(`${whole(n)} ${name}`);
  const rest = ledger.balance === 0 ? "Every packet is accounted for." : `NOT ACCOUNTED FOR: ${whole(ledger.balance)}`;
  text($("equation"), `${whole(ledger.seen)} seen = ${parts.join(" + ")}. ${rest}`);
  rows($("fates"), [
    ["decoded", { n: figure(ledger.decoded, report.decoded_figure) }],
    ["filtered out by the expression", { n: whole(ledger.filtered) }],
    ...undecoded.map(([name, n]) => [`not decoded: ${name.replaceAll("_", " ")}`, { n: whole(n) }]),
    ["not accounted for", { n: whole(ledger.balance) }],
    ...Object.entries(ledger.services || {}).map(([rule, n]) => [`service named by ${RULES[rule] || rule}`, { n: whole(n) }]),
    ...Object.entries(ledger.source || {}).map(([name, n]) => [`counted by the source: ${name.replaceAll("_", " ")}`, { n: whole(n) }]),
  ]);
  const list = (words, object) => Object.entries(object).map(([name, n]) => [`${words}: ${name.replaceAll("_", " ")}`, { n: whole(n) }]);
  rows($("limits"), [...list("refused by a full table", ledger.refused), ...list("lookup without an answer", ledger.dont_know)]);
}

// With --save-dir: the files of this run, and those that the previous run left.
function showSaved(saved) {
  $("saved-panel").hidden = !saved;
  $("found").hidden = !saved || (!saved.error && (!saved.found || saved.found.ended_by_itself));
  if (!saved) return;
  const { found } = saved;
  const killed = found && !found.ended_by_itself;
  const after = killed && found.lost_after ? ` after ${moment(found.lost_after)}` : "";
  const lost = killed ? `The previous run was killed: its packets${after} are lost, at most ${whole(found.lost_seconds_at_most)} s of traffic.` : "";
  text($("found"), saved.error || `${lost} ${found && found.last_file ? `Its last file is ${found.last_file}.` : ""}`.trim());
  text($("c-saved"), `one per period of ${whole(saved.period_seconds)} s, in ${saved.directory}`);
  rows($("saved"), [
    ["files of this run", { n: whole(saved.files) }],
    ["packets in these files", { n: whole(saved.packets) }],
    ["last file", { n: saved.last_file || "none yet" }],
    ["last packet in it", { n: moment(saved.last_file_until) }],
    ["periods that could not be written", { n: whole(saved.failed) }],
    ...(found ? [["last file of the previous run", { n: found.last_file || "none" }], ["last packet in it", { n: moment(found.last_file_until) }],
      ["half-written files removed", { n: whole(found.half_written_removed) }]] : []),
  ]);
}

// With --netflow: the exporters and their counters.
function showExporters(exporters) {
  $("exporters-panel").hidden = exporters === undefined;
  rows($("exporters"), (exporters || []).map((one) => {
    const troubles = Object.entries(one.ledger).filter(([name, n]) => n > 0 && name !== "records");
    const words = [...troubles.map(([name, n]) => `${whole(n)} ${name.replaceAll("_", " ")}`), ...one.not_known.map((what) => `not known: ${what}`)];
    const version = one.version === 10 ? "IPFIX" : `NetFlow ${one.version}`;
    const sampling = one.sampling ? `1 in ${whole(one.sampling.rate)}, from ${one.sampling.from}` : "none";
    return [`${one.exporter}, domain ${one.domain}`, version, { n: whole(one.counted) }, { n: whole(one.packets) }, sampling, words.join("; ")];
  }));
}

// P2P-like hosts; the report of a narrow filter has no such list.
function showPeers(p2p) {
  $("p2p-panel").hidden = p2p === undefined;
  const reasons = (host) => host.reasons.map((reason) => reason.text).join("; ");
  rows($("p2p"), (p2p || []).slice(0, 20).map((one) => [{ key: one.host }, { n: figure(one.score, one.score_figure) }, reasons(one)]));
}

// ---- charts, drawn by the server at the width of their place ----

async function drawCharts() {
  if ($("overview").hidden || document.hidden) return;
  const ground = theme();
  await Promise.all([...document.querySelectorAll("[data-chart]")].map(async (place) => {
    try {
      const answer = await get(`/api/v1/chart/${place.dataset.chart}?theme=${ground}&width=${place.clientWidth}`);
      if (!answer.ok || ground !== theme()) return;
      const drawn = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
      if (drawn.nodeName !== "svg") return;
      // The browser would show a title after a delay, and not on a touch screen.
      for (const title of drawn.querySelectorAll("title")) {
        title.parentNode.dataset.values = title.textContent;
        title.remove();
      }
      place.replaceChildren(document.importNode(drawn, true));
    } catch { /* the next second tries again */ }
  }));
  showTip();
}

let pointer = null;

// The values of the second under the pointer, beside it.
function showTip() {
  const under = pointer && document.elementFromPoint(pointer.x, pointer.y);
  const band = under && under.closest("[data-values]");
  const tip = $("tip");
  tip.hidden = !band;
  if (!band) return;
  text(tip, band.dataset.values);
  const left = Math.min(pointer.x + 14, innerWidth - tip.offsetWidth - 8);
  const below = pointer.y + 18 + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below ? pointer.y + 18 : pointer.y - 10 - tip.offsetHeight}px`;
}

for (const kind of ["pointermove", "pointerdown"]) {
  document.addEventListener(kind, (event) => {
    pointer = { x: event.clientX, y: event.clientY };
    showTip();
  });
}
document.documentElement.addEventListener("pointerleave", () => { pointer = null; showTip(); });
document.addEventListener("scroll", () => { pointer = null; showTip(); }, { passive: true });

let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(drawCharts, 100);
});

// ---- lookups ----

async function ask(question, scroll) {
  $("q").value = question;
  const place = $("answer");
  place.hidden = false;
  try {
    const answer = await get(`/api/v1/query?q=${encodeURIComponent(question)}`);
    const json = await answer.json();
    place.replaceChildren(...(answer.ok ? answered(json) : [make("p", json.error.message, "error")]));
  } catch {
    place.replaceChildren(make("p", "The server does not answer.", "error"));
  }
  if (scroll) {
    $("ask").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    $("q").focus({ preventScroll: true });
  }
}

const SEEN = {
  yes: ["yes", "certain: the key has its own entry"],
  no: ["no", "certain: the tables never refused a key like this"],
  unknown: ["perhaps", "not certain: the key has no entry, and the tables refused others"],
};

function answered(json) {
  const list = make("dl");
  const line = (name, words, certainty, sure) => {
    const value = make("dd");
    value.append(words);
    if (certainty) value.append(" ", make("span", certainty, sure ? "sure" : "unsure"));
    list.append(make("dt", name), value);
  };
  const key = make("code");
  key.append(...keyParts(json.key));
  key.classList.toggle("long", json.key.length > 60);
  line({ flow: "Flow", address: "Address", port: "Service" }[json.kind], key);
  const [seen, why] = SEEN[json.seen];
  line("Seen", seen, why, json.seen !== "unknown");
  for (const [name, label] of [["bytes", "Bytes"], ["packets", "Packets"]]) {
    const { most, least, certainty } = json[name];
    const shown = figure(most, { kind: certainty, interval: [least, most] });
    line(label, shown.text, shown.words, least === most);
  }
  if (json.connection) showState(json.connection, line);
  if (json.source) {
    const words = { yes: "yes", no: "no", unknown: "perhaps" }[json.source];
    line("Seen as a source", words, json.source === "unknown" ? "not certain: the table was full" : "certain", json.source !== "unknown");
  }
  if (json.community_id) line("Community ID", make("code", json.community_id));
  return [list];
}

function showState(tcp, line) {
  const room = tcp.refused_for_lack_of_room;
  if (tcp.answer === "dont_know") {
    line("State", "unknown", room ? `the table did not follow ${whole(room)} packets, perhaps of this connection` : "two connections share one cell", false);
    return;
  }
  if (tcp.answer === "absent") {
    line("State", "no connection now", room ? `or one of ${whole(room)} that the table refused` : "certain: never opened, or ended and expired", !room);
    return;
  }
  const phase = { half_open: "half open", open: "open", over: "ended", other: "open, no beginning seen" }[tcp.phase];
  const sure = tcp.wrong_at_most > 0 ? `wrong with a chance of at most one in ${whole(1 / tcp.wrong_at_most)}` : "certain";
  line("State", `${phase} (${tcp.outcome}: ${MEANINGS[tcp.outcome]})`, sure, true);
  line("Opened by", make("code", tcp.opened_by));
}

// The key / moves to the search field, unless the user types into a field.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
  event.preventDefault();
  $("q").focus();
  $("q").select();
});

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask($("q").value, false);
});

// ---- the token ----

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("sidon-token", token);
  tick();
});

function wantToken() {
  const form = $("token-form");
  if (form.hidden) {
    form.hidden = false;
    $("token").focus();
  }
  text($("token-error"), token ? "The token is wrong." : "");
  text($("status"), "token needed");
}

// A link sends no token. If the server needs one, the script fetches the target and opens its text.
document.querySelector("footer").addEventListener("click", async (event) => {
  const link = event.target.closest("a");
  if (!link || !token) return;
  event.preventDefault();
  try {
    const answer = await get(link.getAttribute("href"));
    if (answer.status === 401) {
      wantToken();
      return;
    }
    const type = (answer.headers.get("content-type") || "").startsWith("application/json") ? "application/json" : "text/plain;charset=utf-8";
    const url = URL.createObjectURL(new Blob([await answer.text()], { type }));
    if (!window.open(url)) location.assign(url);
  } catch {
    text($("status"), "no connection");
  }
});

// ---- once a second ----

let paused = false;
let timer = 0;

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) tick();
});

async function tick() {
  clearTimeout(timer);
  // Some browsers send no event when the preferred theme changes.
  if (document.documentElement.dataset.theme !== theme()) showTheme();
  if (!paused && !document.hidden) {
    try {
      const answer = await get("/api/v1/report");
      if (answer.status === 401) {
        wantToken();
        return;
      }
      $("token-form").hidden = true;
      const all = await answer.json();
      if (answer.ok && (!latest || all.number !== latest.number || $("status").classList.contains("lost"))) {
        show(all);
        await drawCharts();
      }
    } catch {
      text($("status"), "no connection");
      $("status").className = "pill lost";
    }
  }
  clearTimeout(timer);
  timer = setTimeout(tick, 1000);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
tick();
