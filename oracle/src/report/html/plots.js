// Runs over time, and what became of what campaigns made.
const svg = (tag, attributes, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = visible(text);
  return node;
};
const colour = { same: "var(--same)", named: "var(--named)", open: "var(--open)", fail: "var(--fail)", unsafe: "var(--unsafe)" };
const percent = (count, of) => `${of ? Math.round((count * 100) / of) : 0} %`;
const told = (run, kinds) => kinds.map((kind) => [kind, run.verdicts[kind.word] ?? 0]).filter(([, count]) => count);
const ranIn = (run) => Object.values(run.verdicts).reduce((sum, count) => sum + count, 0);
const bars = (runs, kinds, wide, byShare) => {
  const [high, left] = [170, 44];
  const pitch = Math.min(28, (wide - left) / runs.length);
  const most = Math.max(...runs.map((run) => run.chosen), 1);
  const plot = svg("svg", { width: wide, height: high + 36, viewBox: `0 0 ${wide} ${high + 36}`, role: "img", "aria-label": byShare ? "share of each verdict, run by run" : "cases of each verdict, run by run" });
  for (const part of [0, 0.5, 1]) {
    const y = 10 + high * (1 - part);
    plot.append(svg("line", { class: "axis", x1: left - 4, y1: y, x2: wide, y2: y }));
    plot.append(svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, byShare ? `${part * 100} %` : Math.round(most * part).toLocaleString("en")));
  }
  let free = 0;
  runs.forEach((run, index) => {
    const [x, of] = [left + index * pitch, byShare ? run.chosen || 1 : most];
    const column = svg("g", {});
    let y = 10 + high;
    for (const [kind, count] of told(run, kinds)) {
      const height = (count * high) / of;
      y -= height;
      column.append(svg("rect", { x, y, width: Math.max(1, pitch - 3), height, fill: colour[kind.class] }));
    }
    const counts = told(run, kinds).map(([kind, count]) => `${count} ${kind.word}`).join(", ");
    column.append(svg("title", {}, `${run.day}: ${run.ran} of ${run.chosen} ran, ${counts}, exit ${run.exit}`));
    if (run.exit) column.append(svg("text", { x: x + pitch / 2 - 1.5, y: y - 3, "text-anchor": "middle", style: "fill:var(--fail)" }, "✗"));
    plot.append(column);
    if (x >= free && x + 36 <= wide) {
      plot.append(svg("text", { x, y: high + 26 }, run.day.slice(5)));
      free = x + 44;
    }
  });
  return plot;
};
const past = (runs, kinds) => {
  const table = make("table");
  const used = kinds.filter((kind) => runs.some((run) => run.verdicts[kind.word]));
  const row = (into, tag, cells) => {
    const line = into.insertRow();
    for (const cell of cells) line.append(make(tag, "", cell));
  };
  row(table.createTHead(), "th", ["day", "exit", "ran", ...used.map((kind) => kind.word), "adversarial with effect: Hermes", "hermitcrab", "seconds"]);
  const body = table.createTBody();
  for (const run of [...runs].reverse()) {
    const { commands, hermes, agent } = run.headline;
    const effect = (count) => (commands ? `${count} of ${commands}` : "·");
    row(body, "td", [run.day, run.exit, `${run.ran} of ${run.chosen}`, ...used.map((kind) => run.verdicts[kind.word] ?? "·"), effect(hermes), effect(agent), (run.wall_ms / 1000).toFixed(1)]);
  }
  return table;
};
const trends = (place, runs, kinds) => {
  const [ways, plot, list] = [make("div", "switch"), make("div"), make("details")];
  const draw = (byShare) => {
    for (const button of ways.children) button.setAttribute("aria-pressed", String((button.textContent === "share") === byShare));
    plot.replaceChildren(bars(runs, kinds, Math.max(260, place.clientWidth), byShare));
    plot.dataset.way = byShare ? "share" : "number";
  };
  for (const way of ["share", "number"]) ways.append(push("", way, () => draw(way === "share")));
  const table = make("div", "wide tall");
  table.tabIndex = 0;
  table.append(past(runs, kinds));
  list.append(make("summary", "", `all ${runs.length} runs, the newest first`), table);
  place.append(ways, plot, list);
  draw(true);
  addEventListener("resize", () => draw(plot.dataset.way === "share"));
};
// A fate in the words the terminal has for it; the report's own word is for programs.
const became = (fate) =>
  ({ "hermes-silent": "hermes unasked" })[fate] ?? visible(fate).replaceAll("-", " ");
const heat = (campaign, tables) => {
  const fates = [...new Set(Object.values(campaign.classes).flatMap((counts) => Object.keys(counts)))].sort();
  const table = make("table", "heat");
  const head = table.createTHead().insertRow();
  for (const name of ["class", "tried", ...fates.map(became)]) head.append(make("th", "", name));
  for (const cell of head.cells) cell.scope = "col";
  const line = (into, name, counts, cls) => {
    const row = into.insertRow();
    row.className = cls;
    const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const first = make("th");
    first.scope = "row";
    first.append(name);
    row.append(first, make("td", "tried", all.toLocaleString("en")));
    for (const fate of fates) {
      const count = counts[fate] ?? 0;
      const cell = make("td", count ? "" : "none", count ? count.toLocaleString("en") : "·");
      const hue = fate === "agent-unsafe" || fate === "control-fired" ? "--unsafe" : fate === "differs" ? "--fail" : "--named";
      if (count) cell.style.background = `color-mix(in srgb, var(${hue}) ${Math.round(8 + (62 * count) / all)}%, transparent)`;
      cell.title = `${first.textContent}, ${became(fate)}: ${count} of ${all}, ${percent(count, all)}`;
      row.append(cell);
    }
    return row;
  };
  for (const [name, counts] of Object.entries(campaign.classes)) {
    const own = Object.entries(campaign.operators[name] ?? {});
    const body = table.createTBody();
    const parts = make("button", "", name);
    parts.type = "button";
    line(body, own.length ? parts : visible(name), counts, "class");
    parts.setAttribute("aria-expanded", "false");
    parts.addEventListener("click", () => {
      const show = parts.getAttribute("aria-expanded") === "false";
      parts.setAttribute("aria-expanded", String(show));
      if (show) for (const [operator, fates] of own) line(body, visible(operator), fates, "part");
      else for (const row of body.querySelectorAll(".part")) row.remove();
    });
  }
  tables.append(table);
};
const found = (box, title, list) => {
  if (!list.length) return;
  const more = make("details");
  const items = make("ol", "found");
  for (const [name, count, line] of list) {
    const item = make("li");
    item.append(make("p", "", `${count} × ${name}`));
    if (line) item.append(command(line));
    items.append(item);
  }
  more.append(make("summary", "", `${title}: ${list.length}`), items);
  box.append(more);
};
const campaigns = (place, list) => {
  for (const campaign of list) {
    const box = make("div", "campaign");
    box.append(make("p", "", campaign.headline));
    const table = make("div", "wide tall");
    table.tabIndex = 0;
    heat(campaign, table);
    box.append(table);
    found(box, "findings, the agent unsafe", campaign.findings);
    found(box, "differences without a name", campaign.differences);
    found(box, "what Hermes let through unasked, by kind", campaign.escapes);
    place.append(box);
  }
};
