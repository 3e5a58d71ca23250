"use strict";
// Opens the page of the built `yoctuned-serve`, while its enforcer is killed and then itself,
// and prints what it saw as JSON. built_test.go judges.
//
//   node built.cjs CHROMIUM URL CONTROL-URL FOLDER-FOR-SCREENSHOTS
const { chromium } = require("playwright-core");
const path = require("node:path");

const [program, url, control, folder] = process.argv.slice(2);
const text = (id) => `document.getElementById("${id}").textContent`;

(async () => {
  const saw = {};
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(60000);
  // The policy of the page forbids waitForFunction with an expression.
  const until = async (id, right) => {
    for (const late = Date.now() + 60000; ;) {
      const got = await page.evaluate(text(id));
      if (right.test(got)) return got;
      if (Date.now() > late) throw new Error(`${id} is still ${got}`);
      await page.waitForTimeout(50);
    }
  };
  await page.goto(url);
  await until("state", /^live$/);
  saw.host = await until("host", /./);
  saw.enforcer = await until("enforcer", /./);
  await fetch(`${control}enforcer`, { method: "POST" });
  saw.killed = await until("enforcer", /nobody/);
  saw.health = await (await fetch(`${url}healthz`)).json();
  saw.metrics = await (await fetch(`${url}metrics`)).text();
  await page.screenshot({ path: path.join(folder, "built-killed.png"), fullPage: true });
  await fetch(`${control}serve`, { method: "POST" });
  saw.state = await until("state", /[1-9] s old$/);
  await browser.close();
  console.log(JSON.stringify(saw));
})().catch((e) => { console.error(e); process.exit(1); });
