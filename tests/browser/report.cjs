"use strict";
// Opens a report that is one file in headless Chromium, reads it as people do, by eye
// and by keyboard, and prints what it saw as JSON. report_test.go judges.
//
//   node report.cjs CHROMIUM FILE NAME FOLDER-FOR-SCREENSHOTS
const { chromium } = require("playwright-core");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [program, file, name, folder] = process.argv.slice(2);
const url = pathToFileURL(path.resolve(file)).href;

// misfits are elements that hold more than their box has room for, unless they scroll,
// and a page that scrolls sideways.
const misfits = () => {
  const out = [];
  for (const e of document.querySelectorAll("main *, nav *")) {
    if (e.closest("svg") || e.checkVisibility && !e.checkVisibility()) continue;
    const s = getComputedStyle(e);
    if (s.display !== "inline" && s.overflowX === "visible" && e.scrollWidth > e.clientWidth + 1 && !e.closest(".scroll, figure")) {
      out.push(`${e.tagName.toLowerCase()}.${e.className}: ${e.scrollWidth} px in ${e.clientWidth}: ${e.textContent.trim().slice(0, 40)}`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) out.push(`the page is ${document.documentElement.scrollWidth} px wide in ${innerWidth}`);
  return out;
};

// faint is text whose contrast with what is behind it is below WCAG's 4.5 to 1.
const faint = () => {
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const out = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.checkVisibility && !e.checkVisibility()) continue;
    const s = getComputedStyle(e), drawn = e.closest("svg");
    if (drawn && e.tagName !== "text" && e.tagName !== "tspan" || e.tagName === "STYLE" || e.tagName === "SCRIPT" || e.tagName === "title") continue;
    let back = behind(e);
    if (drawn) { // a label may stand on a box of the drawing
      const at = e.getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
      for (const box of drawn.querySelectorAll("rect")) {
        const b = box.getBoundingClientRect(), fill = getComputedStyle(box).fill;
        if (b.x <= x && x <= b.right && b.y <= y && y <= b.bottom && fill !== "none") {
          const c = parse(fill);
          if (c.length === 3 || c[3] === 1) back = c;
        }
      }
    }
    const a = light(parse(drawn ? s.fill : s.color)), b = light(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.add(`${e.tagName.toLowerCase()}.${e.getAttribute("class") || ""} ${ratio.toFixed(2)}: ${e.textContent.trim().slice(0, 30)}`);
  }
  return [...out];
};

// nameless are parts that a screen reader could not announce.
const nameless = () => {
  const out = [];
  if (document.querySelectorAll("h1").length !== 1) out.push("not one h1");
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    if (h.closest("nav")) continue;
    const n = Number(h.tagName[1]);
    if (n > level + 1) out.push(`h${n} below h${level}: ${h.textContent}`);
    level = n;
  }
  for (const s of document.querySelectorAll("svg")) if (s.getAttribute("role") !== "img" || !(s.getAttribute("aria-label") || s.querySelector("title"))) out.push("a drawing without a name");
  for (const t of document.querySelectorAll("table")) if (!t.querySelector("th[scope]")) out.push("a table without headings");
  for (const a of document.querySelectorAll("a, summary")) if (!a.textContent.trim()) out.push("a link without text");
  for (const a of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(decodeURIComponent(a.hash.slice(1)))) out.push(`${a.hash} leads nowhere`);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) out.push(`two are called ${id}`);
  return out;
};

const colours = () => { const s = getComputedStyle(document.body); return `${s.backgroundColor} ${s.color}`; };
const focused = () => { const e = document.activeElement; return e.id || (e.closest("[data-stop]") || {}).id || e.className; };

(async () => {
  const saw = { complaints: [], elsewhere: [], misfits: {}, faint: {}, keys: [] };
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
  const open = async (options) => {
    const page = await (await browser.newContext(options)).newPage();
    page.setDefaultTimeout(60000);
    page.on("console", (m) => saw.complaints.push(m.text()));
    page.on("pageerror", (e) => saw.complaints.push(String(e)));
    page.on("request", (r) => { if (r.url() !== url) saw.elsewhere.push(r.url()); });
    await page.goto(url);
    return page;
  };
  for (const [what, options] of Object.entries({
    "desk, light": { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
    "desk, dark": { viewport: { width: 1440, height: 900 }, colorScheme: "dark" },
    "phone, dark": { viewport: { width: 390, height: 800 }, colorScheme: "dark" },
    "laptop, light": { viewport: { width: 1100, height: 700 }, colorScheme: "light" },
  })) {
    const page = await open(options);
    saw.misfits[what] = await page.evaluate(misfits);
    saw.faint[what] = await page.evaluate(faint);
    saw[options.colorScheme] = await page.evaluate(colours);
    await page.screenshot({ path: path.join(folder, `${name} ${what}.png`.replaceAll(/,? /g, "-")), fullPage: true });
    await page.context().close();
  }

  // Milliseconds from the request to the end of loading and to the first painting; the
  // best of three, each in a new context.
  saw.load = saw.paint = Infinity;
  for (let i = 0; i < 3; i++) {
    const page = await open({ viewport: { width: 1440, height: 900 } });
    const [load, paint] = await page.evaluate(() => [performance.getEntriesByType("navigation")[0].loadEventEnd,
      (performance.getEntriesByName("first-contentful-paint")[0] || { startTime: Infinity }).startTime]);
    saw.load = Math.min(saw.load, load);
    saw.paint = Math.min(saw.paint, paint);
    await page.context().close();
  }

  // By keyboard alone: past the contents, along the stops and back, files open and shut.
  const page = await open({ viewport: { width: 1440, height: 900 } });
  saw.nameless = await page.evaluate(nameless);
  saw.stops = await page.$$eval("[data-stop]", (all) => all.map((e) => e.id));
  const press = async (key) => { await page.keyboard.press(key); saw.keys.push(await page.evaluate(focused)); };
  await press("Tab");
  await press("Enter");
  for (const _ of saw.stops) await press("j");
  await press("j");
  await press("k");
  saw.outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  const isOpen = () => [...document.querySelectorAll("main details")].map((d) => d.open);
  await page.keyboard.press("e");
  saw.opened = (await page.evaluate(isOpen)).every((o) => o);
  await page.keyboard.press("e");
  saw.closed = (await page.evaluate(isOpen)).every((o) => !o);
  const link = await page.$('nav a[href^="#file-"]');
  if (link) {
    await link.click();
    saw.revealed = await page.evaluate(() => document.getElementById(location.hash.slice(1)).open);
  }
  await browser.close();
  console.log(JSON.stringify(saw));
})().catch((e) => { console.error(e); process.exit(1); });
