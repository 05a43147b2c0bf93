// The list of cases, its filters, and what leads to them.
(async () => {
  let data;
  try {
    data = await unpack(at("data").textContent.trim());
  } catch (error) {
    at("count").textContent = `this browser cannot unpack the cases: ${visible(error)}`;
    return;
  }
  const packs = new Map();
  const tell = async (suite, id) => {
    if (!packs.has(suite)) packs.set(suite, unpack(data.suites[suite].pack));
    return (await packs.get(suite))[id];
  };
  const rows = data.rows.map(([id, suite, kind, label, named, why]) => ({ id, suite, kind, label, named, why }));
  for (const row of rows) row.text = `${row.id} ${row.suite} ${row.label} ${row.named.join(" ")}`.toLowerCase();
  const order = new Intl.Collator("en", { numeric: true }).compare;
  rows.sort((a, b) => b.kind - a.kind || order(a.suite, b.suite) || order(a.id, b.id));

  // --- filters, kept in the address so that a view can be sent to somebody
  const fields = { words: at("words"), suite: at("suite"), kind: at("kind"), named: at("named") };
  const OPEN = "not passing";
  const count = (of) => rows.reduce((sum, row) => sum + (of(row) ? 1 : 0), 0);
  const offer = (select, values) => {
    select.append(new Option("any", ""));
    for (const [value, many] of values) select.append(new Option(`${visible(value)} (${many})`, value));
  };
  const counted = (of) => {
    const all = new Map();
    for (const row of rows) for (const one of of(row)) all.set(one, (all.get(one) ?? 0) + 1);
    return all;
  };
  const sorted = (all) => [...all].sort(([a], [b]) => order(a, b));
  const named = counted((row) => row.named);
  offer(fields.suite, sorted(counted((row) => [row.suite])));
  const kinds = data.kinds.map((kind, index) => [kind.word, count((row) => row.kind === index)]).filter(([, many]) => many);
  offer(fields.kind, [[OPEN, count((row) => !data.kinds[row.kind].passes)], ...kinds]);
  offer(fields.named, sorted(named));
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
    for (const [name, field] of Object.entries(fields)) {
      field.value = state.get(name) ?? "";
      // A view of another run may name what this one does not have.
      if (field.selectedIndex === -1) field.value = "";
    }
    open = state.get("case") ?? "";
  };
  const matches = (words) => (row) => (!fields.suite.value || row.suite === fields.suite.value)
      && (!fields.kind.value || data.kinds[row.kind].word === fields.kind.value
        || (fields.kind.value === OPEN && !data.kinds[row.kind].passes))
      && (!fields.named.value || row.named.includes(fields.named.value))
      && words.every((one) => row.text.includes(one));
  const draw = () => {
    let hits = rows.filter(matches(fields.words.value.toLowerCase().split(/\s+/).filter(Boolean)));
    const place = hits.findIndex((row) => row.id === open);
    if (place >= shown) hits = [hits[place], ...hits.slice(0, place), ...hits.slice(place + 1)];
    at("count").textContent = hits.length === rows.length ? cases(rows.length) : `${hits.length.toLocaleString("en")} of ${cases(rows.length)}`;
    at("cases").replaceChildren(...hits.slice(0, shown).map(entry));
    const left = hits.length - shown;
    at("more").hidden = left <= 0;
    at("more").textContent = `${Math.min(left, STEP)} more of ${left}`;
    for (const button of document.querySelectorAll("button.kind")) {
      button.setAttribute("aria-pressed", String(fields.kind.value === button.dataset.kind));
    }
    at("reset").disabled = !open && Object.values(fields).every((field) => !field.value);
    remember();
  };
  const narrow = (wanted) => {
    for (const [name, field] of Object.entries(fields)) field.value = wanted[name] ?? "";
    shown = STEP;
    draw();
  };
  // Where a press leads, the keyboard goes, too.
  const go = (title) => {
    at(title).tabIndex = -1;
    at(title).focus({ preventScroll: true });
    at(title).scrollIntoView();
  };

  const entry = (row) => {
    const item = make("li");
    const button = push("case", undefined, () => {
      const show = button.getAttribute("aria-expanded") === "false";
      open = show ? row.id : "";
      toggle(show);
      at("reset").disabled = false;
      remember();
    });
    button.append(make("b", "", row.id), make("em", "", row.suite));
    button.append(make("span", `tag n ${data.kinds[row.kind].class}`, row.label));
    if (row.why) button.append(make("small", "", row.why));
    button.setAttribute("aria-expanded", "false");
    item.append(button);
    const toggle = async (show) => {
      button.setAttribute("aria-expanded", String(show));
      item.setAttribute("aria-busy", "true");
      const one = show && (await tell(row.suite, row.id));
      item.removeAttribute("aria-busy");
      // It may have been pressed again meanwhile.
      item.querySelector(".more")?.remove();
      if (button.getAttribute("aria-expanded") === "true") item.append(detail(row, one, data.again));
    };
    if (row.id === open) toggle(true);
    return item;
  };

  // --- the table of suites: what is there without scripts, and can be pressed with them
  const table = at("suites");
  const wrap = (cell, press, name) => {
    const button = push("", undefined, press);
    button.append(...cell.childNodes);
    if (name) button.setAttribute("aria-label", name);
    cell.append(button);
  };
  for (const row of table.tBodies[0].rows) {
    const suite = row.dataset.suite;
    const to = (kind) => () => {
      narrow({ suite, kind });
      go("cases-title");
    };
    const title = row.cells[0].querySelector("span");
    wrap(title, to());
    const about = data.suites[suite]?.about;
    if (about) title.title = visible(about);
    for (const cell of row.querySelectorAll("td[data-kind]")) {
      wrap(cell, to(cell.dataset.kind), `${cases(Number(cell.textContent))} ${cell.dataset.kind} in ${visible(suite)}`);
    }
  }
  const number = (cell) => Number(cell.textContent.replace(/\D/g, ""));
  for (const head of table.tHead.rows[0].cells) {
    wrap(head, () => {
      const place = head.cellIndex;
      const rises = head.getAttribute("aria-sort") === "descending" || (place === 0 && !head.hasAttribute("aria-sort"));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const by = (a, b) => (place === 0 ? order(a.dataset.suite, b.dataset.suite) : number(a.cells[place]) - number(b.cells[place]));
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => (rises ? by(a, b) : by(b, a))));
    });
  }

  // --- verdicts as a whole
  for (const box of document.querySelectorAll(".kinds>li")) {
    const kind = box.dataset.kind;
    const button = push("kind", undefined, () => {
      narrow({ kind: fields.kind.value === kind ? "" : kind });
    });
    button.dataset.kind = kind;
    button.append(...box.childNodes);
    box.append(button);
  }

  // --- named differences
  for (const [id, many] of [...named].sort((a, b) => b[1] - a[1] || order(a[0], b[0]))) {
    const item = make("li");
    const about = make("div");
    about.append(push("plain", id, () => {
      narrow({ named: id });
      go("cases-title");
    }));
    const entry = data.named[id];
    if (entry) about.append(make("p", "", entry[0]), make("small", "", `${entry[1]}, to be looked at again by ${entry[2]}`));
    item.append(make("b", "", many.toLocaleString("en")), about);
    at("differences-list").append(item);
    at("differences").hidden = false;
  }

  if (data.history.length > 1) {
    at("trends").hidden = false;
    trends(at("trend-plot"), data.history, data.kinds);
  }
  if (data.campaigns.length) {
    at("campaigns").hidden = false;
    campaigns(at("campaign-plots"), data.campaigns);
  }
  for (const title of document.querySelectorAll("h2")) {
    if (title.closest("[hidden]")) continue;
    at("parts").append(push("", title.textContent.split(":")[0], () => go(title.id)));
  }
  at("parts").hidden = false;

  // --- what people press
  for (const field of Object.values(fields)) field.addEventListener("input", () => { shown = STEP; draw(); });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("reset", (event) => {
    event.preventDefault();
    open = "";
    narrow({});
    go("cases-title");
  });
  at("more").addEventListener("click", () => {
    const last = at("cases").children.length;
    shown += STEP;
    draw();
    at("cases").children[last]?.querySelector("button").focus();
  });
  addEventListener("hashchange", () => { recall(); draw(); });
  recall();
  draw();
  document.body.dataset.ready = "";
})();
