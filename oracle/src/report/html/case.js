// One case: its world, and call by call what both sides did.
const part = (box, title, ...nodes) => {
  if (nodes.length) box.append(make("h3", "", title), ...nodes);
};
const lines = (values) => make("pre", "", values.join("\n"));
// A value as lines a person reads: a text of several lines as it is, below its name.
const spread = (value, indent = "") => {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return (typeof value === "string" ? value : JSON.stringify(value, null, 1)).split("\n").map((line) => indent + line);
  }
  return Object.entries(value).flatMap(([name, one]) => {
    const own = spread(one, "");
    return own.length === 1 ? [`${indent}${name}: ${own[0]}`] : [`${indent}${name}:`, ...own.map((line) => `${indent}  ${line}`)];
  });
};
// What a model was given is often JSON, on one line.
const read = (text) => {
  if (!text.startsWith("{")) return text.split("\n");
  try {
    return spread(JSON.parse(text));
  } catch {
    return text.split("\n");
  }
};
const compared = (own, others) => {
  const theirs = new Set(others ?? own);
  const box = make("pre");
  for (const line of own) box.append(make("span", theirs.has(line) ? "both" : "only", line || " "));
  return box;
};
const asked = (step) => step?.asked.flatMap(([shown, answer]) => [...`asked: ${shown}`.split("\n"), `answered: ${answer}`]);
// A step of the script, as the vectors write it: what is done, and with what.
const call = (step) => {
  if (step === undefined) return ["(not in these vectors)"];
  const [[kind, what]] = Object.entries(step);
  if (kind !== "call") return [kind.replaceAll("_", " "), ...spread(what, "  ")];
  return [what.by ? `${what.tool}, by ${what.by}` : what.tool, ...spread(what.args, "  ")];
};
// `ran`, or what became of it and its code.
const outcome = (what) => (typeof what === "string" ? what : Object.entries(what).map(([kind, code]) => `${kind.replaceAll("_", " ")}: ${word(code)}`).join(", "));
const side = (mine, theirs) => {
  if (!mine) return [make("p", "outcome", "not reached")];
  const nodes = [make("p", "outcome", outcome(mine.outcome))];
  if (mine.asked.length) nodes.push(compared(asked(mine), asked(theirs)));
  if (mine.text) nodes.push(compared(read(mine.text), theirs?.text === undefined ? undefined : read(theirs.text)));
  if (mine.answer !== null) nodes.push(compared(spread(mine.answer), theirs ? spread(theirs.answer) : undefined));
  return nodes;
};
const whole = (mine) => {
  if (!mine) return [make("p", "outcome", "no trace")];
  const facts = [`end: ${word(mine.end)}`, `${mine.cpu_ms.toFixed(1)} ms processor time, ${mine.wall_ms.toFixed(1)} ms in all`];
  for (const net of mine.network) facts.push(`network ${net}`);
  for (const trip of mine.tripwires) facts.push(`tripwire ${trip}`);
  return [lines(facts)];
};
const sides = (one, tell) => {
  const both = make("div", "sides");
  for (const [name, mine, theirs] of [["Hermes", one.hermes, one.agent], ["hermitcrab", one.agent, one.hermes]]) {
    const box = make("div");
    box.append(make("h4", "", name), ...tell(mine, theirs));
    both.append(box);
  }
  return both;
};
// Effects of both sides in one list, by path: what both did, and what one did alone.
const effects = (hermes, agent) => {
  const told = new Map();
  for (const [name, list] of [["Hermes", hermes], ["hermitcrab", agent]]) {
    for (const effect of list ?? []) told.set(effect, [...(told.get(effect) ?? []), name]);
  }
  const path = (effect) => effect.slice(effect.indexOf("/"));
  const list = make("ul", "effects");
  for (const [effect, who] of [...told].sort(([a], [b]) => (path(a) < path(b) ? -1 : 1))) {
    const item = make("li", who.length === 2 ? "" : "only");
    item.append(make("span", "", who.length === 2 ? "both" : `only ${who[0]}`), make("div", "", effect));
    list.append(item);
  }
  return list.children.length ? [list] : [];
};
const detail = (row, one, again) => {
  const box = make("div", "more");
  if (!one) {
    box.append(make("p", "", "nothing was kept of this case"));
    return box;
  }
  const about = one.case;
  box.append(make("p", "", one.why));
  if (about?.comment) box.append(make("p", "", about.comment));
  for (const [index, attempt] of (one.attempts ?? []).entries()) {
    box.append(make("p", "finding", `run ${index + 1}: ${attempt.label}: ${attempt.why}`));
  }
  if (about) {
    const world = [`cwd ${about.cwd}, context ${word(about.context)}, user ${word(about.user)}`];
    for (const held of about.held) world.push(`grant ${held.id}: ${held.verb} on ${held.on}`);
    for (const file of about.files ?? []) world.push(`file ${file}`);
    for (const [key, value] of Object.entries(about.settings)) world.push(`${key} = ${word(value)}`);
    part(box, "world", lines(world));
    part(box, "expected of the agent", make("p", "", `${word(about.must)} ${about.reason ?? ""}`));
    if (about.flags.length) part(box, "flags", make("p", "", about.flags.join(", ")));
  }
  const steps = Math.max(one.hermes?.steps.length ?? 0, one.agent?.steps.length ?? 0, about?.script.length ?? 0);
  for (let index = 0; index < steps; index += 1) {
    const [hermes, agent] = [one.hermes?.steps[index], one.agent?.steps[index]];
    part(box, `step ${index + 1} of ${steps}`, lines(call(about?.script[index])));
    box.append(sides({ hermes, agent }, side), ...effects(hermes?.effects, agent?.effects));
    for (const judged of one.judged?.steps ?? []) {
      if (judged.step !== index) continue;
      box.append(make("p", "finding", `${judged.finding}: ${judged.why} (${judged.what} ${judged.hermes} -> ${judged.agent})`));
    }
  }
  part(box, "the whole run", sides(one, whole));
  part(box, "files at its end", ...effects(one.hermes?.effects, one.agent?.effects));
  part(box, "see it again", command(`cargo bisim check --explain ${row.id}${again}`));
  return box;
};
