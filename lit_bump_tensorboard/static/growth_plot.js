// Growth of the bump: height, place and width over the step, for all chosen runs.
import {limitsOf, panel, pointerOn} from "./axes.js";
import {markSpot, nearestSpot, pathOf, shape} from "./dom.js";
import {decadeTicks, linearScale, niceTicks, numberText, powerText, stepPlace, stepText, stepTicks} from "./scales.js";

const GROWTH_MARGIN = {left: 58, right: 14, top: 24, bottom: 22};
export const GROWTH_KINDS = [
  {name: "height", title: "largest median ratio", read: (p) => logged(p.height), floor: [0, Math.log10(2)], log: true, unit: "max r"},
  {name: "place", title: "place of the peak, η", read: (p) => p.log10_peak_eta, floor: [0, 0.5], log: true, fitted: true, unit: "peak at η"},
  {name: "width", title: "width in decades", read: (p) => (p.verdict === "bump" ? p.width : null), floor: [0, 1], log: false, unit: "width in decades"},
];

function logged(value) {
  return value === null || value === undefined || value <= 0 ? null : Math.log10(value);
}

export function growthPlot({kind, runs, step, last, width, height, bottom, onNear}) {
  // runs: {run, look, points, chosen}; onNear(event, lines) says what is under the pointer, null for nothing
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
  const near = shape("circle", {class: "near", r: 5, visibility: "hidden"});
  const spots = [];
  for (const {run, look, points, chosen} of runs) {
    const places = points.map((point) => {
      const value = kind.read(point);
      return value === null || value === undefined ? null : [x(stepPlace(point.step)), y(value)];
    });
    root.append(shape("path", {
      class: chosen ? "curve strong" : "curve", d: pathOf(places), stroke: look.colour, "stroke-dasharray": look.dash,
    }));
    places.forEach((place, i) => {
      if (!place) return;
      spots.push({place, run, point: points[i]});
      if (!places[i - 1] && !places[i + 1]) { // a point without neighbours would have no line
        root.append(shape("circle", {class: "dot", cx: place[0], cy: place[1], r: 2.4, fill: look.colour}));
      }
    });
  }
  root.append(near);
  root.addEventListener("pointermove", (event) => {
    const found = nearestSpot(spots, pointerOn(root, event, width, height));
    markSpot(near, found);
    onNear(event, found && [
      found.run, `step ${stepText(found.point.step)}`,
      `${kind.unit} ${numberText(kind.log ? 10 ** kind.read(found.point) : kind.read(found.point))}`,
      found.point.verdict,
    ]);
  });
  root.addEventListener("pointerleave", (event) => {
    markSpot(near, null);
    onNear(event, null);
  });
  return root;
}
