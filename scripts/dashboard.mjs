// Started by scripts/dashboard-in-chromium: uses every control of the page and checks the result.
import { chromium } from "playwright-core";
import assert from "node:assert/strict";

const { ADDRESS, CHROMIUM, OUT } = process.env;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
const page = await context.newPage();
const problems = [];
const elsewhere = [];
page.on("console", (message) => {
  // Requests without the token and one malformed query get an error on purpose.
  if (message.type() === "error" && !/status of 40[01]/.test(message.text())) problems.push(message.text());
});
page.on("pageerror", (error) => problems.push(String(error)));
page.on("request", (request) => { if (!request.url().startsWith(ADDRESS)) elsewhere.push(request.url()); });
const shot = async (name) => { await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true }); console.log(`${OUT}/${name}.png`); };
const figure = async (id) => Number((await page.textContent(`#${id}`)).replace(/\[.*/, "").replace(/[^0-9.]/g, ""));

// The token.
await page.goto(ADDRESS);
await page.waitForSelector("#token-form:not([hidden])");
await page.fill("#token", "wrong");
await page.press("#token", "Enter");
await page.waitForFunction(() => document.getElementById("token-error").textContent.includes("token is wrong"));
await page.fill("#token", "s3cret");
await page.press("#token", "Enter");
await page.waitForSelector("#token-form", { state: "hidden" });
await page.waitForSelector(".chart svg");

// Figures change without a reload, and rows stay the same nodes, so that nothing flickers.
await page.waitForFunction(() => Number(document.getElementById("t-pps").textContent.replace(/\D/g, "")) > 1000);
await page.click("#tab-traffic");
await page.waitForSelector("#flows tr:nth-child(10)");
const stays = await page.evaluate(async () => {
  const row = document.querySelector("#flows tr");
  const before = document.getElementById("updated").textContent;
  const wait = () => new Promise((done) => setTimeout(done, 100));
  for (let i = 0; i < 60 && document.getElementById("updated").textContent === before; i += 1) await wait();
  return { moved: document.getElementById("updated").textContent !== before, same: row === document.querySelector("#flows tr") };
});
assert.deepEqual(stays, { moved: true, same: true });
await shot("traffic-light");

// The key / moves to the search field, and types into it once it has the focus.
await page.focus("#tab-traffic");
await page.keyboard.press("/");
assert.equal(await page.evaluate(() => document.activeElement.id), "q");
await page.keyboard.type("443/");
assert.equal(await page.inputValue("#q"), "443/");

// A press on a key in a table looks it up; the answer has its certainty.
await page.click("#flows tr:first-child button");
await page.waitForSelector("#answer dl");
let answer = await page.textContent("#answer");
assert.match(answer, /Seen\s*yes/);
assert.match(answer, /Bytes(= [0-9,]+ The true number is [0-9,]+|<= [0-9,]+ The true number is between)/);
await page.fill("#q", "192.0.2.1:1 192.0.2.2:2 tcp");
await page.press("#q", "Enter");
await page.waitForFunction(() => document.getElementById("answer").textContent.includes("192.0.2.1:1"));
answer = await page.textContent("#answer");
assert.match(answer, /Seen(no|perhaps) .*no connection now/);
await page.fill("#q", "what is this");
await page.press("#q", "Enter");
await page.waitForSelector("#answer .error");
await page.fill("#q", "443/tcp");
await page.press("#q", "Enter");
await page.waitForFunction(() => document.getElementById("answer").textContent.includes("443/tcp"));

// Tabs by keyboard.
await page.focus("#tab-traffic");
await page.keyboard.press("ArrowRight");
assert.equal(await page.evaluate(() => document.activeElement.id), "tab-connections");
assert.equal(await page.isVisible("#connections"), true);
assert.equal(await page.isVisible("#traffic"), false);
await page.waitForSelector("#states tr:nth-child(3)");
await shot("connections-light");
await page.keyboard.press("End");
assert.equal(await page.isVisible("#ledger"), true);
assert.match(await page.textContent("#equation"), /Every packet is accounted for/);
// The files of this run and of the previous one, and the meaning of totals in a period.
assert.match(await page.textContent("#found"), /previous run was killed: its packets.* are lost, at most 2 s of traffic\. Its last file is sidon-/);
assert.match(await page.textContent("#saved"), /last file of the previous run\s*sidon-/);
assert.match(await page.textContent("#c-saved"), /one per period of 86,400 s, in /);
assert.match(await page.textContent("#period"), /the number now.*the maximum of the period.*the sum over the period/);
await shot("ledger-light");
await page.keyboard.press("Home");
assert.equal(await page.isVisible("#overview"), true);

// The button selects the dark theme, which a reload keeps. Without it the system decides.
const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await ground();
await page.click("#theme");
assert.notEqual(await ground(), light);
assert.equal(await page.getAttribute("#theme", "aria-pressed"), "true");
await page.reload();
await page.waitForSelector(".chart svg");
assert.notEqual(await ground(), light);
await page.evaluate(() => localStorage.clear());
for (const prefers of ["dark", "light", "dark"]) {
  await page.emulateMedia({ colorScheme: prefers });
  await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, prefers, { polling: 100 });
}

// The scan and the flood raise alarms, and the memory stays the same.
const memory = await page.textContent("#t-memory");
await page.waitForFunction(() => document.getElementById("latest").textContent.includes("SYN flood at 198.18.0.7"), null, { timeout: 90_000 });
assert.match(await page.textContent("#announce"), /Alarm/);
await page.waitForTimeout(2500);
// One of the heaviest flows is an open connection.
for (const flow of await page.evaluate(() => [...document.querySelectorAll("#flows button")].map((button) => button.textContent))) {
  await page.fill("#q", flow);
  await page.press("#q", "Enter");
  await page.waitForFunction((ends) => document.getElementById("answer").textContent.includes(ends), flow.split(" ")[0]);
  if ((await page.textContent("#answer")).includes("Opened by")) break;
}
assert.match(await page.textContent("#answer"), /wrong with a chance of at most one in [0-9,]+/);
await shot("overview-dark");
await page.click("#tab-alarms");
const alarms = await page.textContent("#all-alarms");
assert.match(alarms, /203\.0\.113\.66/);
// The list keeps the order of the report, and the two peaks have different names.
const order = await page.evaluate(async () => {
  const headers = { Authorization: "Bearer s3cret" };
  return (await (await fetch("/api/v1/report", { headers })).json()).report.incidents.map((incident) => `${incident.severity}: ${incident.text}`);
});
const listed = await page.evaluate(() => [...document.querySelectorAll("#all-alarms b")].map((item) => item.textContent));
assert.deepEqual(listed.slice(0, order.length).map((one, i) => one.startsWith(order[i])), order.map(() => true));
assert.match(alarms, /handshakes of the last 5 to 10 s incomplete/);
assert.match(await page.textContent("#t-peak"), /^peak at one time [=~<>?]/);
await shot("alarms-dark");
assert.equal(await page.textContent("#t-memory"), memory);
assert.ok(await figure("t-half") > 1000, await page.textContent("#t-half"));
await page.emulateMedia({ colorScheme: "light" });
await page.click("#tab-overview");
await page.waitForTimeout(1500);
await shot("overview-light");

// The links in the footer send the token.
for (const [path, words] of [["/metrics", /sidon_packets_total [0-9]/], ["/api/v1/report", /"version":1/]]) {
  const [opened] = await Promise.all([context.waitForEvent("page"), page.click(`footer a[href="${path}"]`)]);
  await opened.waitForLoadState();
  assert.match(await opened.textContent("body"), words);
  await opened.close();
}

// Pause stops the updates.
await page.click("#pause");
await page.waitForTimeout(1200);
const still = await page.textContent("#updated");
await page.waitForTimeout(2200);
assert.equal(await page.textContent("#updated"), still);
await page.click("#pause");

// Every control has a name, and so has every table and every chart.
const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input")].filter((control) =>
  !(control.textContent.trim() || control.labels?.length || control.getAttribute("aria-label"))).map((control) => control.outerHTML));
assert.deepEqual(nameless, []);
const tables = await page.evaluate(() => [...document.querySelectorAll("table")].filter((table) => !table.getAttribute("aria-label")).length);
assert.equal(tables, 0);
const images = await page.evaluate(() => [...document.querySelectorAll(".chart svg")].map((svg) => [svg.getAttribute("role"), Boolean(svg.getAttribute("aria-label"))]));
assert.ok(images.length === 4 && images.every(([role, label]) => role === "img" && label));
assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("[data-chart]")].map((place) => place.dataset.chart)), ["packets", "bits", "handshakes", "connections"]);

// The script writes no certainty by hand: each mark follows from the kind that the server sends.
for (const path of ["/", "/script.js"]) {
  assert.doesNotMatch(await (await fetch(ADDRESS + path)).text(), /exact/i, path);
}

// A report with a figure of each kind, the longest keys and large numbers.
const big = 18_446_744_073_709;
const long = "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:1111]:54321 <-> [2001:db8:aaaa:bbbb:cccc:dddd:eeee:2222]:65535 udplite";
function worst(all) {
  const set = (object, name, value, kind, interval) => {
    object[name] = value;
    object[`${name}_figure`] = { kind, interval };
  };
  const { connections: tcp, top_flows: flows, top_hosts: hosts } = all.report;
  set(tcp, "half_open", 1_228_711, "estimate", [1_100_000, 1_300_000]);
  set(tcp, "peak_half_open", 9_228_711, "estimate", [9_100_000, 9_300_000]);
  set(tcp, "open", 880, "exact", [880, 880]);
  set(tcp, "came_about", 92_875, "unknown", [0, null]);
  set(all.report, "new_sources_total", 184_744, "at_least", [184_744, null]);
  // An interval that does not fit its kind never gets the mark of the truth.
  set(all.report, "new_sources_subnets", 7, "exact", [7, 8]);
  set(flows[0], "bytes", big, "at_most", [big - 5, big]);
  flows[0].lower = big - 5;
  delete flows[1].bytes_figure;
  flows[0].key = long;
  hosts[0].key = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:1111";
  set(hosts[0], "bytes", big, "estimate", [big - 5, big + 5]);
  // One scan over three periods and an earlier flood; the scan of an hour ago is another one.
  const scan = (opened, closed) => ({ kind: "port_scan", severity: "low", subject: "10.9.9.9", text: "10.9.9.9 scans", filter: "src host 10.9.9.9", evidence: { attempts: 5 }, evidence_figure: { attempts: { kind: "at_least", interval: [5, null] } }, evidence_text: [">= 5 connection attempts"], opened: `2030-01-01T${opened}Z`, closed });
  all.saved.period_seconds = 60;
  all.earlier_alarms = [scan("08:59:00", null), { ...scan("09:30:00", "2030-01-01T09:31:00Z"), kind: "syn_flood", severity: "critical", text: "flood before" }, scan("10:00:10", null), scan("10:01:10", null)];
  all.report.incidents = all.report.alarms = [{ ...scan("10:02:20", null), kind: "syn_flood", severity: "critical", text: "flood now" }, scan("10:02:10", null)];
  for (const state of Object.keys(tcp.by_state)) {
    tcp.by_state[state] = big;
    (tcp.by_state_figure ||= {})[state] = { kind: "estimate", interval: [big - 5, big + 5] };
  }
  return all;
}
const marks = { "t-half": /^~ 1,228,711 \[1,100,000, 1,300,000\]$/, "t-open": /^= 880$/, "t-came": /\? 92,875$/, "t-new": /^>= 184,744$/, "t-subnets": /\? 7$/ };

for (const prefers of ["light", "dark"]) {
  for (const width of [1280, 400]) {
    for (const made of [worst, (all) => ({ ...all, saved: null })]) {
      const view = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: prefers });
      await view.addInitScript(() => sessionStorage.setItem("sidon-token", "s3cret"));
      await view.route("**/api/v1/report", async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, json: made(await answer.json()) });
      });
      const look = await view.newPage();
      look.on("pageerror", (error) => problems.push(String(error)));
      await look.goto(ADDRESS);
      await look.waitForFunction(() => document.querySelectorAll(".chart svg").length === 4);
      assert.equal(await look.evaluate(() => document.documentElement.dataset.theme), prefers);
      const name = `${width} px, ${prefers}`;
      if (made === worst) {
        for (const [id, expected] of Object.entries(marks)) assert.match(await look.textContent(`#${id}`), expected, `${name}: ${id}`);
        assert.equal(await look.getAttribute("#t-half .figure", "title"), "The true number is probably between 1,100,000 and 1,300,000.");
        assert.equal(await look.getAttribute("#t-new .figure", "title"), "The true number is 184,744 or more.");
        assert.match(await look.textContent("#flows tr:first-child"), /<= 18,446,744,073,709/);
        assert.deepEqual(await look.evaluate(() => [...document.querySelectorAll("#all-alarms li")].map((item) => `${item.children[0].textContent}: ${item.children[1].textContent}`)), [
          "critical: flood now, from 10:02:20, active now: >= 5 connection attempts",
          "low: 10.9.9.9 scans, from 10:00:10, active now: in the last period: >= 5 connection attempts",
          "critical: flood before, from 09:30:00, until 09:31:00: >= 5 connection attempts",
          "low: 10.9.9.9 scans, from 08:59:00, active at the end of its period: >= 5 connection attempts",
        ], name);
        assert.match(await look.textContent("#flows tr:nth-child(2) td:nth-child(2)"), /^[0-9,]+$/);
      } else {
        await look.screenshot({ path: `${OUT}/page-${width}-${prefers}.png`, fullPage: true });
        console.log(`${OUT}/page-${width}-${prefers}.png`);
      }
      // Text of charts is at least 11 pixels high on the screen.
      const sizes = await look.evaluate(() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        return [...svg.querySelectorAll("text")].map((label) => scale * parseFloat(getComputedStyle(label).fontSize));
      }));
      assert.ok(sizes.length > 20 && Math.min(...sizes) >= 11, `${name}: ${Math.min(...sizes)}`);
      // Labels stay inside their chart, and no two labels of a chart overlap.
      const clashes = await look.evaluate(() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
        const frame = svg.getBoundingClientRect();
        const labels = [...svg.querySelectorAll("text")].map((label) => [label.textContent, label.getBoundingClientRect()]);
        const out = labels.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1);
        const touch = labels.filter(([, a], i) => labels.some(([, b], j) => j > i && a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
        return [...out, ...touch].map(([words]) => words);
      }));
      assert.deepEqual(clashes, [], name);
      // The pointer shows the time and the value of every series.
      // The page moves when a report adds a line, so the pointer follows the chart.
      const point = async (chart) => {
        const place = look.locator(`[data-chart=${chart}]`);
        const words = `\n${{ handshakes: "open: ", bits: "bits per second: " }[chart]}`;
        for (let i = 0; i < 100; i += 1) {
          await place.evaluate((node) => node.scrollIntoView({ block: "center" }));
          const box = await place.boundingBox();
          if (box) await look.mouse.move(box.x + box.width - 20 - 3 * (i % 10), box.y + 100 + (i % 2));
          await look.waitForTimeout(200);
          const tip = await look.evaluate(() => (document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent));
          if (tip.includes(words)) return tip;
        }
        throw new Error(`${name}: the pointer shows no value of the chart ${chart}`);
      };
      assert.match(await point("handshakes"), /^(now|\d+ s ago)\nhalf open: [=~] [0-9,]+\nopen: [=~] [0-9,]+$/);
      assert.match(await point("bits"), /^(now|\d+ s ago)\nbits per second: [0-9.]+ [kMG]?bit\/s$/);
      await look.mouse.move(1, 1);

      for (const tab of ["overview", "traffic", "connections", "alarms", "ledger"]) {
        await look.click(`#tab-${tab}`);
        const wide = await look.evaluate(() => [document.documentElement, ...document.querySelectorAll(".panel, .panel td, #tiles li, #tabs, header")]
          .filter((node) => node.clientWidth && node.scrollWidth > node.clientWidth + 1).map((node) => `${node.tagName} ${node.textContent.slice(0, 80)}`));
        assert.deepEqual(wide, [], `${name}, ${tab}: wider than the screen`);
        // A key takes two lines at most, and neither end of a flow is broken.
        const broken = await look.evaluate(() => [...document.querySelectorAll("td.key button")].filter((button) => {
          const lines = new Set([...button.querySelectorAll("span")].flatMap((span) => [...span.getClientRects()].map((line) => Math.round(line.top))));
          return lines.size > 2 || [...button.querySelectorAll("span")].some((span) => span.getClientRects().length > 1);
        }).map((button) => button.textContent));
        assert.deepEqual(broken, [], `${name}, ${tab}: broken keys`);
      }
      assert.equal(await look.evaluate(() => document.querySelectorAll("td.key button span").length > 30), true);
      // A report that is still on its way through the route above is no failure.
      await view.unrouteAll({ behavior: "ignoreErrors" });
      await view.close();
    }
  }
}

assert.deepEqual(problems, []);
assert.deepEqual(elsewhere, []);
await browser.close();
console.log("the page passes: token, saved files, links, tables, lookups, tabs, / key, dark mode, alarms, pause, marks, hover, layout at 1280 and 400 px");
