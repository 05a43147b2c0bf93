"use strict";
// What every part of the page builds with. Everything a case holds is hostile: it only ever
// becomes text, and letters that are not seen, or turn the order of others, become their numbers.
const at = (id) => document.getElementById(id);
const unseen = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const visible = (text) => String(text).replace(unseen, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
const make = (tag, cls, text) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = visible(text);
  return node;
};
const push = (cls, text, press) => {
  const button = make("button", cls, text);
  button.type = "button";
  button.addEventListener("click", press);
  return button;
};
const word = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const cases = (count) => `${count.toLocaleString("en")} case${count === 1 ? "" : "s"}`;
const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
};
// A command and what copies it; where a page may not copy, it is selected for the person's own hand.
const command = (line) => {
  const box = make("div", "copy");
  const shown = make("pre", "replay", line);
  const button = push("", "copy", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(shown);
      button.textContent = "selected";
    }
  });
  button.setAttribute("aria-label", `copy: ${visible(line)}`);
  box.append(shown, button);
  return box;
};
