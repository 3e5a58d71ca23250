"use strict";
// Live charts of the samples that /api/stream sends, after those of /api/history. No value is
// drawn where a sample has null: unknown is a gap, never 0. All times are those of the device,
// whose clock may differ from the browser's.

// floor is the least top of an axis, so that noise near 0 does not fill a chart.
const groups = [
  { title: "Load", unit: "%", pick: (n) => n === "cpu load" || n === "gpu load" || n === "memory bandwidth", top: 100 },
  { title: "Cores", unit: "%", pick: (n) => /^cpu\d+ load$/.test(n), top: 100 },
  { title: "Clocks", unit: "MHz", pick: (n) => / clock$/.test(n), floor: 100, limits: clockLimits },
  { title: "Power", unit: "mW", pick: (n) => n.startsWith("rail "), floor: 1000 },
  { title: "Temperature", unit: "°C", pick: (n) => n.startsWith("temperature "), floor: 60, bottom: 20, limits: heatLimits },
  { title: "Memory", unit: "MiB", pick: (n) => ["memory used", "memory available", "swap used", "cma free", "nvmap", "largest free block"].includes(n), floor: 64, limits: memoryLimits },
  { title: "Pressure stall", unit: "%", pick: (n) => n.endsWith(" pressure"), floor: 10, most: 100 },
  { title: "Fan", unit: "rpm", pick: (n) => n.startsWith("fan ") && !n.endsWith(" pwm"), floor: 1000 },
];
const palette = ["#2f7ed8", "#e07b00", "#2a9d5c", "#c2408f", "#7d5fd3", "#b58900", "#c9463d", "#1697a6", "#6b7785", "#8d6e63", "#5b8c00", "#d16ba5", "#3d5a98", "#a05a2c", "#00857a", "#9b3fb5"];
const order = new Intl.Collator("en", { numeric: true }).compare;
const keep = 3700; // samples held for the live ranges
const recordEvery = 10; // seconds between samples of the history
const historyPoints = 300; // of an answer, for each series
const $ = (id) => document.getElementById(id);

let range = 300;
let paused = false;
let connected = false;
let latest = null; // the last sample message
let arrived = 0; // when it arrived, by the browser's steady clock
let pace = 1; // seconds between samples
let times = [];
const series = new Map(); // name -> values
const charts = new Map(); // title -> {plot, names}
let past = { times: [], series: new Map(), to: 0 }; // from the history

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const shortClock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const timeOf = (at) => clock.format(new Date(at * 1000));
const span = (s) => (s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`);

const sinceArrival = () => (performance.now() - arrived) / 1000;
// deviceNow is the time of the device.
const deviceNow = () => (latest ? Date.parse(latest.time) / 1000 + sinceArrival() : Date.now() / 1000);

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
  if (times.length > 0 && at <= times.at(-1)) { // the clock of the device was set back
    times = [];
    series.clear();
    past = { times: [], series: new Map(), to: 0 };
  }
  if (times.length > 0) pace = Math.min(Math.max(at - times.at(-1), 0.1), 60);
  times.push(at);
  const seen = new Set();
  for (const v of message.values) {
    if (!series.has(v.name)) series.set(v.name, new Array(times.length - 1).fill(null));
    series.get(v.name).push(v.value);
    seen.add(v.name);
  }
  for (const [name, values] of series) if (!seen.has(name)) values.push(null);
  if (times.length > keep) {
    times.shift();
    for (const values of series.values()) values.shift();
  }
}

// window joins the history and the live samples of the shown range, with a gap where nothing
// was measured.
function shownData() {
  const from = deviceNow() - range;
  const live = times.length > 0 ? times[0] : Infinity;
  const xs = [], parts = []; // parts: [source, index], or null for a gap
  const add = (source, widest) => source.times.forEach((t, i) => {
    if (t < from || (source === past && t >= live)) return;
    if (xs.length > 0 && t - xs.at(-1) > widest) {
      xs.push((t + xs.at(-1)) / 2);
      parts.push(null);
    }
    xs.push(t);
    parts.push([source, i]);
  });
  const present = { times, series };
  const historyStep = 2.5 * Math.max(recordEvery, range / historyPoints);
  add(past, historyStep);
  add(present, Math.max(5 * pace, xs.length > 0 && live - xs.at(-1) < historyStep ? historyStep : 0));
  const names = new Set([...past.series.keys(), ...series.keys()]);
  const column = (name) => parts.map((p) => (p === null ? null : p[0].series.get(name)?.[p[1]] ?? null));
  return { xs, names: [...names], column };
}

function draw() {
  if (!latest && past.times.length === 0) return;
  if (past.to > 0 && times.length === keep && times[0] - past.to > 60) loadPast().catch(() => {});
  const data = shownData();
  const shown = groups.map((g) => ({ g, names: data.names.filter(g.pick).sort(order) })).filter(({ names }) => names.length > 0);
  // All boxes first: how wide each is depends on how many there are.
  for (const { g } of shown) boxOf(g);
  for (const { g, names } of shown) {
    const columns = [data.xs, ...names.map(data.column)];
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

// Limits of a chart: {at, text}. Lines that nearly coincide are one.
function heatLimits(sample) {
  const zones = sample.temperatures.filter((z) => !z.placeholder);
  return [...zones.filter((z) => z.passive_mc !== null).map((z) => ({ at: z.passive_mc / 1000, text: "slowed at" })),
    ...zones.filter((z) => z.critical_mc !== null).map((z) => ({ at: z.critical_mc / 1000, text: "off at" }))];
}
function clockLimits(sample) {
  return [...sample.cpus.filter((c) => c.max_hz !== null).map((c) => ({ at: c.max_hz / 1e6, text: "cpu limit" })),
    ...sample.gpus.filter((g) => g.max_hz !== null).map((g) => ({ at: g.max_hz / 1e6, text: "gpu limit" }))];
}
function memoryLimits(sample) {
  return sample.memory.total === null ? [] : [{ at: sample.memory.total / 1048576, text: "total" }];
}
function limitsOf(g) {
  if (!g.limits || !latest) return [];
  const unique = new Map();
  for (const l of g.limits(latest.sample)) unique.set(`${l.text} ${g.unit === "°C" ? +l.at.toFixed(1) : Math.round(l.at).toLocaleString()} ${g.unit}`, l.at);
  return [...unique].map(([text, at]) => ({ text, at })).sort((a, b) => a.at - b.at).slice(0, 4);
}

// drawLimits draws dashed lines, and then their meanings on the colour of the card, left and
// right in turn, so that those of two close lines do not overlap.
function drawLimits(u, g) {
  const { ctx, bbox } = u, ratio = devicePixelRatio || 1;
  const right = bbox.left + bbox.width;
  const lines = limitsOf(g).map((l) => ({ ...l, y: u.valToPos(l.at, "y", true) })).filter((l) => l.y >= bbox.top && l.y <= bbox.top + bbox.height);
  ctx.save();
  ctx.strokeStyle = colour("--bad");
  ctx.lineWidth = ratio;
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  for (const { y } of lines) {
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(right, y);
    ctx.stroke();
  }
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const height = 13 * ratio;
  lines.forEach((l, i) => {
    const width = ctx.measureText(l.text).width;
    const x = i % 2 === 0 ? bbox.left + 6 * ratio : right - width - 6 * ratio;
    const y = Math.min(Math.max(l.y, bbox.top + height / 2), bbox.top + bbox.height - height / 2);
    ctx.fillStyle = colour("--card");
    ctx.fillRect(x - 3 * ratio, y - height / 2, width + 6 * ratio, height);
    ctx.fillStyle = colour("--bad");
    ctx.fillText(l.text, x, y);
  });
  ctx.restore();
}

// axisRange is the y axis: from 0 (temperatures: from the coolest) to the values and limits.
function axisRange(g, low, high) {
  if (g.top) return [0, g.top];
  let top = Math.max((high ?? 0) * 1.08, g.floor);
  for (const l of limitsOf(g)) if (l.text.startsWith("off at") || l.at * 1.04 <= top) continue; else top = l.at * 1.06;
  const bottom = g.bottom === undefined ? Math.min(low ?? 0, 0) : Math.min(g.bottom, (low ?? g.bottom) - 5);
  return [bottom, g.most ? Math.min(top, g.most) : top];
}

// steps are the seconds between two ticks.
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// tickText labels a time: with seconds on a short range, with the day at midnight.
function tickText(at, step) {
  const t = new Date(at * 1000);
  if (step < 60) return clock.format(t);
  return t.getHours() === 0 && t.getMinutes() === 0 ? day.format(t) : shortClock.format(t);
}

function make(g, names, columns) {
  const box = boxOf(g);
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const short = (n) => n.replace(/^(rail|temperature|fan) /, "").replace(/-thermal$/, "").replace(/ (load|clock|pressure)$/, "");
  return new uPlot({
    width: widthOf(box),
    height: 190,
    padding: [null, 30, null, null], // half of the last time label
    cursor: { sync: { key: "all" } },
    scales: { x: { range: () => [deviceNow() - range, deviceNow()] }, y: { range: (u, low, high) => axisRange(g, low, high) } },
    axes: [{ ...axis, space: 64, incrs: steps, values: (u, splits, i, space, step) => splits.map((t) => tickText(t, step)) },
      { ...axis, size: 60, values: (u, splits) => splits.map((v) => (Math.abs(v) < 10 && v % 1 !== 0 ? v.toFixed(1) : v.toLocaleString(undefined, { maximumFractionDigits: 0 }))) }],
    hooks: { draw: [(u) => drawLimits(u, g)] },
    series: [{ label: "time", value: (u, t) => { const at = t ?? u.data[0].at(-1); return at === undefined ? "-" : timeOf(at); } },
      ...names.map((n, i) => ({ label: short(n), stroke: palette[i % palette.length], width: 1.5, spanGaps: false,
        points: { show: (u) => u.data[0].length < 2 }, // one sample makes no line
        value: (u, v, n, at) => { const shown = at == null ? u.data[n].at(-1) : v; return shown == null ? "-" : +shown.toFixed(1); } }))],
  }, columns, box);
}

// heat is the tile of the hottest zone, with its state in words.
function heat(sample) {
  const hot = sample.temperatures.filter((z) => z.temp_mc !== null && !z.placeholder).sort((a, b) => b.temp_mc - a.temp_mc)[0];
  if (!hot) return ["temperature", "-", ""];
  const margin = hot.passive_mc === null ? Infinity : hot.passive_mc - hot.temp_mc;
  const state = margin <= 0 ? "over its limit" : margin < 5000 ? "near its limit" : "";
  return [`hottest: ${hot.name}`, `${(hot.temp_mc / 1000).toFixed(1)} °C`, state];
}

function tiles(message) {
  const value = new Map(message.values.map((v) => [v.name, v]));
  const isFan = (c) => /fan/i.test(c.name);
  const slow = message.sample.cooling.filter((c) => c.state > 0 && !isFan(c));
  const show = (name, v, digits = 1) => [name, v === undefined ? "-" : `${v.value.toFixed(digits)} ${v.unit}`, ""];
  const list = [show("CPU", value.get("cpu load")), show("GPU", value.get("gpu load")), show("memory bandwidth", value.get("memory bandwidth")),
    show("memory used", value.get("memory used"), 0), heat(message.sample),
    ["throttled by", message.sample.cooling.some((c) => c.state !== null && !isFan(c)) ? (slow.map((c) => c.name).join(", ") || "nothing") : "-", slow.length > 0 ? "slowed down" : ""]];
  for (const r of message.sample.rails) list.push([r.label, r.power_mw === null ? "-" : `${(r.power_mw / 1000).toFixed(2)} W`, ""]);
  for (const s of message.sample.stale) list.push([s.sensor, "-", `no response for ${(s.for_ms / 1000).toFixed(0)} s`]);
  $("tiles").replaceChildren(...list.map(([label, text, state]) => {
    const tile = document.createElement("div");
    tile.className = state ? "tile bad" : "tile";
    for (const [kind, t] of [["b", text], ["span", label], ["em", state]]) {
      if (t === "") continue;
      const e = document.createElement(kind);
      e.textContent = t;
      tile.append(e);
    }
    return tile;
  }));
  $("mode").textContent = `power mode ${message.sample.power_mode ?? "-"}`;
}

// age shows whether the values are current. Old ones are never shown as if they were.
function age() {
  const old = latest && (!connected || sinceArrival() > Math.max(5, 3 * pace));
  document.body.classList.toggle("old", Boolean(old));
  let text = latest ? "live" : "connecting";
  if (old) text = `${connected ? "no data" : "disconnected"}: values of ${timeOf(Date.parse(latest.time) / 1000)}, ${span(sinceArrival())} old`;
  else if (!latest && !connected && arrived > 0) text = "disconnected: no value was received";
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").className = old ? "bad" : "";
}

function enforcer(e) {
  $("enforcer").textContent = e.text;
  $("enforcer").className = e.bad ? "bad" : "";
  $("drift-note").textContent = e.state === "running" || e.state === "none" ? "" :
    `recorded by an enforcer that has ended${e.age_s === undefined ? "" : `, ${span(e.age_s)} ago`}; nothing is repaired now`;
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
    return row([timeOf(Date.parse(e.time) / 1000), e.type, e.path, e.found, by, e.outcome], e.type === "contested");
  });
  if (rows.length > 0) $("drift").tBodies[0].replaceChildren(...rows);
}

function pipelines(list) {
  const ms = (ns) => (ns == null ? "-" : (ns / 1e6).toFixed(2));
  $("pipelines").hidden = list.length === 0;
  $("pipelines").querySelector("tbody").replaceChildren(...list.map((p) => {
    const busiest = p.rates.stages.filter((s) => s.busy !== null).sort((a, b) => b.busy - a.busy)[0];
    const slo = p.missed.length > 0 ? `MISSED ${p.missed.join("; ")}` : p.target_ns !== null || p.min_fps ? "met" : "-";
    return row([p.pipeline, p.rates.fps === null ? "-" : p.rates.fps.toFixed(1), ms(p.rates.p50_ns), ms(p.rates.p95_ns), slo,
      p.levels > 1 ? `${p.level} of ${p.levels - 1}` : "-", p.frames.done, p.frames.dropped, p.frames.failed,
      busiest ? `${busiest.id} ${(100 * busiest.busy).toFixed(0)} %` : "-"], p.missed.length > 0 || p.rates.frames.failed > 0);
  }));
}

let loading = 0;

async function loadPast() {
  const mine = ++loading; // the answer to an earlier choice of range may come later
  const answer = await fetch(`api/history?seconds=${range}`);
  $("history-note").textContent = answer.ok ? "" : answer.status === 404 ? "no history is recorded: charts begin when the page was opened" : `the history cannot be read: ${await answer.text()}`;
  if (!answer.ok || mine !== loading) return;
  const body = await answer.json();
  const all = [...new Set(Object.values(body.series).flatMap((s) => s.points.map((p) => p.t)))].sort((a, b) => a - b);
  const index = new Map(all.map((t, i) => [t, i]));
  const loaded = { times: all.map((t) => t / 1000), series: new Map(), to: body.to / 1000 };
  for (const [name, s] of Object.entries(body.series)) {
    const values = new Array(all.length).fill(null);
    for (const p of s.points) values[index.get(p.t)] = p.v;
    loaded.series.set(name, values);
  }
  if (mine === loading) past = loaded;
}

function setRange(seconds) {
  range = seconds;
  for (const b of document.querySelectorAll("[data-range]")) b.setAttribute("aria-pressed", String(Number(b.dataset.range) === seconds));
  draw(); // what is there, at once
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
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) draw(); });

fetch("api/device").then((a) => a.json()).then((d) => {
  const name = d.model || "this device";
  $("host").textContent = d.hostname || "";
  $("model").textContent = name;
  $("system").textContent = [d.l4t && `L4T ${d.l4t}`, d.kernel && `kernel ${d.kernel}`].filter(Boolean).join(", ");
  document.title = `${d.hostname ? `${d.hostname}: ` : ""}${name} – yoctuned`;
}).catch(() => {});

const stream = new EventSource("api/stream");
stream.addEventListener("open", () => { connected = true; });
stream.addEventListener("sample", (e) => {
  const first = latest === null;
  latest = JSON.parse(e.data);
  arrived = performance.now();
  connected = true;
  take(latest);
  age();
  if (paused || document.hidden) return;
  tiles(latest);
  draw();
  if (first) setRange(range);
});
stream.addEventListener("enforcer", (e) => enforcer(JSON.parse(e.data)));
stream.addEventListener("pipelines", (e) => { if (!paused && !document.hidden) pipelines(JSON.parse(e.data)); });
stream.addEventListener("drift", (e) => drift(JSON.parse(e.data)));
stream.addEventListener("error", () => {
  connected = false;
  if (!latest) arrived = performance.now();
  age();
});
setInterval(age, 1000);
