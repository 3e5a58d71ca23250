"use strict";
// Live charts of the samples that /api/stream sends. No value is drawn where a
// sample has null: unknown is a gap, never 0.

const groups = [
  { title: "Load", unit: "%", pick: (n) => n === "cpu load" || n === "gpu load" || n === "memory bandwidth", max: 100 },
  { title: "Cores", unit: "%", pick: (n) => /^cpu\d+ load$/.test(n), max: 100 },
  { title: "Clocks", unit: "MHz", pick: (n) => / clock$/.test(n) },
  { title: "Power", unit: "mW", pick: (n) => n.startsWith("rail ") },
  { title: "Temperature", unit: "°C", pick: (n) => n.startsWith("temperature ") },
  { title: "Memory", unit: "MiB", pick: (n) => ["memory used", "memory available", "swap used", "cma free", "nvmap", "largest free block"].includes(n) },
  { title: "Pressure stall", unit: "%", pick: (n) => n.endsWith(" pressure") },
  { title: "Fan", unit: "rpm", pick: (n) => n.startsWith("fan ") && !n.endsWith(" pwm") },
];
const palette = ["#2f7ed8", "#e07b00", "#2a9d5c", "#c2408f", "#7d5fd3", "#b58900", "#c9463d", "#1697a6", "#6b7785", "#8d6e63", "#5b8c00", "#d16ba5", "#3d5a98", "#a05a2c", "#00857a", "#9b3fb5"];
const order = new Intl.Collator("en", { numeric: true }).compare;
const keep = 3700; // samples held for the live ranges
const $ = (id) => document.getElementById(id);

let range = 300;
let paused = false;
let times = [];
const series = new Map(); // name -> {values}
const charts = new Map(); // title -> {plot, names}
let past = null; // {times, series} of the history, for long ranges

// colour resolves a CSS variable to what a canvas understands.
function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const c = getComputedStyle(probe).color;
  probe.remove();
  return c;
}

function take(message) {
  const at = Date.parse(message.time) / 1000;
  times.push(at);
  const seen = new Set();
  for (const v of message.values) {
    if (!series.has(v.name)) series.set(v.name, { values: new Array(times.length - 1).fill(null) });
    series.get(v.name).values.push(v.value);
    seen.add(v.name);
  }
  for (const [name, s] of series) if (!seen.has(name)) s.values.push(null);
  if (times.length > keep) {
    times.shift();
    for (const s of series.values()) s.values.shift();
  }
}

function draw() {
  const from = Date.now() / 1000 - range;
  const data = past && range > 3600 ? past : { times, series };
  let start = data.times.findIndex((t) => t >= from);
  if (start < 0) start = Math.max(data.times.length - 1, 0);
  const xs = data.times.slice(start);
  const shown = groups.map((g) => ({ g, names: [...data.series.keys()].filter(g.pick).sort(order) })).filter(({ names }) => names.length > 0);
  // All boxes first: how wide each is depends on how many there are.
  for (const { g } of shown) boxOf(g);
  for (const { g, names } of shown) {
    const columns = [xs, ...names.map((n) => data.series.get(n).values.slice(start))];
    const old = charts.get(g.title);
    if (old && old.names.join() === names.join()) {
      const width = widthOf(boxOf(g));
      if (width !== old.plot.width) old.plot.setSize({ width, height: 190 });
      old.plot.setData(columns);
      continue;
    }
    if (old) old.plot.destroy();
    charts.set(g.title, { names, plot: make(g, names, columns) });
  }
}

function boxOf(g) {
  let box = document.querySelector(`[data-chart="${g.title}"]`);
  if (!box) {
    box = document.createElement("div");
    box.className = "chart";
    box.dataset.chart = g.title;
    const h = document.createElement("h2");
    h.textContent = `${g.title} (${g.unit})`;
    box.append(h);
    const at = groups.indexOf(g);
    const after = [...$("charts").children].find((c) => groups.findIndex((x) => x.title === c.dataset.chart) > at);
    $("charts").insertBefore(box, after || null);
  }
  return box;
}

function widthOf(box) { return Math.max(box.clientWidth - 26, 240); }

function make(g, names, columns) {
  const box = boxOf(g);
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const short = (n) => n.replace(/^(rail|temperature|fan) /, "").replace(/-thermal$/, "").replace(/ (load|clock|pressure)$/, "");
  return new uPlot({
    width: widthOf(box),
    height: 190,
    cursor: { sync: { key: "all" } },
    scales: { x: { range: () => [Date.now() / 1000 - range, Date.now() / 1000] }, y: { range: (u, low, high) => [Math.min(low ?? 0, 0), g.max || Math.max((high ?? 1) * 1.08, 1)] } },
    axes: [axis, { ...axis, size: 56 }],
    series: [{ value: (u, t) => (t == null ? "" : new Date(t * 1000).toLocaleTimeString()) },
      ...names.map((n, i) => ({ label: short(n), stroke: palette[i % palette.length], width: 1.5, spanGaps: false,
        points: { show: (u) => u.data[0].length < 2 }, // one sample makes no line
        value: (u, v, n, at) => { const shown = at == null ? u.data[n].at(-1) : v; return shown == null ? "-" : +shown.toFixed(1); } }))],
  }, columns, box);
}

function tiles(message) {
  const value = new Map(message.values.map((v) => [v.name, v]));
  const hot = message.sample.temperatures.filter((z) => z.temp_mc !== null && !z.placeholder).sort((a, b) => b.temp_mc - a.temp_mc)[0];
  const slow = message.sample.cooling.filter((c) => c.state > 0 && !/fan/i.test(c.name));
  const show = (name, v, digits = 1) => [name, v === undefined ? "-" : `${v.value.toFixed(digits)} ${v.unit}`, false];
  const list = [show("CPU", value.get("cpu load")), show("GPU", value.get("gpu load")), show("memory bandwidth", value.get("memory bandwidth")),
    show("memory used", value.get("memory used"), 0),
    [hot ? `hottest: ${hot.name}` : "temperature", hot ? `${(hot.temp_mc / 1000).toFixed(1)} °C` : "-", hot && hot.passive_mc !== null && hot.temp_mc >= hot.passive_mc],
    ["throttled by", message.sample.cooling.some((c) => c.state !== null && !/fan/i.test(c.name)) ? (slow.map((c) => c.name).join(", ") || "nothing") : "-", slow.length > 0]];
  for (const r of message.sample.rails) list.push([r.label, r.power_mw === null ? "-" : `${(r.power_mw / 1000).toFixed(2)} W`, false]);
  for (const s of message.sample.stale) list.push([s.sensor, `no response for ${(s.for_ms / 1000).toFixed(0)} s`, true]);
  $("tiles").replaceChildren(...list.map(([label, text, bad]) => {
    const tile = document.createElement("div");
    tile.className = bad ? "tile bad" : "tile";
    const b = document.createElement("b");
    b.textContent = text;
    const span = document.createElement("span");
    span.textContent = label;
    tile.append(b, span);
    return tile;
  }));
  $("mode").textContent = `power mode ${message.sample.power_mode ?? "-"}`;
}

// row makes a line of a table.
function row(texts, bad) {
  const tr = document.createElement("tr");
  if (bad) tr.className = "bad";
  for (const text of texts) {
    const td = document.createElement("td");
    td.textContent = text;
    tr.append(td);
  }
  return tr;
}

function drift(events) {
  const rows = events.slice(-20).reverse().map((e) => {
    const by = e.by ? `${e.by.comm || "ended process"} (pid ${e.by.pid})` : "kernel or unknown process";
    return row([new Date(e.time).toLocaleTimeString(), e.type, e.path, e.found, by, e.outcome]);
  });
  if (rows.length > 0) $("drift").tBodies[0].replaceChildren(...rows);
}

function pipelines(list) {
  const ms = (ns) => (ns == null ? "-" : (ns / 1e6).toFixed(2));
  $("pipelines").hidden = list.length === 0;
  $("pipelines").querySelector("tbody").replaceChildren(...list.map((p) => {
    const busiest = p.rates.stages.filter((s) => s.busy !== null).sort((a, b) => b.busy - a.busy)[0];
    return row([p.pipeline, p.rates.fps === null ? "-" : p.rates.fps.toFixed(1), ms(p.rates.p50_ns), ms(p.rates.p95_ns), ms(p.target_ns),
      p.levels > 1 ? `${p.level} of ${p.levels - 1}` : "-", p.frames.done, p.frames.dropped, p.frames.failed,
      busiest ? `${busiest.id} ${(100 * busiest.busy).toFixed(0)} %` : "-"],
    p.rates.frames.failed > 0 || (p.target_ns !== null && p.rates.p95_ns > p.target_ns));
  }));
}

async function loadPast() {
  past = null;
  if (range <= 3600 && times.length > 0 && times[0] <= Date.now() / 1000 - range) return;
  const answer = await fetch(`api/history?seconds=${range}`);
  if (!answer.ok) return;
  const body = await answer.json();
  const all = [...new Set(Object.values(body.series).flatMap((s) => s.points.map((p) => p.t)))].sort((a, b) => a - b);
  const index = new Map(all.map((t, i) => [t, i]));
  const loaded = { times: all.map((t) => t / 1000), series: new Map() };
  for (const [name, s] of Object.entries(body.series)) {
    const values = new Array(all.length).fill(null);
    for (const p of s.points) values[index.get(p.t)] = p.v;
    loaded.series.set(name, { values });
  }
  if (loaded.times.length > 0) past = loaded;
}

function setRange(seconds) {
  range = seconds;
  for (const b of document.querySelectorAll("[data-range]")) b.setAttribute("aria-pressed", String(Number(b.dataset.range) === seconds));
  loadPast().catch(() => {}).then(draw);
}

function pause() {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) draw();
}

function theme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  rebuild();
}

function rebuild() {
  for (const c of charts.values()) c.plot.destroy();
  charts.clear();
  draw();
}

for (const b of document.querySelectorAll("[data-range]")) b.addEventListener("click", () => setRange(Number(b.dataset.range)));
$("pause").addEventListener("click", pause);
$("theme").addEventListener("click", theme);
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const button = document.querySelectorAll("[data-range]")[Number(e.key) - 1];
  if (button) setRange(Number(button.dataset.range));
  else if (e.key === "p") pause();
  else if (e.key === "d") theme();
});
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(rebuild, 150); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);

fetch("api/device").then((a) => a.json()).then((d) => {
  const name = d.model || "this device";
  $("model").textContent = name;
  document.title = `${name} – yoctuned`;
}).catch(() => {});

const stream = new EventSource("api/stream");
stream.addEventListener("sample", (e) => {
  const message = JSON.parse(e.data);
  take(message);
  $("state").textContent = "live";
  $("state").className = "";
  if (paused || document.hidden) return;
  tiles(message);
  draw();
});
stream.addEventListener("pipelines", (e) => { if (!paused && !document.hidden) pipelines(JSON.parse(e.data)); });
stream.addEventListener("drift", (e) => drift(JSON.parse(e.data)));
stream.addEventListener("error", () => {
  $("state").textContent = "disconnected: values are outdated";
  $("state").className = "bad";
});
