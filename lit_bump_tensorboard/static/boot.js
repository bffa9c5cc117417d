// The page: asks for numbers, keeps the choices, and draws.
import {RunLooks, stepColour} from "./colours.js";
import {choice, runList, StepSlider, tick} from "./controls.js";
import {element, emptied, shape} from "./dom.js";
import {growthRows, profileRows, saveCsv, savePng, saveSvg} from "./exporting.js";
import {GROWTH_KINDS, growthPlot} from "./growth_plot.js";
import {mapLimits, mapPlot} from "./map_plot.js";
import {partsPlot} from "./parts_plot.js";
import {formationCurves, profilePlot} from "./profile_plot.js";
import {numberText, stepText} from "./scales.js";
import {State} from "./state.js";
import {pointAt, sortedPoints, Store} from "./store.js";
import {applyTheme, styleText} from "./style.js";
import {Tooltip} from "./tooltip.js";

const POLL = 4000; // milliseconds

export function boot(root, source, {live}) {
  const page = new Page(root, source, live);
  page.start();
  return page;
}

class Page {
  constructor(root, source, live) {
    this.source = source;
    this.live = live;
    this.store = new Store();
    this.state = new State();
    this.looks = new RunLooks();
    this.details = new Map();
    this.trouble = "";
    this.drawMs = 0;
    this.wanted = 0;
    document.head.append(element("style", {}, styleText()));
    root.style.margin = "0";
    this.root = element("div", {class: "lit-bump"});
    root.append(this.root);
    this.tooltip = new Tooltip(this.root);
    this.slider = new StepSlider(
      (step) => this.state.set({step, follow: false}),
      () => this.state.set({follow: !this.state.get("follow"), step: this.step}),
    );
    this.filter = element("input", {type: "text", "aria-label": "filter runs by text", placeholder: "filter runs"});
    this.filter.value = this.state.get("filter");
    this.filter.addEventListener("input", () => this.state.set({filter: this.filter.value}));
    this.aside = element("aside");
    this.options = element("div", {class: "bar"});
    this.top = element("div", {class: "bar"});
    this.status = element("span", {class: "status", role: "status"});
    this.plots = element("div");
    this.main = element("main", {}, this.top, this.options, this.plots);
    this.state.onChange(() => this.later());
    window.addEventListener("resize", () => this.later());
  }

  async start() {
    applyTheme();
    await this.poll();
    if (!this.live) return;
    setInterval(() => {
      if (applyTheme()) this.later();
    }, 1000);
    const again = async () => {
      if (this.isVisible()) await this.poll();
      setTimeout(again, POLL);
    };
    setTimeout(again, POLL);
  }

  isVisible() {
    if (document.hidden) return false;
    try { // TensorBoard hides the frame of a tab that is not shown
      const frame = window.frameElement;
      if (frame) {
        const look = window.parent.getComputedStyle(frame);
        if (look.visibility === "hidden" || frame.getBoundingClientRect().height === 0) return false;
      }
    } catch (error) { /* another origin: take it as shown */ }
    return true;
  }

  async poll() {
    try {
      const changed = this.store.apply(await this.source.changes(this.store.since));
      const recovered = this.trouble !== "";
      this.trouble = "";
      if (changed || recovered || !this.drawn) this.later();
    } catch (error) {
      this.trouble = `No answer from the server (${error.message}); trying again.`;
      this.store.since = 0; // a server that was started again may know other steps
      this.later();
    }
  }

  later() {
    if (this.wanted) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      const began = performance.now();
      const refocus = this.focusHeld();
      this.draw();
      refocus();
      this.drawMs = performance.now() - began;
      this.root.dataset.drawMs = this.drawMs.toFixed(1);
      this.root.dataset.version = String(this.store.version);
      if (!this.root.dataset.firstMs && this.store.series.size) this.root.dataset.firstMs = performance.now().toFixed(0);
    });
  }

  focusHeld() {
    // Lists are drawn anew: who steers with the keyboard stays where they were.
    const called = (node) => node.getAttribute("aria-label") || (node.closest("label") || node).textContent;
    const held = document.activeElement;
    if (!held || !this.root.contains(held)) return () => {};
    const [tag, name] = [held.tagName, called(held)];
    return () => {
      const same = held.isConnected ? null : [...this.root.querySelectorAll(tag)].find((node) => called(node) === name);
      if (same) same.focus({preventScroll: true});
    };
  }

  draw() {
    this.drawn = true;
    this.tooltip.hide();
    const {store, state} = this;
    if (!store.series.size) {
      this.drawEmpty();
      return;
    }
    if (this.main.parentNode !== this.root) emptied(this.root).append(this.aside, this.main, this.tooltip.node);
    const probes = store.probes();
    const probe = probes.includes(state.get("probe")) ? state.get("probe") : probes[0];
    const hidden = new Set(state.get("hidden"));
    const text = state.get("filter").toLowerCase();
    const all = store.runs();
    const listed = all.filter((run) => run.toLowerCase().includes(text));
    const runs = listed.filter((run) => !hidden.has(run) && store.find(run, probe));
    const run = runs.includes(state.get("run")) ? state.get("run") : runs[0] || null;
    const looks = this.looks.of(all);
    const steps = store.steps(state.get("view") === "compare" || !run ? runs : [run], probe);
    const last = Math.max(...store.steps(runs, probe), 1);
    const newest = steps.length ? steps[steps.length - 1] : 0;
    this.step = state.get("follow") || state.get("step") === null ? newest : state.get("step");
    this.drawAside(probes, probe, listed, looks, hidden, run);
    this.drawBars(steps);
    this.drawPlots({probe, runs, run, looks, last, step: this.step});
  }

  drawEmpty() {
    emptied(this.root).append(element("div", {class: "empty"},
      element("h2", {}, this.trouble ? "No answer yet" : "No response profiles yet"),
      element("p", {}, this.trouble || "They appear here by themselves, as soon as a run in this log directory is measured:"),
      element("code", {}, "python -m lit_bump fit --config quickstart.yaml"),
      element("p", {}, "or with one callback in a Trainer of your own:"),
      element("code", {}, "Trainer(callbacks=[lit_bump.RProfileCallback()])")), this.tooltip.node);
  }

  drawAside(probes, probe, listed, looks, hidden, run) {
    const {state} = this;
    const hadFocus = document.activeElement === this.filter;
    emptied(this.aside).append(
      choice("probe set", probes.map((one) => [one, one]), probe, (value) => state.set({probe: value})),
      element("fieldset", {}, element("legend", {}, `runs (${listed.length})`), this.filter, runList({
        runs: listed, looks, hidden, chosen: run,
        onHide: (name, hide) => {
          if (hide) hidden.add(name);
          else hidden.delete(name);
          state.set({hidden: [...hidden]});
        },
        onChoose: (name) => state.set({run: name, hidden: [...hidden].filter((one) => one !== name)}),
      })),
    );
    for (const one of this.store.errors()) {
      this.aside.append(element("p", {class: "status bad"}, `${one.run}, ${one.probe}: ${one.error}`));
    }
    if (hadFocus) this.filter.focus();
  }

  drawBars(steps) {
    const {state} = this;
    this.slider.show(steps, this.step, state.get("follow"));
    if (this.slider.node.parentNode !== this.top) {
      this.top.append(this.slider.node, this.status);
    }
    this.status.textContent = this.trouble;
    this.status.className = this.trouble ? "status bad" : "status";
    if (this.options.contains(document.activeElement) && document.activeElement.tagName === "SELECT") return;
    emptied(this.options).append(
      choice("curves", [["formation", "one run, all steps"], ["compare", "all runs, one step"]], state.get("view"),
        (view) => state.set({view})),
      choice("ratio axis", [["log", "logarithmic"], ["linear", "linear"]], state.get("scale"), (scale) => state.set({scale})),
      choice("band", [["confidence", "90 % of the median"], ["quartiles", "quartiles of images"], ["none", "none"]],
        state.get("band"), (band) => state.set({band})),
      tick("single images", state.get("images"), (images) => state.set({images})),
      tick("response and prediction", state.get("parts"), (parts) => state.set({parts})),
      element("span", {}, ...[
        ["PNG", "save what is seen as PNG", () => savePng(this.view, this.fileName)],
        ["SVG", "save what is seen as SVG", () => saveSvg(this.view, this.fileName)],
        ["CSV", "save the profiles as CSV", () => saveCsv(this.rows, `${this.fileName}_profiles`)],
        ["growth CSV", "save the growth as CSV", () => saveCsv(this.grown, `${this.fileName}_growth`)],
      ].map(([name, says, save]) => element("button", {type: "button", "aria-label": says, onclick: save}, name))),
    );
  }

  drawPlots({probe, runs, run, looks, last, step}) {
    const {state, store} = this;
    const chosen = run ? store.find(run, probe) : null;
    const points = sortedPoints(chosen);
    const point = pointAt(chosen, step);
    const compares = state.get("view") === "compare";
    const curves = compares
      ? runs.map((name) => ({name, point: pointAt(store.find(name, probe), step)})).filter((one) => one.point)
        .map((one) => ({...one.point, label: `${one.name}, step ${stepText(one.point.step)}`, name: one.name,
          colour: looks.get(one.name).colour, dash: looks.get(one.name).dash, strong: one.name === run}))
        .sort((a, b) => Number(a.strong) - Number(b.strong))
      : formationCurves(points, step, last);
    const detail = this.detailOf(chosen, point);
    const band = state.get("band");
    const [lowRow, highRow] = band === "quartiles" ? ["q25", "q75"] : ["low", "high"];
    const seen = detail ? {
      log10Eta: detail.log10_eta, low: detail.rows[lowRow] || [], high: detail.rows[highRow] || [], images: detail.images,
    } : null;
    const space = Math.max(this.main.clientWidth || window.innerWidth - 240, 420) - 32;
    const narrow = window.innerWidth <= 1100;
    const wide = narrow ? space : Math.floor((space - 16) * 0.6);
    const slim = narrow ? space : space - 16 - wide;
    const title = compares ? `all runs at step ${stepText(step)} or the last before it, ${probe}` : `${run || ""}, ${probe}`;
    const onNear = (event, lines) => (lines ? this.tooltip.show(event, lines) : this.tooltip.hide());
    const profiles = profilePlot({
      curves, detail: seen, scale: state.get("scale"), band: seen && seen.low.length ? band : "none",
      images: state.get("images"), width: wide, height: Math.min(Math.max(wide * 0.62, 300), 560), title, onNear,
    });
    const held = runs.map((name) => ({
      run: name, look: looks.get(name), chosen: name === run, points: sortedPoints(store.find(name, probe)),
    })).sort((a, b) => Number(a.chosen) - Number(b.chosen));
    const profileHeight = Math.min(Math.max(wide * 0.62, 300), 560);
    const growth = GROWTH_KINDS.map((kind, i) => growthPlot({
      kind, runs: held, step, last, width: slim, bottom: i === 2, height: Math.round(profileHeight / 3) + (i === 2 ? 12 : -6),
      onNear,
    }));
    const mapHeight = 300;
    const limits = mapLimits(held.flatMap((one) => one.points));
    const missing = getComputedStyle(document.documentElement).getPropertyValue("--missing") || "#c6ccd3";
    const corner = state.get("parts") && detail
      ? partsPlot({
        detail, colour: looks.get(run).colour, width: slim, height: mapHeight, onNear,
        title: `step ${stepText(detail.step)}: response and prediction`,
      })
      : null;
    const map = mapPlot({
      points, limits, step, last, width: corner ? wide : space, height: mapHeight, title: "formation: step by η",
      missing: missing.trim(), onNear,
    });
    const verdict = this.verdictOf(run, point);
    const grid = element("div", {class: "grid2"},
      element("div", {class: "card profiles"}, profiles, compares ? null : this.stepKey(last)),
      element("div", {class: "card growth"}, ...growth), element("div", {class: corner ? "card" : "card whole"}, map),
      corner ? element("div", {class: "card"}, corner) : null);
    emptied(this.plots).append(verdict, grid);
    this.fileName = `${run || "runs"}_${probe}_step_${step}`.replace(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 120);
    this.view = {plots: grid, title: `${probe}: ${verdict.textContent}`, legend: runs.map((name) => ({run: name, look: looks.get(name)}))};
    this.rows = profileRows({curves, run, probe, detail, images: state.get("images")});
    this.grown = growthRows(held, probe);
  }

  stepKey(last) {
    const parts = 24;
    const ramp = Array.from({length: parts}, (_, i) => shape("rect", {
      x: 100 + 5 * i, y: 4, width: 5.5, height: 8, fill: stepColour(i / (parts - 1)),
    }));
    return shape("svg", {class: "panel", width: 560, height: 18, viewBox: "0 0 560 18"},
      shape("text", {x: 58, y: 12}, "step 0"), ...ramp,
      shape("text", {x: 228, y: 12}, `${stepText(last)} (log); newest bold, × no image kept`));
  }

  verdictOf(run, point) {
    if (!point) return element("p", {class: "verdict"}, "no profile of this run on this probe set");
    const place = point.log10_peak_eta === null ? "" : ` at η ${numberText(10 ** point.log10_peak_eta)}`;
    const kept = point.n_kept.filter((n) => n !== null);
    const [few, many] = kept.length ? [Math.min(...kept), Math.max(...kept)] : [0, 0];
    return element("p", {class: "verdict"}, element("b", {}, point.verdict),
      `: max r ${numberText(point.height)}${place}; ${run}, step ${stepText(point.step)}, `,
      few === many ? `${few} images kept` : `${few} to ${many} images kept`);
  }

  detailOf(series, point) {
    // What is known of the newest curve; asked for once, drawn when it comes.
    if (!series || !point) return null;
    const key = JSON.stringify([series.run, series.tag, point.step, point.wall_time]);
    const held = this.details.get(key);
    if (held !== undefined) return held;
    this.details.set(key, null);
    if (this.details.size > 400) this.details.delete(this.details.keys().next().value);
    this.source.detail(series.run, series.tag, point.step).then((found) => {
      this.details.set(key, found);
      this.later();
    }).catch(() => this.details.delete(key));
    return null;
  }
}
