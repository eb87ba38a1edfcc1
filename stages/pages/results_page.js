"use strict";
const number = text => { const found = /^[+−-]?[\d,.]+(e[+-]?\d+)?/.exec(text.trim()); return text.trim() === "inf" ? Infinity
  : found ? parseFloat(found[0].replace("−", "-").replace(/,/g, "")) : NaN; };
const make = (name, attributes = {}, ...children) => { const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value); one.append(...children); return one; };
const shownRows = table => [...table.tBodies[0].rows].filter(row => !row.hidden);
const texts = row => [...row.cells].map(cell => cell.textContent.trim());
const formats = {
  CSV: rows => rows.map(row => row.map(cell => /[",\n]/.test(cell) ? '"' + cell.replace(/"/g, '""') + '"' : cell).join(",")).join("\n"),
  Markdown: rows => rows.map((row, place) => "| " + row.map(cell => cell.replace(/\|/g, "\\|")).join(" | ") + " |"
    + (place ? "" : "\n|" + " --- |".repeat(row.length))).join("\n"),
  LaTeX: rows => "\\begin{tabular}{" + "l".repeat(rows[0].length) + "}\n" + rows.map(row => row.map(cell => "{"
    + cell.replace(/\\/g, "\\textbackslash ").replace(/([&%$#_{}])/g, "\\$1").replace(/±/g, "$\\pm$").replace(/−/g, "$-$")
    + "}").join(" & ") + " \\\\").join("\n") + "\n\\end{tabular}",
};
function copy(text, said) {
  const done = () => { said.value = "copied"; };
  const byHand = () => { const area = make("textarea"); area.value = text; document.body.append(area); area.select();
    document.execCommand("copy"); area.remove(); done(); };
  if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, byHand); else byHand();
}
function dress(table) {
  const heads = [...table.tHead.rows[0].cells], said = make("output", {"aria-live": "polite"});
  const count = () => { said.value = shownRows(table).length + " of " + table.tBodies[0].rows.length + " rows"; };
  const words = make("input", {type: "search", placeholder: "filter rows", "aria-label": "filter rows"});
  const chosen = new Map();
  const filter = () => { const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) { const all = texts(row), text = all.join(" ").toLowerCase();
      row.hidden = !asked.every(word => text.includes(word)) || [...chosen].some(([place, value]) => value && all[place] !== value); }
    count(); };
  words.addEventListener("input", filter);
  const tools = make("div", {class: "tools"}, words);
  heads.forEach((head, place) => {
    const name = head.textContent.trim(), button = make("button", {type: "button"}, name);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map(row => [row, row.cells[place].textContent.trim()]);
      rows.sort(([, a], [, b]) => { if (!a !== !b) return a ? -1 : 1; const x = number(a), y = number(b);
        return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x < y ? -1 : x > y ? 1 : 0); });
      table.tBodies[0].append(...rows.map(([row]) => row));
    });
    head.replaceChildren(button);
    if (["data", "row", "method", "mechanism", "epsilon", "their protocol", "ours", "paper"].includes(name)) {
      const values = [...new Set([...table.tBodies[0].rows].map(row => texts(row)[place]))].filter(Boolean);
      const words = !["their protocol", "ours"].includes(name) || values.every(value => Number.isNaN(number(value)));
      if (words && values.length > 1 && values.length <= 24) {
        const select = make("select", {"aria-label": name}, make("option", {value: ""}, name + ": all"),
          ...values.map(value => make("option", {value}, value)));
        select.addEventListener("change", () => { chosen.set(place, select.value); filter(); });
        tools.append(select);
      }
    }
  });
  for (const [name, format] of Object.entries(formats)) {
    const button = make("button", {type: "button"}, "Copy " + name);
    button.addEventListener("click", () => copy(format([heads.map(head => head.textContent.trim()), ...shownRows(table).map(texts)]), said));
    tools.append(button);
  }
  for (const cell of table.querySelectorAll("td")) if (/^[^[]{1,9} \[[^\]]{1,18}\]$/.test(cell.textContent)) cell.classList.add("span");
  tools.append(said); count();
  table.closest(".scroll").before(tools);
}
const round = (low, high) => { const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(one => one >= raw), out = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9; at++) out.push(at * step);
  return out.map(value => [value, value.toFixed(Math.max(0, -Math.floor(Math.log10(step))))]); };
const drawn = (name, attributes, text) => { const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value); if (text !== undefined) one.textContent = text; return one; };
function curve(box) {
  const points = JSON.parse(box.querySelector("script").textContent), hidden = new Set();
  const pick = (name, values) => make("select", {"aria-label": name}, ...values.map(value => make("option", {value}, value)));
  const data = pick("data set", [...new Set(points.map(one => one.data))]), column = pick("protocol",
    [["theirs", "their protocol"], ["ours", "ours"]].filter(([key]) => points.some(one => one[key])).map(([, words]) => words));
  const said = make("output", {"aria-live": "polite"}), place = make("div"), keys = make("div", {class: "keys"});
  const names = [...new Set(points.map(one => one.row))];
  names.forEach((name, index) => { const tick = make("input", {type: "checkbox", checked: ""});
    tick.addEventListener("change", () => { tick.checked ? hidden.delete(name) : hidden.add(name); draw(); });
    keys.append(make("label", {}, tick, make("i", {class: "c" + index % 7, style: "display:inline-block"}), name)); });
  function draw() {
    const mine = points.filter(one => one.data === data.value && !hidden.has(one.row));
    const scores = one => column.value === "ours" ? one.ours : one.theirs;
    const known = mine.filter(one => scores(one)), xs = [...new Set(known.map(one => one.x))];
    const levels = column.value === "ours" && known.length ? [known[0].floor, known[0].ceiling].filter(Boolean) : [];
    const ends = [...known.flatMap(one => scores(one)), ...levels.flat()].filter(Number.isFinite);
    if (!ends.length) { place.replaceChildren("nothing to draw"); return; }
    // What all places begin with stands once, under them; each has a line for each further part of its name.
    const shared = xs.length < 2 ? "" : xs.reduce((one, two) => { while (!two.startsWith(one)) one = one.slice(0, one.lastIndexOf(" ", one.length - 2) + 1); return one; }, xs[0].slice(0, xs[0].lastIndexOf(" ") + 1));
    const words = at => at.slice(shared.length).split(", "), lines = Math.max(...xs.map(at => words(at).length)), tall = 324 + 16 * (lines + Boolean(shared));
    const right = box.clientWidth < 500 ? 360 : 620, lowest = Math.min(...ends), highest = Math.max(...ends),
      pad = Math.max(0.06 * (highest - lowest), highest > 2 ? 0.5 : 0.0005), low = lowest - pad, high = highest + pad, svg = drawn("svg", {viewBox: "0 0 " + (right + 20) + " " + tall, role: "group",
      "aria-label": "curves; every point can be focused"});
    const x = at => 60 + (xs.length < 2 ? (right - 80) / 2 : (right - 80) * xs.indexOf(at) / (xs.length - 1)), y = value => 300 - 280 * (value - low) / (high - low);
    for (const [value, words] of round(low, high))
      svg.append(drawn("line", {x1: 50, x2: right, y1: y(value), y2: y(value), class: "axis"}), drawn("text", {x: 4, y: y(value) + 4}, words));
    xs.forEach(at => words(at).forEach((word, line) => { const half = 4.2 * word.length, anchor = x(at) < half ? "start" : x(at) + half > right + 20 ? "end" : "middle";
      svg.append(drawn("text", {x: { start: 2, end: right + 18, middle: x(at) }[anchor], y: 325 + 16 * line, "text-anchor": anchor}, word)); }));
    if (shared) svg.append(drawn("text", {x: (50 + right) / 2, y: tall - 4, "text-anchor": "middle"}, shared.trim().replaceAll("_", " ")));
    levels.forEach((level, index) => { if (level[1] !== null) svg.append(drawn("rect", {x: 50, width: right - 50, y: y(level[2]), height: Math.max(1, y(level[1]) - y(level[2])), class: "band"}));
      svg.append(drawn("line", {x1: 50, x2: right, y1: y(level[0]), y2: y(level[0]), class: "level", "stroke-dasharray": index ? "7 4" : ""}));
      svg.append(drawn("text", {x: right - 80, y: y(level[0]) - 4}, (index ? "ceiling " : "floor ") + level[0].toFixed(known[0].digits))); });
    names.forEach((name, index) => { const own = known.filter(one => one.row === name); if (!own.length) return;
      svg.append(drawn("polyline", {points: own.map(one => x(one.x) + "," + y(scores(one)[0])).join(" "), class: "line c" + index % 7, style: "fill:none"}));
      own.forEach(one => { const [mean, ...span] = scores(one), [from, to] = span, shown = value => value.toFixed(one.digits),
          text = name + ", " + one.x + ": " + shown(mean) + (from === null ? "" : " [" + span.map(shown).join(", ") + "]");
        if (from !== null) svg.append(drawn("line", {x1: x(one.x), x2: x(one.x), y1: y(from), y2: y(to), class: "c" + index % 7}));
        const dot = drawn("circle", {cx: x(one.x), cy: y(mean), r: 5, tabindex: 0, role: "img", "aria-label": text, class: "dot c" + index % 7});
        dot.append(drawn("title", {}, text));
        ["focus", "mouseenter"].forEach(event => dot.addEventListener(event, () => { said.value = text; }));
        svg.append(dot); }); });
    place.replaceChildren(svg);
  }
  data.addEventListener("change", draw); column.addEventListener("change", draw);
  box.append(make("div", {class: "tools"}, data, column, said), keys, place); draw();
}
document.querySelectorAll("table.sorted").forEach(dress);
document.querySelectorAll(".curve").forEach(curve);
const open = () => { const target = location.hash && document.getElementById(location.hash.slice(1)); if (target && target.tagName === "DETAILS") target.open = true; };
addEventListener("hashchange", open); open();
let closed = [];
addEventListener("beforeprint", () => { closed = [...document.querySelectorAll("details:not([open])")]; closed.forEach(one => { one.open = true; }); });
addEventListener("afterprint", () => { closed.forEach(one => { one.open = false; }); });
