// The controls, made once; they only read and set the state.
import {element, shape} from "./dom.js";

export function choice(label, options, value, onChange) {
  const select = element("select", {"aria-label": label, onchange: () => onChange(select.value)});
  for (const [key, text] of options) select.append(element("option", {value: key, selected: key === value}, text));
  return element("label", {class: "field"}, label, select);
}

export function tick(label, value, onChange) {
  const box = element("input", {type: "checkbox", checked: value, onchange: () => onChange(box.checked)});
  return element("label", {}, box, label);
}

export class StepSlider {
  // The slider keeps its element, and so the focus, while everything else is drawn anew.
  constructor(onStep, onFollow) {
    this.steps = [];
    this.timer = null;
    this.input = element("input", {type: "range", min: 0, max: 0, value: 0, "aria-label": "optimiser step"});
    this.input.addEventListener("input", () => onStep(this.steps[Number(this.input.value)]));
    this.text = element("output", {"aria-live": "off"});
    this.play = element("button", {type: "button", "aria-label": "play the formation"}, "▶");
    this.play.addEventListener("click", () => (this.timer ? this.stop() : this.start(onStep)));
    this.follow = element("button", {type: "button", "aria-label": "follow the newest step"}, "follow newest");
    this.follow.addEventListener("click", () => onFollow());
    this.node = element("div", {class: "slider"}, this.play, this.input, this.text, this.follow);
  }

  start(onStep) {
    let place = Number(this.input.value) >= this.steps.length - 1 ? 0 : Number(this.input.value);
    onStep(this.steps[place]);
    this.play.textContent = "❚❚";
    this.play.setAttribute("aria-label", "pause");
    this.timer = setInterval(() => {
      place += 1;
      if (place >= this.steps.length) this.stop();
      else onStep(this.steps[place]);
    }, 250);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶";
    this.play.setAttribute("aria-label", "play the formation");
  }

  show(steps, step, follows) {
    this.steps = steps;
    this.input.max = String(Math.max(steps.length - 1, 0));
    const place = Math.max(steps.findLastIndex((one) => one <= step), 0);
    if (Number(this.input.value) !== place) this.input.value = String(place);
    const said = steps.length ? `step ${steps[place].toLocaleString("en-US")}` : "no step";
    this.text.textContent = said;
    this.input.setAttribute("aria-valuetext", said);
    this.follow.setAttribute("aria-pressed", String(follows));
    this.input.disabled = this.play.disabled = steps.length < 2;
  }
}

export function swatch({colour, dash}) {
  const line = shape("line", {x1: 0, x2: 18, y1: 6, y2: 6, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash});
  return shape("svg", {class: "swatch", viewBox: "0 0 18 12", width: 18, height: 12, "aria-hidden": "true"}, line);
}

export function runList({runs, looks, hidden, chosen, onHide, onChoose}) {
  const list = element("div", {class: "runs"});
  for (const run of runs) {
    const box = element("input", {
      type: "checkbox", checked: !hidden.has(run), "aria-label": `show ${run}`, onchange: () => onHide(run, !box.checked),
    });
    const name = element("button", {
      type: "button", title: run, "aria-pressed": String(run === chosen), onclick: () => onChoose(run),
    }, run);
    list.append(element("div", {class: run === chosen ? "run chosen" : "run"}, box, swatch(looks.get(run)), name));
  }
  return list;
}
