"use strict";
// Opens the page of `yoctuned serve` in headless Chromium, does what a person would,
// and prints what it saw as JSON. browser_test.go judges.
//
//   node page.cjs CHROMIUM ONE-SAMPLE-URL LIVE-URL FOLDER-FOR-SCREENSHOTS
const { chromium } = require("playwright-core");
const path = require("node:path");

const [program, once, live, folder] = process.argv.slice(2);
const patience = 60000;

// open opens a page and collects whatever goes wrong in it.
async function open(browser, url, saw, options) {
  // A 12-hour locale far from UTC: the page shows 24 hours of local time anyway.
  const context = await browser.newContext({ locale: "en-US", timezoneId: "America/New_York", ...options });
  await context.addInitScript(recordTexts);
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  // That canvases are read back is this test's doing.
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !m.text().includes("willReadFrequently")) saw.complaints.push(m.text()); });
  page.on("pageerror", (e) => saw.complaints.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(url) && !r.url().startsWith("data:")) saw.elsewhere.push(r.url()); });
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("state").textContent === "live");
  return page;
}

// recordTexts keeps what is written on each canvas since it was last cleared, and where.
function recordTexts() {
  const proto = CanvasRenderingContext2D.prototype, { fillText, clearRect } = proto;
  proto.clearRect = function (...args) { this.canvas.texts = []; return clearRect.apply(this, args); };
  proto.fillText = function (text, x, y, ...rest) {
    const m = this.measureText(text), t = this.getTransform();
    const rotated = Math.abs(t.b) > 0.01; // the label of an axis
    if (!rotated) (this.canvas.texts ??= []).push({ text, left: t.e + x - m.actualBoundingBoxLeft, right: t.e + x + m.actualBoundingBoxRight, top: t.f + y - m.actualBoundingBoxAscent, bottom: t.f + y + m.actualBoundingBoxDescent });
    return fillText.call(this, text, x, y, ...rest);
  };
}

// texts are those of each chart.
const texts = () => Object.fromEntries([...document.querySelectorAll(".chart")].map((box) => [box.dataset.chart, (box.querySelector("canvas").texts || []).map((t) => t.text)]));

// overlaps are texts of a chart that cover each other or leave the canvas, and elements of the
// page that do.
const overlaps = () => {
  const out = [];
  for (const box of document.querySelectorAll(".chart")) {
    const canvas = box.querySelector("canvas"), all = canvas.texts || [];
    all.forEach((a, i) => {
      if (a.left < -1 || a.right > canvas.width + 1) out.push(`${box.dataset.chart}: ${a.text} is cut off`);
      for (const b of all.slice(i + 1)) if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) out.push(`${box.dataset.chart}: ${a.text} covers ${b.text}`);
    });
  }
  const blocks = [...document.querySelectorAll("header > *, .tile, .chart, .table, .chart h2, .u-legend, .tile > *")].filter((e) => e.offsetWidth > 0);
  blocks.forEach((a, i) => {
    const p = a.getBoundingClientRect();
    for (const b of blocks.slice(i + 1)) {
      if (a.contains(b) || b.contains(a)) continue;
      const q = b.getBoundingClientRect();
      if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1) out.push(`${a.id || a.className || a.textContent} covers ${b.id || b.className || b.textContent}`);
    }
  });
  return out;
};

// covered is the share of each chart's width on which something coloured was drawn: a curve from
// the left edge on, or only its last moments.
const covered = () => Object.fromEntries([...document.querySelectorAll(".chart")].map((box) => {
  const c = box.querySelector("canvas"), left = Math.round(62 * devicePixelRatio), width = c.width - left;
  const d = c.getContext("2d").getImageData(left, 0, width, c.height).data;
  let columns = 0;
  for (let x = 0; x < width; x++) {
    for (let y = 0; y < c.height; y++) {
      const i = 4 * (y * width + x);
      if (d[i + 3] > 128 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) { columns++; break; }
    }
  }
  return [box.dataset.chart, columns / width];
}));

// misfits are charts that are not as wide as their box, tables that need more room than
// a desk has, and a page that scrolls sideways.
const misfits = () => {
  const out = [];
  for (const box of document.querySelectorAll(".chart")) {
    const plot = box.querySelector(".u-wrap");
    if (!plot) { out.push(`${box.dataset.chart}: no plot`); continue; }
    const inside = box.clientWidth, width = plot.getBoundingClientRect().width;
    if (width > inside || width < inside * 0.8) out.push(`${box.dataset.chart}: ${width} px in ${inside}`);
  }
  for (const t of document.querySelectorAll(".table")) if (innerWidth > 1000 && t.scrollWidth > t.clientWidth) out.push(`${t.id || "drift"}: ${t.scrollWidth} px in ${t.clientWidth}`);
  if (document.documentElement.scrollWidth > innerWidth) out.push(`the page is ${document.documentElement.scrollWidth} px wide in ${innerWidth}`);
  return out;
};

// painted counts the pixels of each chart that have a colour, which text and grid have not.
const painted = () => Object.fromEntries([...document.querySelectorAll(".chart")].map((box) => {
  const c = box.querySelector("canvas");
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 128 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) n++;
  return [box.dataset.chart, n];
}));

// until asks the page again and again: its policy forbids what waitForFunction does
// with expressions.
async function until(page, ask, right) {
  const late = Date.now() + patience;
  for (;;) {
    const got = await page.evaluate(ask);
    if (right(got)) return got;
    if (Date.now() > late) throw new Error(`${ask}: still ${JSON.stringify(got)}`);
    await page.waitForTimeout(50);
  }
}

const fits = (list) => list.length === 0;
const drawn = (all) => Object.values(all).every((n) => n > 20);

const colours = () => { const s = getComputedStyle(document.body); return `${s.backgroundColor} ${s.color}`; };

(async () => {
  const saw = { complaints: [], elsewhere: [] };
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });

  saw.misfits = {};
  saw.overlaps = {};
  for (const width of [360, 390, 800, 1280, 1600, 1920]) {
    const page = await open(browser, once, saw, { viewport: { width, height: 900 }, colorScheme: width === 1600 ? "dark" : "light" });
    await page.waitForSelector('[data-chart="Memory"] canvas');
    saw.misfits[`one sample, ${width}`] = await page.evaluate(misfits);
    await until(page, painted, (all) => all.Memory > 0 && all.Power > 0);
    saw.overlaps[width] = await page.evaluate(overlaps);
    if (width === 360 || width === 800 || width === 1600) await page.screenshot({ path: path.join(folder, `${width}.png`), fullPage: true });
    await page.context().close();
  }

  // One sample was taken since the page is open; all else comes from the history, at once.
  const history = await open(browser, once, saw, { viewport: { width: 1280, height: 900 } });
  saw.covered = {};
  saw.texts = {};
  for (const [key, name] of [["4", "24 h"], ["1", "1 min"], ["2", "5 min"], ["3", "1 h"]]) {
    await history.keyboard.press(key);
    saw.covered[name] = await until(history, covered, (all) => all.Load > 0.7);
    saw.texts[name] = await history.evaluate(texts);
    saw.overlaps[name] = await history.evaluate(overlaps);
    await history.screenshot({ path: path.join(folder, `history-${name.replace(" ", "-")}.png`), fullPage: true });
  }
  saw.legendTime = await history.textContent('[data-chart="Load"] .u-legend tr');
  await history.context().close();

  const page = await open(browser, live, saw, { viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  await page.waitForFunction(() => document.querySelector('[data-chart="Load"] .u-legend') !== null);
  await page.keyboard.press("1");
  saw.painted = await until(page, painted, drawn);
  saw.tiles = Object.fromEntries(await page.$$eval(".tile", (all) => all.map((t) => [t.querySelector("span").textContent, t.querySelector("b").textContent])));
  saw.legend = await page.textContent('[data-chart="Power"] .u-legend');
  saw.mode = await page.textContent("#mode");
  saw.host = await page.textContent("#host");
  saw.enforcer = await page.textContent("#enforcer");
  saw.title = await page.title();
  saw.drift = await page.textContent("#drift tbody");
  saw.pipelines = await page.textContent("#pipelines tbody");
  saw.pressed = await page.getAttribute('[data-range="60"]', "aria-pressed");
  saw.misfits["many samples, 1280"] = await page.evaluate(misfits);
  saw.light = await page.evaluate(colours);
  await page.screenshot({ path: path.join(folder, "light.png"), fullPage: true });
  await page.setViewportSize({ width: 600, height: 900 });
  await until(page, misfits, fits);
  await page.keyboard.press("d");
  saw.dark = await page.evaluate(colours);
  await page.setViewportSize({ width: 1280, height: 900 });
  await until(page, misfits, fits);
  await until(page, painted, drawn);
  await page.screenshot({ path: path.join(folder, "dark.png"), fullPage: true });
  await page.keyboard.press("4");
  await page.waitForFunction(() => document.querySelector('[data-range="86400"]').getAttribute("aria-pressed") === "true");

  // Paused, tiles stay; going on, they move again.
  const clock = () => [...document.querySelectorAll(".tile b")].map((b) => b.textContent).join();
  await page.keyboard.press("p");
  const held = await page.evaluate(clock);
  await page.waitForTimeout(600);
  saw.paused = held === await page.evaluate(clock);
  await page.keyboard.press("p");
  await until(page, clock, (now) => now !== held);

  // What the preference of the system is without a choice of one's own.
  const dark = await open(browser, live, saw, { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  saw.system = await dark.evaluate(colours);
  await until(dark, misfits, fits);
  await dark.screenshot({ path: path.join(folder, "phone-dark.png"), fullPage: true });

  // The enforcer is killed.
  await fetch(`${live}test/kill`, { method: "POST" });
  await page.waitForFunction(() => /nobody enforces/.test(document.getElementById("enforcer").textContent));
  saw.killed = await page.textContent("#enforcer");
  saw.driftNote = await page.textContent("#drift-note");
  await page.screenshot({ path: path.join(folder, "killed.png"), fullPage: true });

  // The device goes away.
  const complaints = saw.complaints.length;
  await fetch(`${live}test/end`, { method: "POST" });
  await page.waitForFunction(() => /disconnected/.test(document.getElementById("state").textContent));
  await page.waitForFunction(() => /[2-9] s old/.test(document.getElementById("state").textContent));
  saw.state = await page.textContent("#state");
  saw.old = await page.evaluate(() => document.body.classList.contains("old") && getComputedStyle(document.getElementById("tiles")).opacity < 1);
  await page.screenshot({ path: path.join(folder, "disconnected.png"), fullPage: true });
  saw.complaints.length = complaints; // the browser's own, about the connection
  await browser.close();
  console.log(JSON.stringify(saw));
})().catch((e) => { console.error(e); process.exit(1); });
