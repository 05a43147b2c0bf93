// What a person can press, by a name of its own; asked of the page itself, so that a control
// nobody thought of is found.
(() => {
  const can = 'a[href],button,select,input,textarea,summary,[role="button"],[contenteditable]';
  const scrolls = '[tabindex="0"]';
  const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.disabled
    // What is chosen already stays chosen.
    && !(node.closest(".switch") && node.getAttribute("aria-pressed") === "true");
  const name = (node) => {
    if (node.id) return `#${node.id}`;
    const place = node.closest("[id]");
    const label = node.getAttribute("aria-label") ?? node.textContent;
    // Cases that only differ by their number are one kind of control.
    return `#${place?.id ?? ""} ${node.localName}.${node.className} ${label}`.replace(/\d+/g, "#");
  };
  const all = () => [...document.querySelectorAll(can)].filter(seen);
  const find = (wanted) => all().find((node) => name(node) === wanted);
  globalThis.walk = {
    controls: () => [...new Set(all().map(name))],
    // Those the keyboard has to come by; what scrolls can be reached as well.
    stops: () => [...new Set([...document.querySelectorAll(`${can},${scrolls}`)].filter(seen).map(name))],
    here: () => (document.activeElement === document.body ? "" : name(document.activeElement)),
    top: () => { document.activeElement.blur(); scrollTo(0, 0); getSelection().removeAllRanges(); },
    kind: (wanted) => find(wanted).localName,
    focus: (wanted) => { find(wanted).focus(); return walk.here(); },
    // Where to point at, and whether nothing lies over it.
    point: (wanted) => {
      const node = find(wanted);
      node.scrollIntoView({ block: "center", inline: "center" });
      const box = node.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + Math.min(box.height / 2, 12)];
      return { x, y, free: node.contains(document.elementFromPoint(x, y)) };
    },
    // What is to be seen, in one text: a press that leaves it as it was did nothing.
    state: () => JSON.stringify([
      location.hash, document.body.innerText, Math.round(scrollY), String(getSelection()),
      [...document.querySelectorAll("input,select")].map((node) => node.value),
      [...document.querySelectorAll("[aria-pressed],[aria-expanded],[aria-sort],details")]
        .map((node) => [node.ariaPressed, node.ariaExpanded, node.ariaSort, node.open]),
      [...document.querySelectorAll("h2")].indexOf(document.activeElement),
    ]),
    fits: () => document.documentElement.scrollWidth <= innerWidth,
  };
})();
