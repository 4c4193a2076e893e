// How a person finds things: by what is written on them, and only what shows.
const squeeze = (s) => (s || "").replace(/\s+/g, " ").trim();
const shows = (e) => {
  if (!e.checkVisibility || !e.checkVisibility({ visibilityProperty: true, opacityProperty: false })) return false;
  const r = e.getBoundingClientRect();
  return r.width > 0 && r.height > 0;
};
const nameOf = (e) => squeeze(e.getAttribute("aria-label") || e.innerText || e.value || e.title);
const place = (e) => {
  e.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
  const r = e.getClientRects()[0];
  return { x: r.left + r.width / 2, y: r.top + r.height / 2 };
};
// within is an open dialog, which is all that a person can reach, else the page.
const within = () => [...document.querySelectorAll("dialog[open]")].at(-1) || document;
const pressable = (words) => {
  const all = [...within().querySelectorAll("button, a[href], summary, [role=tab], [role=button], label")].filter(shows);
  const exact = all.filter((e) => nameOf(e) === words);
  const open = exact.filter((e) => !e.disabled);
  return (open.length ? open : exact)[0] || all.find((e) => nameOf(e).startsWith(words)) || null;
};
const press = (words) => {
  const e = pressable(words);
  return e && !e.disabled ? place(e) : null;
};
const labelled = (label) => {
  for (const l of within().querySelectorAll("label")) {
    if (squeeze(l.innerText) === label || squeeze(l.firstChild && l.firstChild.textContent) === label) {
      const e = l.control;
      if (e && shows(e)) return e;
    }
  }
  for (const e of within().querySelectorAll("input, select, textarea")) {
    if (e.getAttribute("aria-label") === label && shows(e)) return e;
  }
  return null;
};
const field = (label) => {
  const e = labelled(label);
  return e ? place(e) : null;
};
const choose = (label, words) => {
  const e = labelled(label);
  const o = e && [...e.options].find((o) => squeeze(o.text) === words || o.value === words);
  if (!o) return false;
  e.value = o.value;
  e.dispatchEvent(new Event("input", { bubbles: true }));
  e.dispatchEvent(new Event("change", { bubbles: true }));
  return true;
};
const says = (words) => squeeze(document.body && document.body.innerText).toLowerCase().includes(squeeze(words).toLowerCase());
const still = () => document.readyState === "complete" && document.fonts.status === "loaded" && !document.querySelector(".htmx-request");
// focus is what has the focus, and whether that can be seen: an outline, a
// shadow, or a border of its own kind.
const focus = () => {
  const e = document.activeElement;
  if (!e || e === document.body) return { Name: "", Shows: true };
  const label = e.labels && e.labels[0] ? squeeze(e.labels[0].firstChild && e.labels[0].firstChild.textContent) || squeeze(e.labels[0].innerText) : "";
  const marked = (x) => {
    const s = getComputedStyle(x);
    return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none";
  };
  const beside = e.labels && e.labels[0];
  return { Name: label || nameOf(e), Shows: marked(e) || (beside ? marked(beside) : false) };
};
