"use strict";
// Everything a case holds is hostile: it is only ever set as text.
(async () => {
  const at = (id) => document.getElementById(id);
  const make = (tag, cls, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(plain).json();
  };
  let data;
  try {
    data = await unpack(at("data").textContent.trim());
  } catch (error) {
    at("count").textContent = `this browser cannot unpack the cases: ${error}`;
    return;
  }
  const packs = new Map();
  const told = async (suite, id) => {
    if (!packs.has(suite)) packs.set(suite, unpack(data.suites[suite].pack));
    return (await packs.get(suite))[id];
  };
  const rows = data.rows.map(([id, suite, kind, label, named]) => ({ id, suite, kind, label, named }));
  rows.sort((a, b) => b.kind - a.kind || (a.suite + a.id).localeCompare(b.suite + b.id));

  // --- filters, kept in the address so that a view can be sent to somebody
  const fields = { words: at("words"), suite: at("suite"), kind: at("kind"), named: at("named") };
  const offer = (select, values) => {
    select.append(new Option("any", ""));
    for (const value of values) select.append(new Option(value, value));
  };
  offer(fields.suite, Object.keys(data.suites));
  const present = new Set(rows.map((row) => row.kind));
  offer(fields.kind, data.kinds.filter((_, index) => present.has(index)).map((kind) => kind.word));
  offer(fields.named, [...new Set(rows.flatMap((row) => row.named))].sort());
  at("filters").hidden = false;

  const STEP = 100;
  let shown = STEP;
  let open = "";
  const remember = () => {
    const state = new URLSearchParams();
    for (const [name, field] of Object.entries(fields)) if (field.value) state.set(name, field.value);
    if (open) state.set("case", open);
    history.replaceState(null, "", `#${state}`);
  };
  const recall = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, field] of Object.entries(fields)) field.value = state.get(name) ?? "";
    open = state.get("case") ?? "";
  };
  const matches = (row) => {
    const words = fields.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = `${row.id} ${row.label} ${row.named.join(" ")}`.toLowerCase();
    return (!fields.suite.value || row.suite === fields.suite.value)
      && (!fields.kind.value || data.kinds[row.kind].word === fields.kind.value)
      && (!fields.named.value || row.named.includes(fields.named.value))
      && words.every((word) => text.includes(word));
  };
  const draw = () => {
    let found = rows.filter(matches);
    const place = found.findIndex((row) => row.id === open);
    if (place >= shown) found = [found[place], ...found.slice(0, place), ...found.slice(place + 1)];
    at("count").textContent = `${found.length} of ${rows.length} cases`;
    at("cases").replaceChildren(...found.slice(0, shown).map(entry));
    at("more").hidden = found.length <= shown;
    remember();
  };

  // --- one case
  const entry = (row) => {
    const item = make("li");
    const button = make("button", "case");
    button.type = "button";
    button.append(make("b", "", row.id), make("em", "", row.suite));
    button.append(make("span", `tag n ${data.kinds[row.kind].class}`, row.label));
    button.setAttribute("aria-expanded", "false");
    item.append(button);
    const toggle = async (show) => {
      button.setAttribute("aria-expanded", String(show));
      item.querySelector(".more")?.remove();
      if (show) item.append(detail(row, await told(row.suite, row.id)));
    };
    button.addEventListener("click", () => {
      const show = button.getAttribute("aria-expanded") === "false";
      open = show ? row.id : "";
      toggle(show);
      remember();
    });
    if (row.id === open) toggle(true);
    return item;
  };
  const part = (box, title, ...nodes) => {
    if (nodes.length) box.append(make("h3", "", title), ...nodes);
  };
  const lines = (values) => make("pre", "", values.join("\n"));
  const word = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const detail = (row, one) => {
    const box = make("div", "more");
    if (!one) {
      box.append(make("p", "", "nothing was kept of this case"));
      return box;
    }
    const about = one.case;
    box.append(make("p", "", one.why));
    if (about) {
      if (about.comment) box.append(make("p", "", about.comment));
      const world = [`cwd ${about.cwd}, context ${word(about.context)}, user ${word(about.user)}`];
      for (const held of about.held) world.push(`grant ${held.id}: ${held.verb} on ${held.on}`);
      for (const file of about.files ?? []) world.push(`file ${file}`);
      for (const [key, value] of Object.entries(about.settings)) world.push(`${key} = ${word(value)}`);
      part(box, "world", lines(world));
      part(box, "expected of the agent", make("p", "", `${word(about.must)} ${about.reason ?? ""}`));
    }
    const steps = Math.max(one.hermes?.steps.length ?? 0, one.agent?.steps.length ?? 0, about?.script.length ?? 0);
    for (let index = 0; index < steps; index += 1) {
      part(box, `step ${index + 1}`, lines([about?.script[index] ?? "(not in these vectors)"]));
      box.append(sides(one, (trace) => step(trace?.steps[index], other(one, trace)?.steps[index])));
      for (const judged of one.judged?.steps ?? []) {
        if (judged.step !== index) continue;
        box.append(make("p", "finding", `${judged.finding}: ${judged.why} (${judged.what} ${judged.hermes} -> ${judged.agent})`));
      }
    }
    part(box, "the whole run", sides(one, (trace) => whole(trace, other(one, trace))));
    const line = `cargo bisim check --explain ${row.id}${data.again}`;
    const copy = make("div", "copy");
    const button = make("button", "", "copy");
    button.type = "button";
    button.addEventListener("click", () => navigator.clipboard?.writeText(line).then(() => { button.textContent = "copied"; }));
    copy.append(make("pre", "replay", line), button);
    part(box, "see it again", copy);
    return box;
  };
  const other = (one, trace) => (trace === one.hermes ? one.agent : one.hermes);
  const sides = (one, tell) => {
    const both = make("div", "sides");
    for (const [name, trace] of [["Hermes", one.hermes], ["hermitcrab", one.agent]]) {
      const side = make("div");
      side.append(make("h4", "", name), ...tell(trace));
      both.append(side);
    }
    return both;
  };
  const effects = (own, others) => {
    const list = make("ul", "effects");
    for (const effect of own) list.append(make("li", (others ?? []).includes(effect) ? "" : "only", effect));
    return list;
  };
  const step = (mine, theirs) => {
    if (!mine) return [make("p", "", "not reached")];
    const nodes = [make("p", "", word(mine.outcome))];
    for (const [asked, answer] of mine.asked) nodes.push(lines([`asked: ${asked}`, `answered: ${answer}`]));
    if (mine.text) nodes.push(lines([mine.text]));
    if (mine.answer !== null) nodes.push(lines([word(mine.answer)]));
    nodes.push(effects(mine.effects, theirs?.effects));
    return nodes;
  };
  const whole = (mine, theirs) => {
    if (!mine) return [make("p", "", "no trace")];
    const facts = [`end: ${word(mine.end)}`, `${mine.cpu_ms.toFixed(1)} ms processor time, ${mine.wall_ms.toFixed(1)} ms in all`];
    for (const net of mine.network) facts.push(`network ${net}`);
    for (const trip of mine.tripwires) facts.push(`tripwire ${trip}`);
    return [lines(facts), effects(mine.effects, theirs?.effects)];
  };

  // --- plots
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const colour = { same: "var(--same)", named: "var(--named)", open: "var(--open)", fail: "var(--fail)", unsafe: "var(--unsafe)" };
  const trends = (runs) => {
    const wide = Math.max(640, runs.length * 26 + 60);
    const high = 180;
    const most = Math.max(...runs.map((run) => run.chosen), 1);
    const plot = svg("svg", { width: wide, height: high + 40, role: "img", "aria-label": "verdicts of each run" });
    plot.append(svg("line", { class: "axis", x1: 40, y1: high + 10, x2: wide, y2: high + 10 }));
    plot.append(svg("text", { x: 0, y: 18 }, String(most)));
    runs.forEach((run, index) => {
      let y = high + 10;
      const x = 44 + index * 26;
      const column = svg("g", {});
      const counts = data.kinds.map((kind) => [kind, run.verdicts[kind.word] ?? 0]).filter(([, count]) => count);
      for (const [kind, count] of counts) {
        const height = (count * high) / most;
        y -= height;
        column.append(svg("rect", { x, y, width: 20, height, fill: colour[kind.class] }));
      }
      const told = counts.map(([kind, count]) => `${count} ${kind.word}`).join(", ");
      column.append(svg("title", {}, `${run.day}: ${run.ran} of ${run.chosen} ran, ${told}, exit ${run.exit}`));
      plot.append(column);
      if (index % 4 === 0) plot.append(svg("text", { x, y: high + 26 }, run.day.slice(5)));
    });
    return plot;
  };
  const heat = (campaign) => {
    const classes = Object.entries(campaign.classes);
    const fates = [...new Set(classes.flatMap(([, counts]) => Object.keys(counts)))];
    const plot = svg("svg", { width: 190 + fates.length * 96, height: 30 + classes.length * 20, role: "img", "aria-label": "classes of rewriting by outcome" });
    fates.forEach((fate, column) => plot.append(svg("text", { x: 190 + column * 96, y: 14 }, fate)));
    classes.forEach(([name, counts], line) => {
      const y = 22 + line * 20;
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0) || 1;
      plot.append(svg("text", { x: 0, y: y + 13 }, name));
      fates.forEach((fate, column) => {
        const count = counts[fate] ?? 0;
        const cell = svg("rect", { x: 190 + column * 96, y, width: 90, height: 17, rx: 3, fill: fate === "agent-unsafe" ? colour.unsafe : colour.named, "fill-opacity": (0.06 + (0.9 * count) / all).toFixed(3) });
        cell.append(svg("title", {}, `${name}, ${fate}: ${count} of ${all}`));
        plot.append(cell, svg("text", { x: 196 + column * 96, y: y + 13 }, String(count)));
      });
    });
    return plot;
  };
  if (data.history.length > 1) {
    at("trends").hidden = false;
    at("trend-plot").append(trends(data.history));
  }
  for (const campaign of data.campaigns) {
    at("campaigns").hidden = false;
    const box = make("div", "wide");
    box.append(heat(campaign));
    at("campaign-plots").append(make("p", "", campaign.headline), box);
  }

  // --- what people press
  for (const field of Object.values(fields)) field.addEventListener("input", () => { shown = STEP; draw(); });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("reset", () => setTimeout(() => { shown = STEP; draw(); }));
  at("more").addEventListener("click", () => { shown += STEP; draw(); });
  const table = at("suites");
  table.classList.add("live");
  table.addEventListener("click", (event) => {
    const suite = event.target.closest("tr")?.dataset.suite;
    if (!suite) return;
    fields.suite.value = suite;
    fields.kind.value = event.target.closest("td")?.dataset.kind ?? "";
    shown = STEP;
    draw();
    at("cases-title").scrollIntoView();
  });
  addEventListener("hashchange", () => { recall(); draw(); });
  recall();
  draw();
})();
