// The page: asks for the report once a second and writes figures in place. Text is only ever set as
// text, and rows are kept from one second to the next, so that nothing flickers and focus stays.
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

function make(name, words, kind) {
  const node = document.createElement(name);
  if (words !== undefined) node.textContent = words;
  if (kind) node.className = kind;
  return node;
}

// ---- what is asked for ----

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

// A row is a list of cells; a cell is a text, {n: text} for a number or {key: text} for a key.
function rows(body, list) {
  while (body.rows.length > list.length) body.deleteRow(-1);
  list.forEach((cells, i) => {
    const row = body.rows[i] || body.insertRow();
    cells.forEach((cell, j) => {
      const at = row.cells[j] || row.insertCell();
      if (cell.key !== undefined) {
        if (!at.firstChild || at.firstChild.nodeName !== "BUTTON") {
          const button = make("button");
          button.type = "button";
          button.title = "Ask about this";
          button.addEventListener("click", () => ask(button.textContent, true));
          at.replaceChildren(button);
        }
        text(at.firstChild, cell.key);
      } else if (cell.n !== undefined) {
        at.className = "n";
        text(at, cell.n);
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

function mark(most, least) {
  return `${most === least ? "=" : "≤"} ${whole(most)}`;
}

function complete(count, list) {
  if (!list.length) return "";
  return count === list.length ? "the list is certainly complete" : `${count} of the truly heaviest are certainly listed`;
}

function evidence(alarm) {
  const parts = Object.entries(alarm.evidence).map(([name, n]) => `${whole(n)} ${name.replaceAll("_", " ")}`);
  return parts.join(", ");
}

const clock = (iso) => iso.slice(11, 19);
const moment = (iso) => (iso ? `${iso.slice(0, 10)} ${clock(iso)} UTC` : "");

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
    const held = alarm.earlier ? "and held when its period was saved" : "and holds";
    const until = alarm.closed ? `until ${clock(alarm.closed)}` : held;
    text(item.children[0], `${alarm.text}, from ${clock(alarm.opened)} ${until}`);
    text(item.children[1], evidence(alarm));
    text(item.children[2], `tcpdump '${alarm.filter}'`);
  });
}

const MEANINGS = {
  S0: "asked, no answer", S1: "answered, no end seen", SF: "opened and closed", REJ: "refused",
  S2: "the opener has closed", S3: "the other end has closed", RSTO: "reset by the opener",
  RSTR: "reset by the other end", RSTOS0: "asked, then reset by the opener",
  RSTRH: "answered, then reset; no SYN seen", SH: "SYN, then FIN; no answer seen",
  SHR: "SYN-ACK, then FIN; no SYN seen", OTH: "from the middle, no beginning seen",
};

// ---- the report ----

let latest = null;
let announced = null;

function show(all) {
  const report = all.report;
  const tcp = report.connections;
  latest = all;
  text($("source"), all.source.name);
  document.title = `Sidon: ${all.source.name}`;
  text($("status"), all.source.status === "running" ? "running" : "over");
  $("status").className = `pill ${all.source.status}`;
  $("status").title = all.source.detail || "";
  const since = all.saved && report.first ? ` since ${clock(report.first)}` : "";
  text($("updated"), `${whole(report.packets)} packets${since}, ${clock(all.time)} UTC`);

  text($("t-pps"), whole(all.rates.packets_per_second));
  text($("t-bps"), bits(all.rates.bits_per_second));
  text($("t-memory"), bytes(report.memory.allocated));
  const resident = all.process.resident_bytes;
  text($("t-budget"), `fixed${resident ? `; process ${bytes(resident)}` : ""}`);
  // A sampled count is an estimate.
  const about = tcp.sampling ? "~ " : "";
  text($("t-half"), about + whole(tcp.half_open));
  text($("t-peak"), tcp.sampling ? `sampled: 1 in ${whole(tcp.sampling.one_in_most)}`
    : `${whole(tcp.peak_half_open)} at the most`);
  text($("t-open"), whole(tcp.open));
  text($("t-came"), `${whole(tcp.came_about)} came about`);
  const certainty = { exact: "= ", at_least: "≥ " }[report.new_sources_certainty] || "? ";
  text($("t-new"), certainty + whole(report.new_sources_total));
  text($("t-subnets"), `in ${certainty}${whole(report.new_sources_subnets)} subnets`);

  const earlier = all.earlier_alarms.map((alarm) => ({ ...alarm, earlier: true }));
  const alarms = [...earlier, ...report.alarms].reverse();
  const holding = report.alarms.filter((alarm) => !alarm.closed);
  text($("t-alarms"), whole(holding.length));
  text($("t-raised"), `${whole(all.alarms_total)} raised in all`);
  $("tile-alarms").classList.toggle("holds", holding.length > 0);
  $("n-alarms").hidden = holding.length === 0;
  text($("n-alarms"), whole(holding.length));
  alarmList($("latest"), alarms.slice(0, 3));
  alarmList($("all-alarms"), alarms);
  // Only what is new is read out, and the first report is not news.
  if (announced !== null && all.alarms_total > announced && alarms.length) text($("announce"), `Alarm: ${alarms[0].text}`);
  announced = all.alarms_total;

  rows($("flows"), report.top_flows.map((flow) => [
    { key: flow.key }, { n: mark(flow.bytes, flow.lower) }, { n: flow.bytes === flow.lower ? "" : whole(flow.lower) },
    { n: mark(flow.packets, flow.packets_lower) }]));
  text($("c-flows"), complete(report.top_flows_complete, report.top_flows));
  for (const kind of ["hosts", "ports"]) {
    const list = report[`top_${kind}`];
    rows($(kind), list.slice(0, 12).map((one) => [
      { key: one.key }, { n: mark(one.bytes, one.lower) }, { n: mark(one.packets, one.packets_lower) }]));
    text($(`c-${kind}`), complete(report[`top_${kind}_complete`], list));
  }
  showPeers(report.p2p);

  const states = Object.keys(tcp.by_state).filter((name) => tcp.by_state[name] > 0);
  rows($("states"), states.map((name) => [
    name, MEANINGS[name] || "", { n: about + whole(tcp.present_by_state[name]) }, { n: about + whole(tcp.by_state[name]) }]));
  const odds = tcp.stranger_rate > 0 ? `one in ${whole(1 / tcp.stranger_rate)}` : "none";
  text($("stranger"), `${whole(tcp.dont_know)} could not be told apart. The chance that a new connection is taken for another: ${odds}.`);
  rows($("sources"), report.new_sources.slice(0, 20).map((one) => [one.subnet, { n: whole(one.count) }]));
  text($("c-sources"), report.new_sources_subnets > 20 ? `the first 20 of ${whole(report.new_sources_subnets)}` : "");

  showLedger(report);
  showExporters(all.source.exporters);
  showSaved(all.saved);
}

function showLedger(report) {
  const ledger = report.ledger;
  const undecoded = Object.entries(ledger.undecoded);
  const parts = [`${whole(ledger.decoded)} decoded`];
  if (ledger.filtered) parts.push(`${whole(ledger.filtered)} filtered`);
  for (const [name, n] of undecoded) parts.push(`${whole(n)} ${name}`);
  const rest = ledger.balance === 0 ? "Every packet is accounted for." : `NOT ACCOUNTED FOR: ${whole(ledger.balance)}`;
  text($("equation"), `${whole(ledger.seen)} seen = ${parts.join(" + ")}. ${rest}`);
  rows($("fates"), [
    ["decoded", { n: whole(ledger.decoded) }],
    ["filtered out by the expression", { n: whole(ledger.filtered) }],
    ...undecoded.map(([name, n]) => [`not decoded: ${name.replaceAll("_", " ")}`, { n: whole(n) }]),
    ["not accounted for", { n: whole(ledger.balance) }],
    ...Object.entries(ledger.source || {}).map(([name, n]) => [`the source says: ${name.replaceAll("_", " ")}`, { n: whole(n) }]),
  ]);
  const list = (words, object) => Object.entries(object).map(([name, n]) => [`${words}: ${name.replaceAll("_", " ")}`, { n: whole(n) }]);
  rows($("limits"), [...list("refused, table full", ledger.refused), ...list("don't know", ledger.dont_know)]);
}

// Periods that go to files, if they do, and what an earlier run left.
function showSaved(saved) {
  $("saved-panel").hidden = !saved;
  $("found").hidden = !saved || (!saved.error && (!saved.found || saved.found.ended_by_itself));
  if (!saved) return;
  const { found } = saved;
  const killed = found && !found.ended_by_itself;
  const after = killed && found.lost_after ? ` after ${moment(found.lost_after)}` : "";
  const lost = killed ? `The run before did not end by itself: what it saw${after} is lost, ${whole(found.lost_seconds_at_most)} s at the most.` : "";
  text($("found"), saved.error || `${lost} ${found && found.last_file ? `Its last file is ${found.last_file}.` : ""}`.trim());
  text($("c-saved"), `one for every ${whole(saved.period_seconds)} s, in ${saved.directory}; all tables are of the period of now`);
  rows($("saved"), [
    ["files of this run", { n: whole(saved.files) }],
    ["packets in them", { n: whole(saved.packets) }],
    ["the last of them", { n: saved.last_file || "none yet" }],
    ["up to", { n: moment(saved.last_file_until) }],
    ["periods that could not be written", { n: whole(saved.failed) }],
    ...(found ? [["the last file of the run before", { n: found.last_file || "none" }], ["up to", { n: moment(found.last_file_until) }],
      ["half-written files removed", { n: whole(found.half_written_removed) }]] : []),
  ]);
}

// Routers that send records of flows, if it is them that the server hears.
function showExporters(exporters) {
  $("exporters-panel").hidden = exporters === undefined;
  rows($("exporters"), (exporters || []).map((one) => {
    const troubles = Object.entries(one.ledger).filter(([name, n]) => n > 0 && name !== "records");
    const words = [...troubles.map(([name, n]) => `${whole(n)} ${name.replaceAll("_", " ")}`), ...one.not_known.map((what) => `not known: ${what}`)];
    const version = one.version === 10 ? "IPFIX" : `NetFlow ${one.version}`;
    const sampling = one.sampling ? `estimated x${whole(one.sampling.rate)}, from ${one.sampling.from}` : "none";
    return [`${one.exporter}, domain ${one.domain}`, version, { n: whole(one.counted) }, { n: whole(one.packets) }, sampling, words.join("; ")];
  }));
}

// Hosts that look like peers, if the report says so.
function showPeers(p2p) {
  $("p2p-panel").hidden = p2p === undefined;
  const reasons = (host) => host.reasons.map((reason) => reason.text).join("; ");
  rows($("p2p"), (p2p || []).slice(0, 20).map((one) => [{ key: one.host }, { n: whole(one.score) }, reasons(one)]));
}

// ---- charts, drawn by the server ----

async function drawCharts() {
  if ($("overview").hidden || document.hidden) return;
  const ground = theme();
  await Promise.all([...document.querySelectorAll("[data-chart]")].map(async (place) => {
    try {
      const answer = await get(`/api/v1/chart/${place.dataset.chart}?theme=${ground}`);
      if (!answer.ok || ground !== theme()) return;
      const drawn = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
      if (drawn.nodeName === "svg") place.replaceChildren(document.importNode(drawn, true));
    } catch { /* the next second tries again */ }
  }));
}

// ---- questions ----

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
  yes: ["yes", "certain: it has an entry of its own"],
  no: ["no", "certain: nothing was ever turned away where it would be"],
  unknown: ["perhaps", "not known: it has no entry, but others were turned away"],
};

function answered(json) {
  const list = make("dl");
  const line = (name, words, certainty, sure) => {
    const value = make("dd");
    value.append(words);
    if (certainty) value.append(make("span", certainty, sure ? "sure" : "unsure"));
    list.append(make("dt", name), value);
  };
  const key = make("code", json.key);
  line({ flow: "Flow", address: "Address", port: "Service" }[json.kind], key);
  const [seen, why] = SEEN[json.seen];
  line("Seen", seen, why, json.seen !== "unknown");
  for (const name of ["bytes", "packets"]) {
    const { most, least, certainty } = json[name];
    const exact = certainty === "exact";
    line(name === "bytes" ? "Bytes" : "Packets", mark(most, least), exact ? "exact" : `at least ${whole(least)}`, exact);
  }
  if (json.connection) showState(json.connection, line);
  if (json.source) {
    const words = { yes: "yes", no: "no", unknown: "not known" }[json.source];
    line("Seen as a source", words, json.source === "unknown" ? "the table had no room for some address" : "certain", json.source !== "unknown");
  }
  if (json.community_id) line("Community ID", make("code", json.community_id));
  return [list];
}

function showState(tcp, line) {
  if (tcp.answer === "dont_know") {
    line("State", "don't know", "two connections share the cell; this is not a guess", false);
    return;
  }
  if (tcp.answer === "absent") {
    const room = tcp.refused_for_lack_of_room;
    line("State", "no connection now", room ? `or one of ${whole(room)} that there was no room for` : "certain: none, or over and forgotten", !room);
    return;
  }
  const phase = { half_open: "half open", open: "open", over: "over", other: "under way" }[tcp.phase];
  const sure = tcp.wrong_at_most > 0 ? `wrong with a chance of at most one in ${whole(1 / tcp.wrong_at_most)}` : "certain";
  line("State", `${phase} (${tcp.outcome}: ${MEANINGS[tcp.outcome]})`, sure, true);
  line("Opened by", make("code", tcp.opened_by));
}

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
  text($("token-error"), token ? "That is not the token." : "");
  text($("status"), "token needed");
}

// A link carries no token: with one, what it points to is fetched, and opened as a text.
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
  // Not every browser tells of every change.
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
