// Growth of the bump: height, place and width over the step, for all chosen runs.
import {limitsOf, panel} from "./axes.js";
import {pathOf, shape} from "./dom.js";
import {decadeTicks, linearScale, niceTicks, numberText, powerText, stepPlace, stepText, stepTicks} from "./scales.js";

const GROWTH_MARGIN = {left: 58, right: 14, top: 24, bottom: 22};
export const GROWTH_KINDS = [
  {name: "height", title: "largest median ratio", read: (p) => logged(p.height), floor: [0, Math.log10(2)], log: true},
  {name: "place", title: "place of the peak, η", read: (p) => p.log10_peak_eta, floor: [0, 0.5], log: true, fitted: true},
  {name: "width", title: "width in decades", read: (p) => (p.verdict === "bump" ? p.width : null), floor: [0, 1], log: false},
];

function logged(value) {
  return value === null || value === undefined || value <= 0 ? null : Math.log10(value);
}

export function growthPlot({kind, runs, step, last, width, height, bottom, onRun}) {
  // runs: {run, colour, points}
  const values = runs.flatMap(({points}) => points.map(kind.read));
  const known = values.filter((value) => value !== null && value !== undefined);
  const floor = !kind.fitted ? kind.floor : known.length ? [Math.min(...known) - 0.25, Math.max(...known) + 0.25] : [-1, 1];
  const yLimits = limitsOf(values, floor);
  const margin = {...GROWTH_MARGIN, bottom: bottom ? 40 : GROWTH_MARGIN.bottom};
  const x = linearScale([0, Math.max(stepPlace(Math.max(last, 1)), 0.3)], [margin.left, width - margin.right]);
  const y = linearScale(yLimits, [height - margin.bottom, margin.top]);
  const root = panel({
    width, height, x, y, margin, title: kind.title,
    xTicks: stepTicks(last).map(stepPlace), xText: (place) => (bottom ? stepText(Math.round(10 ** place - 1)) : ""),
    xLabel: bottom ? "optimiser step (log)" : "",
    yTicks: kind.log ? decadeTicks(yLimits) : niceTicks(yLimits, 4), yText: kind.log ? powerText : numberText, yLabel: "",
  });
  const now = x(stepPlace(step));
  root.append(shape("line", {class: "now", x1: now, x2: now, y1: margin.top, y2: height - margin.bottom}));
  if (kind.name === "height") {
    root.append(shape("line", {class: "reference", x1: margin.left, x2: width - margin.right, y1: y(0), y2: y(0)}));
  }
  for (const {run, colour, points, chosen} of runs) {
    const places = points.map((point) => {
      const value = kind.read(point);
      return value === null || value === undefined ? null : [x(stepPlace(point.step)), y(value)];
    });
    const line = shape("path", {class: chosen ? "curve strong" : "curve", d: pathOf(places), stroke: colour});
    const wide = shape("path", {class: "grip", d: pathOf(places)});
    wide.addEventListener("pointerenter", (event) => onRun(event, run));
    wide.addEventListener("pointerleave", (event) => onRun(event, null));
    root.append(line);
    places.forEach((place, i) => { // a point without neighbours would have no line
      if (place && !places[i - 1] && !places[i + 1]) {
        root.append(shape("circle", {class: "dot", cx: place[0], cy: place[1], r: 2.4, fill: colour}));
      }
    });
    root.append(wide);
  }
  return root;
}
