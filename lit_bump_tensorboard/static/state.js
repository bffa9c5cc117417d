// What is chosen, kept in the address so that a view can be shared.

const DEFAULTS = {
  probe: "", run: "", step: null, follow: true, view: "formation", scale: "log", band: "confidence", parts: false,
  images: false, filter: "", hidden: [],
};

export class State {
  constructor() {
    this.values = {...DEFAULTS, ...readAddress()};
    this.listeners = [];
    place().addEventListener("hashchange", () => { // a shared address, pasted into a page that is open
      this.values = {...DEFAULTS, ...readAddress()};
      for (const listener of this.listeners) listener();
    });
  }

  get(name) {
    return this.values[name];
  }

  set(changes) {
    Object.assign(this.values, changes);
    writeAddress(this.values);
    for (const listener of this.listeners) listener();
  }

  onChange(listener) {
    this.listeners.push(listener);
  }
}

function place() {
  try { // inside TensorBoard the address is that of the page around us
    if (window.parent !== window && window.parent.location.origin === window.location.origin) return window.parent;
  } catch (error) { /* another origin: keep to our own */ }
  return window;
}

function readAddress() {
  const match = /[#&]p\.lit_bump\.view=([^&]*)/.exec(place().location.hash);
  if (!match) return {};
  try {
    const found = JSON.parse(decodeURIComponent(match[1]));
    const kept = {};
    for (const [name, fallback] of Object.entries(DEFAULTS)) {
      const value = found[name];
      const fits = name === "step" ? value === null || Number.isFinite(value) : typeof value === typeof fallback;
      if (value !== undefined && fits && (!Array.isArray(fallback) || Array.isArray(value))) kept[name] = value;
    }
    return kept;
  } catch (error) {
    return {};
  }
}

function writeAddress(values) {
  const changed = Object.entries(values).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULTS[name]));
  const text = encodeURIComponent(JSON.stringify(Object.fromEntries(changed)));
  const target = place();
  const before = target.location.hash.replace(/&?p\.lit_bump\.view=[^&]*/, "").replace(/^#$/, "");
  const start = before || (target === window ? "#" : "#lit_bump");
  const hash = changed.length ? `${start}${start === "#" ? "" : "&"}p.lit_bump.view=${text}` : start;
  try {
    target.history.replaceState(target.history.state, "", hash);
  } catch (error) { /* a page opened from a file may refuse */ }
}
