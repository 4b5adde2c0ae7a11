// Driven by scripts/dashboard-in-chromium: every control of the page is used, and what it does is checked.
import { chromium } from "playwright-core";
import assert from "node:assert/strict";

const { ADDRESS, CHROMIUM, OUT } = process.env;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
const page = await context.newPage();
const problems = [];
const elsewhere = [];
page.on("console", (message) => {
  // Requests without the token and what is no question are meant to be refused.
  if (message.type() === "error" && !/status of 40[01]/.test(message.text())) problems.push(message.text());
});
page.on("pageerror", (error) => problems.push(String(error)));
page.on("request", (request) => { if (!request.url().startsWith(ADDRESS)) elsewhere.push(request.url()); });
const shot = async (name) => { await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true }); console.log(`${OUT}/${name}.png`); };
const figure = async (id) => Number((await page.textContent(`#${id}`)).replace(/[^0-9.]/g, ""));

// The token.
await page.goto(ADDRESS);
await page.waitForSelector("#token-form:not([hidden])");
await page.fill("#token", "wrong");
await page.press("#token", "Enter");
await page.waitForFunction(() => document.getElementById("token-error").textContent.includes("not the token"));
await page.fill("#token", "s3cret");
await page.press("#token", "Enter");
await page.waitForSelector("#token-form", { state: "hidden" });
await page.waitForSelector(".chart svg");

// Figures move by themselves, rows stay the same nodes: nothing flickers.
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

// A key in a table is asked about; the answer carries its certainty.
await page.click("#flows tr:first-child button");
await page.waitForSelector("#answer dl");
let answer = await page.textContent("#answer");
assert.match(answer, /Seen\s*yes/);
assert.match(answer, /exact|at least/);
await page.fill("#q", "192.0.2.1:1 192.0.2.2:2 tcp");
await page.press("#q", "Enter");
await page.waitForFunction(() => document.getElementById("answer").textContent.includes("192.0.2.1:1"));
answer = await page.textContent("#answer");
assert.match(answer, /Seen(no|perhaps).*no connection now/);
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
// What the run before left, and the files.
assert.match(await page.textContent("#found"), /did not end by itself.* is lost, 2 s at the most\. Its last file is sidon-/);
assert.match(await page.textContent("#saved"), /the last file of the run before\s*sidon-/);
assert.match(await page.textContent("#c-saved"), /one for every 86,400 s, in /);
await shot("ledger-light");
await page.keyboard.press("Home");
assert.equal(await page.isVisible("#overview"), true);

// Dark by its button, and kept over a new visit; then as the system prefers.
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

// The scan and the flood come: alarms, and memory that has not moved.
const memory = await page.textContent("#t-memory");
await page.waitForFunction(() => document.getElementById("latest").textContent.includes("SYN flood at 198.18.0.7"), null, { timeout: 90_000 });
assert.match(await page.textContent("#announce"), /Alarm/);
await page.waitForTimeout(2500);
// One of the heaviest flows is a connection that is there.
for (const flow of await page.evaluate(() => [...document.querySelectorAll("#flows button")].map((button) => button.textContent))) {
  await page.fill("#q", flow);
  await page.press("#q", "Enter");
  await page.waitForFunction((ends) => document.getElementById("answer").textContent.includes(ends), flow.split(" ")[0]);
  if ((await page.textContent("#answer")).includes("Opened by")) break;
}
assert.match(await page.textContent("#answer"), /wrong with a chance of at most one in [0-9,]+/);
await shot("overview-dark");
await page.click("#tab-alarms");
assert.match(await page.textContent("#all-alarms"), /203\.0\.113\.66/);
await shot("alarms-dark");
assert.equal(await page.textContent("#t-memory"), memory);
assert.ok(await figure("t-half") > 1000);
await page.emulateMedia({ colorScheme: "light" });
await page.click("#tab-overview");
await page.waitForTimeout(1500);
await shot("overview-light");

// Links that need the token have it.
for (const [path, words] of [["/metrics", /sidon_packets_total [0-9]/], ["/api/v1/report", /"version":1/]]) {
  const [opened] = await Promise.all([context.waitForEvent("page"), page.click(`footer a[href="${path}"]`)]);
  await opened.waitForLoadState();
  assert.match(await opened.textContent("body"), words);
  await opened.close();
}

// Pause stops it.
await page.click("#pause");
await page.waitForTimeout(1200);
const still = await page.textContent("#updated");
await page.waitForTimeout(2200);
assert.equal(await page.textContent("#updated"), still);
await page.click("#pause");

// A small screen does not scroll sideways; every control has a name.
await page.setViewportSize({ width: 390, height: 844 });
await page.waitForTimeout(300);
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling");
await shot("overview-small");
const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input")].filter((control) =>
  !(control.textContent.trim() || control.labels?.length || control.getAttribute("aria-label"))).map((control) => control.outerHTML));
assert.deepEqual(nameless, []);
const images = await page.evaluate(() => [...document.querySelectorAll(".chart svg")].map((svg) => [svg.getAttribute("role"), Boolean(svg.getAttribute("aria-label"))]));
assert.ok(images.length === 4 && images.every(([role, label]) => role === "img" && label));

assert.deepEqual(problems, []);
assert.deepEqual(elsewhere, []);
await browser.close();
console.log("the page holds: token, saved files, links, tables, questions, tabs, dark mode, alarms, pause, small screen");
