// Draws the report's charts from the data in the page, and filters charts and tables by contestant.
// Colours are CSS variables, so a change of theme and printing need no redrawing.

const {contestants, shares, units, charts} = JSON.parse(document.getElementById("data").textContent);
const known = new Map(contestants.map((one) => [one.name, one]));
const hidden = new Set();
let historic = true;

// Looks

// Seven colours that stay apart in both themes; a dash and a shape tell those apart that share one.
const PEER_COLOURS = 7;
const DASHES = [[1, 0], [8, 3], [2, 2], [10, 3, 2, 3], [5, 2]];
const SHAPES = [["circle", "●"], ["square", "■"], ["triangle-up", "▲"], ["cross", "✚"], ["triangle-down", "▼"]];
const looks = new Map();
{
  const count = {};
  for (const {name, role} of contestants) {
    const group = ["ours", "variant", "floor"].includes(role) ? role : "others";
    const nth = (count[group] = (count[group] ?? -1) + 1);
    const turn = Math.floor(nth / PEER_COLOURS);  // one dash each, then other shapes
    looks.set(name, {
      ours: {colour: "var(--ours)", dash: DASHES[0], width: 3.5, shape: SHAPES[0]},
      variant: {colour: "var(--ours)", dash: DASHES[1 + nth % 4], width: 1.5,
                shape: SHAPES[(1 + nth) % SHAPES.length]},
      floor: {colour: "var(--floor)", dash: [2, 3], width: 2, shape: SHAPES[0]},
    }[group] ?? {colour: `var(--c${nth % PEER_COLOURS})`, dash: DASHES[turn % DASHES.length],
                 width: 1.7, shape: SHAPES[(nth + turn + Math.floor(turn / DASHES.length)) % SHAPES.length]});
  }
}
const dotColour = (who) =>
  ({ours: "var(--ours)", variant: "var(--ours)", floor: "var(--floor)"})[known.get(who)?.role] ?? "var(--peer)";
const labelOf = (who) => known.get(who)?.label ?? who;

// Figures come as text in the data. Only the axes, which depend on what is shown, write their round numbers here.

const plain = (number, digits) => Number(number.toPrecision(digits)).toLocaleString("en", {maximumFractionDigits: 4});
const expressionFunctions = {
  tick: (value, unit) => {
    const named = units[unit] ?? units.count;
    const [factor, name] = named.find(([factor]) => Math.abs(value) >= factor) ?? named.at(-1);
    return plain(value / factor, 3) + name;
  },
  percent: (nines) => `${plain((1 - 10 ** -nines) * 100, 4)} %`,
};

// Scales

// Logarithmic where no value is zero: one round number a decade, more where the range is short.
// Labels of an axis that would touch: the later one is left out.
const APART = {labelOverlap: "greedy", labelSeparation: 10};

function axisOf(values, unit, title) {
  const least = Math.min(...values), most = Math.max(...values);
  const axis = {title, labelExpr: `tick(datum.value, '${unit}')`, ...APART};
  if (!(least > 0) || most / least < 1.5) return {scale: {type: "linear", zero: !(least > 0), nice: true}, axis};
  const decades = Math.log10(most / least);
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  const ticks = [];
  for (let decade = Math.floor(Math.log10(least)); decade <= Math.log10(most); ++decade)
    for (const step of steps) {
      const tick = step * 10 ** decade;
      if (tick >= least * 0.8 && tick <= most * 1.25) ticks.push(Number(tick.toPrecision(3)));
    }
  const domain = [least * 0.9, most * 1.1];
  return {scale: {type: "log", domain, nice: false}, axis: {...axis, values: ticks}};
}

function whoScale(who) {
  const domain = who.map(labelOf), field = "label", type = "nominal", legend = null;  // the page has its own legends
  return {
    color: {field, type, legend, scale: {domain, range: who.map((name) => looks.get(name).colour)}},
    strokeDash: {field, type, legend, scale: {domain, range: who.map((name) => looks.get(name).dash)}},
    shape: {field, type, legend, scale: {domain, range: who.map((name) => looks.get(name).shape[0])}},
    strokeWidth: {condition: {test: "datum.ours", value: 3.5}, value: 1.7},
  };
}
const lineLook = (who) => {
  const {shape, ...look} = whoScale(who);
  return look;
};
const shown = (rows) => rows.filter((row) => !hidden.has(row.who));
const inOrder = (names) => contestants.map((one) => one.name).filter((name) => names.includes(name));

// A published figure carries the name of its machine on a second line.
const NARROW = 420;
const placed = (row, width) => `${row.label}\n${width < NARROW ? row.machine.split(",")[0] : row.machine}`;
const published = (row) => `${row.label}, ${row.machine}: ${row.text}, as published`;
const rowHeight = (chart, usual) => (historic && chart.history.length ? 28 : usual);
const TWO_LINES = "indexof(datum.label, '\\n') > 0";
const OURS = JSON.stringify(contestants.find((one) => one.role === "ours")?.label ?? null);
const names = (width, share) => ({
  field: "label", type: "nominal", sort: null,
  axis: {title: null, labelLimit: width * share, grid: true, ticks: false, domain: false, labelPadding: 8,
         labelExpr: "split(datum.label, '\\n')",
         labelOffset: {condition: {test: TWO_LINES, value: -6}, value: 0},
         labelColor: {condition: {test: TWO_LINES, value: "var(--historic)"}, value: "var(--ink)"},
         labelFontWeight: {condition: {test: `datum.label === ${OURS}`, value: 650}, value: 400}},
});

// One function for each kind of chart: from the data to a Vega-Lite specification, or null if nothing is left to show

function ranking(chart, width) {
  const rows = shown(chart.rows).map((row) => ({
    ...row, label: row.label ?? labelOf(row.who), colour: dotColour(row.who),
    tip: `${row.label ?? labelOf(row.who)}: ${row.said}`,
  }));
  if (!rows.length) return null;
  if (historic) for (const row of chart.history)
    rows.push({...row, label: placed(row, width), low: row.value, high: row.value, historic: true,
               colour: "var(--historic)", tip: published(row)});
  rows.sort((one, other) => one.value - other.value);
  const x = axisOf(rows.flatMap((row) => [row.low, row.high]), chart.unit, null);
  const tooltip = {field: "tip"}, colour = {field: "colour", type: "nominal", scale: null};
  return {
    height: rows.length * rowHeight(chart, chart.short ? 18 : 20),
    data: {values: rows},
    encoding: {y: names(width, 0.48)},
    layer: [
      {mark: {type: "rule", strokeWidth: 3, opacity: 0.45, strokeCap: "round"},
       encoding: {x: {field: "low", type: "quantitative", ...x}, x2: {field: "high"}, color: colour, tooltip}},
      {mark: {type: "point", filled: true, opacity: 1, size: 75},
       encoding: {x: {field: "value", type: "quantitative"}, color: colour, tooltip,
                  shape: {field: "historic", type: "nominal", legend: null,
                          scale: {domain: [true], range: ["diamond"], unknown: "circle"}}}},
      {mark: {type: "text", align: "left", dx: 8, fontSize: 12},
       encoding: {x: {value: "width"}, text: {field: "text"}, color: colour}},
    ],
  };
}

const heightOf = (width) => Math.max(180, Math.min(230, width * 0.5));

function lines(rows, who, width, x, y) {
  const name = {field: "label"};
  return {
    who,
    height: heightOf(width),
    data: {values: rows},
    encoding: {x, y, detail: name, order: {field: "order", type: "quantitative"}},
    layer: [
      {mark: {type: "line", clip: true}, encoding: lineLook(who)},
      {mark: {type: "line", clip: true, strokeWidth: 12, opacity: 0}, encoding: {tooltip: name}},  // easier to hit
    ],
  };
}
function curveRows(chart) {
  const who = inOrder(Object.keys(chart.curves)).filter((name) => !hidden.has(name));
  const rows = who.flatMap((name) => chart.curves[name].map((value, index) => ({
    label: labelOf(name), ours: known.get(name).role === "ours", value, order: index,
    share: shares[index], nines: -Math.log10(1 - shares[index]),
  })));
  return {who, rows};
}

function percentiles(chart, width) {
  const {who, rows} = curveRows(chart);
  if (!who.length) return null;
  const furthest = Math.max(...rows.map((row) => row.nines));
  const values = [Math.log10(2), 1, 2, 3, 4].filter((nines) => nines <= furthest * 1.02);
  return lines(rows, who, width,
    {field: "nines", type: "quantitative", scale: {domain: [0, furthest], nice: false},
     axis: {title: "share of all values", values, labelExpr: "percent(datum.value)", ...APART}},
    {field: "value", type: "quantitative", ...axisOf(rows.map((row) => row.value), chart.unit, null)});
}

function awakening(chart, width) {
  const {who, rows} = curveRows(chart);
  if (!who.length) return null;
  return lines(rows, who, width,
    {field: "value", type: "quantitative", ...axisOf(rows.map((row) => row.value), chart.unit, "after the set")},
    {field: "share", type: "quantitative", scale: {domain: [0, 1]}, axis: {title: null, format: ".0%", tickCount: 5}});
}

function span(chart, width) {
  const rows = shown(chart.rows).map((row) => ({
    ...row, label: labelOf(row.who), colour: dotColour(row.who),
    tip: `${labelOf(row.who)}: ${row.said}`,
  }));
  if (!rows.length) return null;
  if (historic) for (const row of chart.history)
    rows.push({...row, label: placed(row, width), colour: "var(--historic)", tip: published(row)});
  const x = axisOf(rows.flatMap((row) => [row.held ?? row.value, row.value]), chart.unit, "after the set");
  const tooltip = {field: "tip"}, colour = {field: "colour", type: "nominal", scale: null};
  const measured = [{filter: "isValid(datum.held)"}];
  return {
    height: rows.length * rowHeight(chart, 24),
    data: {values: rows},
    encoding: {y: names(width, 0.48)},
    layer: [
      {transform: measured, mark: {type: "rule", strokeWidth: 2, opacity: 0.5},
       encoding: {x: {field: "held", type: "quantitative", ...x}, x2: {field: "value"}, color: colour, tooltip}},
      {transform: measured, mark: {type: "point", filled: true, opacity: 1, size: 85},
       encoding: {x: {field: "held", type: "quantitative"}, color: colour, tooltip}},
      {mark: {type: "point", filled: true, fill: "var(--panel)", opacity: 1, size: 85, strokeWidth: 2},
       encoding: {x: {field: "value", type: "quantitative"}, stroke: colour, tooltip}},
    ],
  };
}

function growth(chart, width) {
  const rows = shown(chart.rows).map((row) => ({
    ...row, label: labelOf(row.who), ours: known.get(row.who).role === "ours",
    tip: `${labelOf(row.who)}, ${chart.parameter} ${row.at}: ${row.said}`,
  }));
  const who = inOrder([...new Set(rows.map((row) => row.who))]);
  if (!who.length) return null;
  const others = !historic ? [] : chart.history.map((row) => (
    {...row, series: placed(row, width), tip: published(row)}));
  const ends = [...new Map(others.map((row) => [row.series, row])).values()]
    .filter((end) => others.some((row) => row.series === end.series && row !== end));  // the curves among them
  const at = [...new Set(rows.map((row) => row.at))].sort((one, other) => one - other);
  const named = width < NARROW || ends.length > SERIES_NAMED ? []
    : ends.map((row) => ({...row, name: `${row.label} · ${row.machine}`}));
  const x = {field: "at", type: "quantitative",
             scale: {type: at[0] > 0 ? "log" : "symlog", domain: [at[0], at.at(-1)], nice: false, padding: 12},
             axis: {title: chart.parameter, values: at, format: ",", grid: false}};
  const all = [...rows.flatMap((row) => [row.low, row.high]), ...others.map((row) => row.value)];
  const y = {field: "value", type: "quantitative", ...axisOf(all, chart.unit, null)};
  const look = whoScale(who), line = lineLook(who);
  const tooltip = {field: "tip"};
  return {
    who,
    height: heightOf(width),
    layer: [
      {data: {values: others},
       mark: {type: "line", strokeDash: [1, 4], strokeWidth: 1.2, color: "var(--historic)"},
       encoding: {x, y, detail: {field: "series"}}},
      {data: {values: named},
       mark: {type: "text", align: "right", dy: -9, fontSize: 10.5, color: "var(--historic)", limit: width * 0.7},
       encoding: {x, y, text: {field: "name"}}},
      {data: {values: others},
       mark: {type: "point", shape: "diamond", filled: true, size: 45, color: "var(--historic)", opacity: 1},
       encoding: {x, y, tooltip}},
      {data: {values: rows}, mark: {type: "rule", opacity: 0.4, strokeWidth: 4},
       encoding: {x, y: {...y, field: "low"}, y2: {field: "high"}, color: look.color}},
      {data: {values: rows}, mark: {type: "line"}, encoding: {x, y, ...line}},
      {data: {values: rows}, mark: {type: "point", filled: true, size: 55, opacity: 1},
       encoding: {x, y, color: look.color, shape: look.shape, tooltip}},
    ],
  };
}

const SERIES_NAMED = 6;  // the names of more published series would cover the curves
const KINDS = {ranking, percentiles, awakening, span, growth};

// Drawing

const FONT = getComputedStyle(document.body).fontFamily;
const CONFIG = {
  background: "transparent", font: FONT, aria: false, padding: 0,
  view: {stroke: null},
  axis: {labelColor: "var(--soft)", titleColor: "var(--soft)", gridColor: "var(--grid)", domainColor: "var(--line)",
         tickColor: "var(--line)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400},
  axisY: {labelColor: "var(--ink)"},
};

const tip = document.getElementById("tip");
function showTip(_handler, event, _item, value) {
  tip.hidden = !value;
  if (!value) return;
  tip.textContent = value;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 10)}px`;
}

const OPTIONS = {
  mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, config: CONFIG, tooltip: showTip,
  expressionFunctions,
};

// One legend for all charts that are side by side.
function showLegend(plots) {
  const who = inOrder([...plots.querySelectorAll(".chart")].flatMap((one) => one.who ?? []));
  let legend = plots.querySelector(":scope > .legend");
  if (!legend) {
    legend = document.createElement("p");
    legend.className = "legend";
    plots.append(legend);
  }
  legend.hidden = !who.length;
  legend.replaceChildren(...who.map((name) => {
    const entry = document.createElement("span"), swatch = document.createElement("i");
    paint(swatch, name);
    entry.append(swatch, labelOf(name));
    return entry;
  }));
}
function paint(swatch, name) {
  const {colour, dash, width, shape} = looks.get(name);
  swatch.className = "swatch";
  swatch.style.color = colour;
  swatch.setAttribute("aria-hidden", "true");
  const line = `stroke="currentColor" stroke-width="${Math.max(1.7, width)}" stroke-dasharray="${dash}"`;
  swatch.innerHTML = `<svg width="30" height="4"><line x2="30" y1="2" y2="2" ${line}/></svg>${shape[1]}`;
}

// It waits for promises only, so the charts that `beforeprint` asks for are there before the page is printed.
let drawing = 0;
async function draw(element) {
  const width = element.clientWidth;
  if (!width || element.drawnAt === width) return;
  element.drawnAt = width;
  ++drawing;
  const chart = charts[element.dataset.chart];
  const spec = KINDS[chart.kind](chart, width);
  element.finalize?.();
  element.finalize = null;
  element.classList.add("drawn");
  if (spec) {
    const {who, ...drawn} = spec;
    const sized = {...drawn, width, autosize: {type: "fit-x", contains: "padding"}};
    const picture = document.createElement("div");
    element.replaceChildren(picture);
    element.who = who;
    element.finalize = (await vegaEmbed(picture, sized, OPTIONS)).finalize;
    // The chart is one image with a name; Vega's own roles would be parts without one.
    for (const part of [picture, ...picture.querySelectorAll("*")])
      for (const name of ["role", "aria-label", "aria-roledescription"]) part.removeAttribute(name);
  } else {
    element.who = null;
    element.innerHTML = "<p class=nothing>None of the chosen contestants takes part.</p>";
  }
  const plots = element.closest(".plots");
  if (plots) showLegend(plots);
  --drawing;
  sayWhetherDrawn();
}

// Draws the charts near the window first, and the others when the browser is idle.
const near = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) {
    near[isIntersecting ? "add" : "delete"](target);
    if (isIntersecting) draw(target);
  }
}, {rootMargin: "600px"});
const elements = [...document.querySelectorAll(".chart")];
elements.forEach((one) => watcher.observe(one));

const whenIdle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 50));
const undrawn = () => elements.find((one) => one.clientWidth && one.drawnAt !== one.clientWidth);
function sayWhetherDrawn() {
  document.documentElement.dataset.drawn = drawing || undrawn() ? "some" : "all";
}
let turn = 0;
function drawRest(mine = ++turn) {
  const next = undrawn();
  sayWhetherDrawn();
  if (next && mine === turn) draw(next).then(() => whenIdle(() => drawRest(mine)));
}
addEventListener("beforeprint", () => elements.forEach(draw));

function drawAgain() {
  for (const one of elements) one.drawnAt = null;
  near.forEach(draw);
  drawRest();
}
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    near.forEach(draw);
    drawRest();
  }, 120);
});
document.addEventListener("toggle", () => drawRest(), true);

// Filters

const boxes = [...document.querySelectorAll("input[name=contestant]")];
for (const swatch of document.querySelectorAll(".filter .swatch")) paint(swatch, swatch.dataset.who);
function filter() {
  hidden.clear();
  for (const box of boxes) if (!box.checked) hidden.add(box.value);
  for (const row of document.querySelectorAll("tr[data-who]")) row.hidden = hidden.has(row.dataset.who);
  document.getElementById("count").textContent = `${boxes.length - hidden.size} of ${boxes.length}`;
  drawAgain();
}
boxes.forEach((box) => box.addEventListener("change", filter));
const MAIN = ["ours", "floor", "peer"];
for (const button of document.querySelectorAll("[data-preset]"))
  button.addEventListener("click", () => {
    const preset = button.dataset.preset;
    for (const box of boxes)
      box.checked = preset === "all" || (preset === "main" && MAIN.includes(known.get(box.value).role));
    filter();
  });
document.getElementById("historic").addEventListener("change", ({target}) => {
  historic = target.checked;
  drawAgain();
});
const panel = document.getElementById("filter");
addEventListener("keydown", ({key}) => {
  if (key !== "Escape" || !panel.open) return;
  panel.open = false;
  panel.querySelector("summary").focus();
});
addEventListener("click", ({target}) => {
  if (!panel.contains(target)) panel.open = false;
});

const everything = document.getElementById("open-all");
everything.addEventListener("click", () => {
  const open = everything.getAttribute("aria-pressed") !== "true";
  everything.setAttribute("aria-pressed", open);
  everything.textContent = open ? "Close everything" : "Open everything";
  for (const one of document.querySelectorAll("#scenarios details")) one.open = open;
});
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target?.id === "limits") document.getElementById("limits-list").open = true;
  if (target?.matches?.(".scenario")) target.querySelector("details.cases")?.setAttribute("open", "");
}
addEventListener("hashchange", openTarget);

// A table is a stop for the keyboard only while it can be scrolled.
const scrolled = new ResizeObserver((entries) => {
  for (const {target} of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
});
for (const one of document.querySelectorAll(".scroll")) scrolled.observe(one);

// Colours: as the system sets them, or as chosen

const system = matchMedia("(prefers-color-scheme: dark)");
const theme = document.getElementById("theme");
const THEMES = {Auto: "as the system sets them", Light: "light", Dark: "dark"};
function colour() {
  const dark = theme.textContent === "Dark" || (theme.textContent === "Auto" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
theme.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme.textContent = names[(names.indexOf(theme.textContent) + 1) % names.length];
  theme.setAttribute("aria-label", `Colours: ${THEMES[theme.textContent]}`);
  colour();
});
system.addEventListener("change", colour);
colour();
filter();
openTarget();
